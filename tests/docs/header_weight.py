#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a source sees that includes the loader and the run types: at most 3,000 lines of our headers,
comments and blank lines not counted, and none of the system's headers in HEAVY.

usage: header_weight.py      from the top of the sources, with the compiler in $CXX (c++)
"""
import os
import pathlib
import re
import subprocess
import sys

INCLUDED = ("loader/batch_loader.hpp", "dataset/run.hpp", "dataset/megatron_run.hpp",
            "dataset/instant_run.hpp", "dataset/packed_run.hpp")
FOLDERS = ("formats/include", "dataset/include", "loader/include")
HEAVY = ("liburing.h", "immintrin.h", "csetjmp", "csignal")
MOST_LINES = 3000


def lines_of_code(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return sum(1 for line in text.splitlines() if line.split("//")[0].strip())


def main():
    source = "".join(f"#include <millrace/{header}>\n" for header in INCLUDED)
    made = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", *(f"-I{f}" for f in FOLDERS), "-M", "-x", "c++", "-"],
                          input=source, capture_output=True, text=True, check=True).stdout
    seen = made.replace("\\\n", " ").split()[1:]
    ours = sorted({path for path in seen if path.startswith(FOLDERS)},
                  key=lambda path: -lines_of_code(pathlib.Path(path).read_text()))
    if len(ours) < len(INCLUDED):
        sys.exit(f"header_weight.py: found only {ours} of our headers, expected {len(INCLUDED)} or more")
    lines = sum(lines_of_code(pathlib.Path(path).read_text()) for path in ours)
    heavy = sorted(path for path in seen if pathlib.Path(path).name in HEAVY)
    print(f"{lines} lines in {len(ours)} headers, at most {MOST_LINES}; the largest: {' '.join(ours[:5])}")
    for path in heavy:
        print(f"includes {path}, expected none of {' '.join(HEAVY)}")
    sys.exit(1 if heavy or lines > MOST_LINES else 0)


if __name__ == "__main__":
    main()
