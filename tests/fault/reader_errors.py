#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the readers of the loader on a disk with an unreadable place.

For reads at this place, the kernel returns EIO. If the file is mapped, it sends SIGBUS.

usage: reader_errors.py --program READ_RANGES

Exits with 77 if no FUSE file system can be mounted.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from failing_file_system import FailingFileSystem, NoFuse

PAGE = 4096
BYTES = 3 << 20
BAD = 2 << 20  # from this byte on, reads fail


def content():
    return bytes((i * 7 + i // PAGE) & 0xFF for i in range(BYTES))


def results(program, path, offset, size):
    command = [program, str(path), str(offset), str(size)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {run.returncode}, expected 0: no fault may end the process\n{run.stderr}")
    return [line.split("\t") for line in run.stdout.splitlines()]


def check(program, disk, path):
    disk.bad = {}
    for name, of_range, of_page, retries in results(program, path, 100, BYTES - 100):
        if (of_range, of_page, retries) != ("ok", "ok", "0"):
            sys.exit(f"{name}, undisturbed: {of_range}, {of_page}, {retries} retries")
    disk.bad = {path.name: BAD}
    # The first range begins before the bad place and ends in it. The second range is completely in
    # the bad place. The third range ends before it, so it must be readable.
    for offset, size, is_bad in ((BAD - 5000, 9000, True), (BYTES - 10, 10, True), (BAD - 9000, 9000, False)):
        lines = results(program, path, offset, size)
        for name, of_range, of_page, retries in lines:
            said = of_range.startswith(f"{path}: read: Input/output error (at byte ")
            good = said and "given up after 2 attempts" in of_range if is_bad else of_range == "ok"
            if not good or of_page != "ok" or (is_bad and int(retries) < 1):
                sys.exit(f"{name}, {size} bytes from {offset}: {of_range}, then {of_page}, {retries} retries")
    return len(lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    with tempfile.TemporaryDirectory() as scratch:
        for direct_io in (True, False):  # with direct I/O, the file cannot be mapped
            folder = pathlib.Path(scratch) / f"disk_{direct_io}"
            folder.mkdir()
            try:
                with FailingFileSystem(folder, {"data.bin": content()}, direct_io=direct_io) as disk:
                    readers = check(program, disk, folder / "data.bin")
            except NoFuse as e:
                print(f"NOT tested: no file system can be mounted by FUSE here ({e})")
                sys.exit(77)
    print(f"{readers} readers reported the fault and continued")


if __name__ == "__main__":
    main()
