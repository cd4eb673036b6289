#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The public headers, which are all that are installed outside of folders named detail: how many there are
at most, and whether each has an example that compiles.

usage: public_headers.py      from the top of the sources, with the compiler in $CXX (c++)

An example is a comment of whole lines in the header: "// Example:", an empty line of comment, then the
body of a function, indented by four spaces.
"""
import os
import pathlib
import re
import subprocess
import sys

FOLDERS = ("formats/include", "dataset/include", "loader/include", "loader/cuda/include", "preprocess/tokenizer/include")
MOST = {"formats": 12, "the others": 23}
EXAMPLE = re.compile(r"^// Example:\n//\n((?://     .*\n|//\n)+)", re.M)
STANDARD = ("cstddef", "cstdint", "fstream", "iostream", "iterator", "span", "string", "vector")


def main():
    faults, includes, bodies = [], [], []
    counts = dict.fromkeys(MOST, 0)
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*.hpp")):
            if "detail" in path.parts:
                continue
            counts["formats" if folder.startswith("formats/") else "the others"] += 1
            includes.append(f"#include <{path.relative_to(folder)}>\n")
            text = path.read_text(encoding="utf-8")
            found = EXAMPLE.findall(text)
            if not found:
                faults.append(f"{path}: has no example; expected a comment that begins with '// Example:'")
            for example in found:
                line = text[:text.index(example)].count("\n") + 1
                code = re.sub(r"^// {0,5}", "", example, flags=re.M)
                bodies.append(f"void example_{len(bodies)}() {{\n#line {line} \"{path}\"\n{code}}}\n")
    for part, most in MOST.items():
        print(f"{counts[part]} public headers in {part}, at most {most}")
        if counts[part] > most:
            faults.append(f"{counts[part]} public headers in {part}, expected at most {most}: "
                          "make one private by moving it into a folder detail")
        if counts[part] == 0:
            faults.append(f"found no public header in {part}")
    source = "".join(f"#include <{header}>\n" for header in STANDARD) + "".join(includes) + "".join(bodies)
    made = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", *(f"-I{f}" for f in FOLDERS),
                           "-x", "c++", "-"], input=source, text=True, check=False)
    if made.returncode != 0:
        faults.append(f"an example of the {len(bodies)} does not compile")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
