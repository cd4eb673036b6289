#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the shell blocks of the README, in order, as a user would type them.

usage: run_readme.py SOURCE_DIR BIN_DIR

They run in a scratch folder that looks like a checkout with a finished build. The first block,
scripts/quickstart and scripts/test, builds everything itself and is left to .ci/run.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

source, programs = map(pathlib.Path, sys.argv[1:])
blocks = re.findall(r"```sh\n(.*?)```", (source / "README.md").read_text(), re.S)
if len(blocks) < 3 or "scripts/quickstart" not in blocks[0]:
    sys.exit("README.md: expected the two commands first, then at least two examples in ```sh")
with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    (folder / "build").mkdir()
    (folder / "build/bin").symlink_to(programs)
    for name in ("scripts", "tests"):
        (folder / name).symlink_to(source / name)
    for block in blocks[1:]:
        print(block, flush=True)
        subprocess.run(["bash", "-euc", block], cwd=folder, check=True)
