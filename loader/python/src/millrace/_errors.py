# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. Each message is a sentence: what is wrong, where, and what to do."""


class Error(Exception):
    """Any failure of millrace. The other exceptions derive from it."""


class FormatError(Error, ValueError):
    """The bytes of a file contradict its format. The message names the file and the byte."""


class ConfigError(Error, ValueError):
    """An argument, or a combination of arguments, cannot be honored. The message names it and what is
    allowed."""


class IOError(Error, OSError):  # pylint: disable=redefined-builtin
    """A system call failed. `errno` and `filename` are set."""


class CudaError(Error):
    """A CUDA call failed, or the GPU cannot be used. The message says why."""
