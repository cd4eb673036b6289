#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests preprocess_data on a disk with an unreadable place, and --resume after the disk is repaired.

usage: read_errors.py --program PREPROCESS_DATA

Exits with 77 if no FUSE file system can be mounted.
"""

import argparse
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

from failing_file_system import FailingFileSystem, NoFuse

TEXT = "".join(f'{{"text": "line {i}"}}\n' for i in range(20000)).encode()
FILES = {
    "1.jsonl": TEXT,
    "2.jsonl.gz": gzip.compress(TEXT, mtime=0),
    "3.jsonl.gz": gzip.compress(TEXT[:200000], mtime=0) + gzip.compress(TEXT[200000:], mtime=0),
}


def run(program, inputs, out, *flags):
    """Runs the program with small blocks and a checkpoint after each block."""
    environment = dict(os.environ, MILLRACE_TEST_BLOCK_BYTES="20000", MILLRACE_TEST_CHECKPOINT_MS="0")
    command = [program, "--input", *inputs, "--output-prefix", str(out / "x"),
               "--tokenizer-type", "ByteLevelTokenizer", *flags]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def expect(what, holds, result):
    if not holds:
        sys.exit(f"{what}: exit {result.returncode}\n{result.stderr}")


def check(program, disk, name, folder):
    inputs = [os.path.join(disk.folder, other) for other in FILES]
    clean, out = folder / f"clean_{name}", folder / f"out_{name}"
    clean.mkdir()
    out.mkdir()
    result = run(program, inputs, clean)
    expect("undisturbed", result.returncode == 0, result)
    disk.bad = {name: len(FILES[name]) * 2 // 3}
    said = f"preprocess_data: {os.path.join(disk.folder, name)}: read: Input/output error\n"
    for flags in ((), ("--resume",)):
        before = disk.failed_reads
        result = run(program, inputs, out, *flags)
        expect(f"{name} {flags}", result.returncode == 1 and result.stderr.endswith(said), result)
        expect("it met the bad place", disk.failed_reads > before, result)
        left = [path for path in files_of(out) if not path.endswith((".partial", ".journal"))]
        expect(f"nothing half: {left}", not left, result)
    disk.bad = {}
    result = run(program, inputs, out, "--resume")
    expect(f"{name} can be read again", result.returncode == 0, result)
    expect(f"{name}: equal files", files_of(out) == files_of(clean), result)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "disk").mkdir()
        try:
            with FailingFileSystem(folder / "disk", FILES) as disk:
                for name in FILES:
                    check(program, disk, name, folder)
        except NoFuse as e:
            print(f"NOT tested: no file system can be mounted by FUSE here ({e})")
            sys.exit(77)
    print(f"{len(FILES)} files failed, and the runs resumed")


if __name__ == "__main__":
    main()
