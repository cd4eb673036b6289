#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encodes lines of 20 and 500 MB and compares their memory and tokens.

    giant_line_memory.py --driver build/bin/bench_giant_line --vocabulary tests/golden/tiny_bpe

Exits 1 if the longer line takes 32 MB more, or if its number of tokens does not match its size.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

BLOCK = "Some words, \\u00e9 and\\nmore of them; 中文。 don't 123 \\ud83d\\ude00 " * 5000


def measure(options, folder, blocks):
    line = folder / "line"
    with open(line, "w", encoding="utf-8") as out:
        out.write('{"meta": [1, {}], "text": "')
        for _ in range(blocks):
            out.write(BLOCK)
        out.write('"}')
    size = line.stat().st_size
    done = subprocess.run([options.driver, line, "text", "2", "--tokenizer-type", "GPT2BPETokenizer",
                           "--vocab-file", options.vocabulary / "vocab.json",
                           "--merge-file", options.vocabulary / "merges.txt"],
                          stdout=subprocess.PIPE, check=True)
    line.unlink()
    found = json.loads(done.stdout)
    print(f"{size / 1e6:.0f} MB: {found['tokens']} tokens, {found['peak_mb']} MB at most")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--driver", required=True, type=pathlib.Path, help="path of bench_giant_line")
    parser.add_argument("--vocabulary", required=True, type=pathlib.Path)
    options = parser.parse_args()
    per_block = len(BLOCK.encode())
    short, long = 20_000_000 // per_block, 500_000_000 // per_block
    with tempfile.TemporaryDirectory() as folder:
        small = measure(options, pathlib.Path(folder), short)
        large = measure(options, pathlib.Path(folder), long)
    # The last space is a token. Any other space is part of a token.
    if (small["tokens"] - 1) * long != (large["tokens"] - 1) * short:
        sys.exit("tokens do not grow with the line")
    if large["peak_mb"] > small["peak_mb"] + 32:
        sys.exit("memory grows with the line")


if __name__ == "__main__":
    main()
