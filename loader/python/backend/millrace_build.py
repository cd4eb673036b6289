# SPDX-License-Identifier: Apache-2.0
"""The build backend of the package: scikit-build-core, with the sources that lie outside this folder.

In a checkout, the C++ sources are two folders above. A source distribution has to contain them, so
`build_sdist` copies them into `source/` for as long as it runs. A build from a source distribution finds
them there.
"""
import contextlib
import os
import pathlib
import shutil

from scikit_build_core import build as skbuild
from scikit_build_core.build import *  # noqa: F403  # pylint: disable=wildcard-import,unused-wildcard-import

HERE = pathlib.Path(__file__).resolve().parents[1]
CHECKOUT = HERE.parents[1]
# What CMakeLists.txt of the checkout needs without tests and benches.
STAGED = ("CMakeLists.txt", "LICENSE", "formats", "dataset", "loader", "preprocess",
          "scripts/presets", "scripts/millrace-config.cmake.in")
# What the sources need of this folder.
OF_PYTHON = ("CMakeLists.txt", "bindings")

# scikit-build-core would take the compiler that Python was built with. CMake's own choice is that of the
# other builds, and ccache serves no objects to a compiler of another name.
if shutil.which("c++"):
    os.environ.setdefault("CXX", "c++")


def left_out(folder, names):
    if pathlib.Path(folder) == HERE:
        return [name for name in names if name not in OF_PYTHON]
    return [name for name in names if name in ("__pycache__", "build") or name.endswith(".md")]


def in_checkout():
    return not (HERE / "source").exists() and (CHECKOUT / "loader" / "python" / "pyproject.toml").exists()


def placed(config_settings):
    """The caller's settings, and where the C++ sources and the build are.

    In a checkout, the build folder has the depth of that of scripts/quickstart. So both builds give the
    compiler the same relative paths, and ccache serves the objects of one to the other.
    """
    source, build = (CHECKOUT, CHECKOUT / "build-python") if in_checkout() else (HERE / "source", HERE / "build")
    return {
        "cmake.source-dir": str(source),
        "build-dir": str(build),
        "cmake.args": f"-C{source / 'scripts' / 'presets' / 'release.cmake'}",
        **(config_settings or {}),
    }


@contextlib.contextmanager
def staged():
    """The files outside this folder, copied into it; nothing where they are here already."""
    if not in_checkout():
        yield
        return
    source = HERE / "source"
    license_file = HERE / "LICENSE"
    try:
        for name in STAGED:
            here = CHECKOUT / name
            there = source / name
            there.parent.mkdir(parents=True, exist_ok=True)
            if here.is_dir():
                shutil.copytree(here, there, ignore=left_out)
            else:
                shutil.copy2(here, there)
        shutil.copy2(CHECKOUT / "LICENSE", license_file)
        yield
    finally:
        shutil.rmtree(source, ignore_errors=True)
        license_file.unlink(missing_ok=True)


@contextlib.contextmanager
def with_license():
    """LICENSE in this folder, where scikit-build-core looks for it."""
    license_file = HERE / "LICENSE"
    if license_file.exists() or not in_checkout():
        yield
        return
    shutil.copy2(CHECKOUT / "LICENSE", license_file)
    try:
        yield
    finally:
        license_file.unlink(missing_ok=True)


def build_sdist(sdist_directory, config_settings=None):
    with staged():
        return skbuild.build_sdist(sdist_directory, placed(config_settings))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with with_license():
        return skbuild.build_wheel(wheel_directory, placed(config_settings), metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with with_license():
        return skbuild.build_editable(wheel_directory, placed(config_settings), metadata_directory)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with with_license():
        return skbuild.prepare_metadata_for_build_wheel(metadata_directory, placed(config_settings))


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    with with_license():
        return skbuild.prepare_metadata_for_build_editable(metadata_directory, placed(config_settings))
