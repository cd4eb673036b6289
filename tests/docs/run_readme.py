#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the shell blocks of the README and of those of preprocess, in order, as a user would type them.

usage: run_readme.py SOURCE_DIR BIN_DIR

They run in a scratch folder that looks like a checkout with a finished build. The first block,
scripts/quickstart and scripts/test, builds everything itself and is left to .ci/run.

The root README may have at most 150 lines, bench/README.md at most 100.

The shell blocks of the other READMEs take hours, a GPU or packages of Python. Of these, bash checks the syntax,
and every script of the repository that they name must be there.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

source, programs = map(pathlib.Path, sys.argv[1:])
FRONT = source / "README.md"
RUN = [source / "preprocess/tokenizer/README.md", source / "preprocess/README.md"]
MOST_LINES = {FRONT: 150, source / "bench/README.md": 100}


def blocks_of(readme):
    return re.findall(r"```sh\n(.*?)```", readme.read_text(), re.S)


for readme, most in MOST_LINES.items():
    if (lines := len(readme.read_text().splitlines())) > most:
        sys.exit(f"{readme}: {lines} lines, expected at most {most}; move details to the README of a folder")
blocks = blocks_of(FRONT)
if len(blocks) < 3 or "scripts/quickstart" not in blocks[0]:
    sys.exit("README.md: expected the two commands first, then at least two examples in ```sh")
with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    (folder / "build").mkdir()
    (folder / "build/bin").symlink_to(programs)
    for name in ("scripts", "tests"):
        (folder / name).symlink_to(source / name)
    for block in blocks[1:] + [block for readme in RUN for block in blocks_of(readme)]:
        print(block, flush=True)
        subprocess.run(["bash", "-euc", block], cwd=folder, check=True)

checked = 0
for readme in sorted(source.rglob("README.md")):
    if readme in (FRONT, *RUN) or "build" in readme.relative_to(source).parts:
        continue
    for block in blocks_of(readme):
        checked += 1
        subprocess.run(["bash", "-nc", block], check=True)
        for named in re.findall(r"(?<![\w/.])(?:bench|scripts|tests)/[\w/.-]+", block):
            if not (source / named).exists():
                sys.exit(f"{readme}: there is no {named}")
if checked < 2:
    sys.exit(f"{checked} shell blocks in the READMEs of folders, expected 2 or more")
