#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that data that is read or written only once does not stay in the page cache.

usage: page_cache.py --bin FOLDER

Runs preprocess_data and merge_datasets on files that are not in memory, and measures how much of these
files is in memory afterwards. Repeats this under strace, which refuses RWF_DONTCACHE, as kernels before
Linux 6.14 do. Finally, checks that an input stays in memory if it was there before the run.

Exits with 77 if there is no strace, or if the kernel cannot report or drop the pages of a file.
"""

import argparse
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MIB = 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)
CACHESTAT = 451
REFUSE = ["strace", "-f", "-o", "/dev/null", "-e", "trace=pwritev2,preadv2",
          "-e", "inject=pwritev2,preadv2:error=EOPNOTSUPP"]


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(77)


def resident(path):
    """Returns which fraction of a file is in memory, from 0 to 1."""
    size = path.stat().st_size
    asked = (ctypes.c_uint64 * 2)(0, 0)
    told = (ctypes.c_uint64 * 5)()
    with open(path, "rb") as file:
        if LIBC.syscall(CACHESTAT, file.fileno(), asked, told, 0) != 0:
            skip("this kernel has no cachestat (6.5)")
    return told[0] * 4096 / size


def put_out(path):
    """Drops a file from memory."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          timeout=200)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")


def expect(path, what, low, high):
    share = resident(path)
    print(f"{what}: {path.name} {share:.3f} in memory")
    if not low <= share <= high:
        sys.exit(f"{what}: {share:.3f} of {path} is in memory, expected {low} to {high}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    given = parser.parse_args()
    if shutil.which("strace") is None:
        skip("there is no strace")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        parts = folder / "parts"
        parts.mkdir()
        text = folder / "text.jsonl"
        line = '{"text": "' + "a line of some length, many times over. " * 25 + '"}\n'
        text.write_text(line * (96 * MIB // len(line)))
        put_out(text)
        if resident(text) > 0.05:
            skip("this file system keeps what it is told to let go of")
        preprocess = [given.bin / "preprocess_data", "--input", text, "--overwrite",
                      "--tokenizer-type", "ByteLevelTokenizer", "--output-prefix"]
        for what, before in (("as the kernel does", []), ("where it refuses", REFUSE)):
            put_out(text)
            for part in ("a", "b"):
                run(*before, *preprocess, parts / part)
                expect(parts / f"{part}_text_document.bin", what, 0, 0.3)
            expect(text, what, 0, 0.1)
            merged = folder / f"merged{len(before)}"
            run(*before, given.bin / "merge_datasets", "--input", parts, "--output-prefix", merged)
            expect(pathlib.Path(f"{merged}.bin"), f"merge, {what}", 0, 0.3)
            expect(parts / "a_text_document.bin", f"merge, {what}", 0, 0.1)
        text.read_bytes()
        expect(text, "read by somebody", 0.9, 1.1)
        run(*REFUSE, *preprocess, folder / "c")
        expect(text, "of somebody else", 0.9, 1.1)


if __name__ == "__main__":
    main()
