# SPDX-License-Identifier: Apache-2.0
"""The programs that the package contains, as commands. Imports only the standard library."""
import os
import pathlib
import sys
from typing import NoReturn

FOLDER = pathlib.Path(__file__).resolve().parent / "millrace" / "bin"


def run(program: str) -> NoReturn:
    """Replaces this process by a program of the package, with this process's arguments."""
    path = FOLDER / program
    os.execv(path, [os.fspath(path), *sys.argv[1:]])


def preprocess_data() -> NoReturn:
    run("preprocess_data")


def inspect_dataset() -> NoReturn:
    run("inspect_dataset")


def merge_datasets() -> NoReturn:
    run("merge_datasets")
