#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs loader/examples/blend.cpp as its header says: a run that resumes from its state serves what an
uninterrupted run serves.

usage: run_blend.py BIN_DIR SAMPLE
"""
import pathlib
import subprocess
import sys
import tempfile

programs, sample = pathlib.Path(sys.argv[1]), sys.argv[2]


def run(*command, status=0):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != status:
        sys.exit(f"{command}: exit status {done.returncode}, expected {status}\n{done.stderr}")
    return done


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    blend = []
    for name, weight in (("a", 0.7), ("b", 0.3)):
        run(programs / "preprocess_data", "--input", sample, "--output-prefix", folder / name,
            "--tokenizer-type", "ByteLevelTokenizer")
        blend += [folder / f"{name}_text_document", weight]
    example = programs / "example_blend"
    whole = run(example, folder / "whole.json", 8, *blend).stdout
    first = run(example, folder / "state.json", 3, *blend).stdout
    rest = run(example, folder / "state.json", 5, *blend).stdout
    if len(whole.splitlines()) != 8 or len(set(line.split(":")[1] for line in whole.splitlines())) != 8:
        sys.exit(f"expected 8 different batches:\n{whole}")
    if first + rest != whole:
        sys.exit(f"resumed:\n{first}{rest}\nuninterrupted:\n{whole}")
    if not run(example, status=2).stderr.startswith("usage: example_blend "):
        sys.exit("no usage without arguments")
    if "nowhere.idx" not in run(example, folder / "new.json", 1, "nowhere", 1, status=1).stderr:
        sys.exit("a wrong path is not named")
