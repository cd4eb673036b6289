#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each script of bench/ with --help, and bench/end_to_end/preprocess on the sample corpus.

usage: run_benches.py SOURCE_DIR BUILD_DIR

Checks that there are results, not their size. The other scripts need packages from PyPI, much disk or much time.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

source, build = map(pathlib.Path, sys.argv[1:])
SCRIPTS = ("end_to_end/first_sample", "end_to_end/linear_time", "end_to_end/merge", "end_to_end/plan_and_simulate",
           "end_to_end/repeated_documents", "end_to_end/preprocess", "end_to_end/time_to_first_batch", "peers/cold_reads",
           "peers/loader", "peers/megatron_index", "peers/bridge_rows", "peers/conversations", "peers/preprocess",
           "peers/tokenizers", "peers/verify")
MEMORY_INPUTS = 6


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def plain_lines():
    """The lines of the sample corpus whose text is a string; encode_corpus reads no others."""
    with open(source / "scripts/sample/corpus.jsonl", encoding="utf-8") as lines:
        return "".join(line for line in lines if isinstance(json.loads(line)["text"], str))


def rows(*flags, copies=1):
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "sample.jsonl"
        text.write_text(plain_lines() * copies, encoding="utf-8")
        said = run(source / "bench/end_to_end/preprocess", "--build", build, "--text", text, "--workers", 1, "--json", *flags)
    return [json.loads(line) for line in said.splitlines()]


def expect(true, what):
    if not true:
        sys.exit(f"bench/end_to_end/preprocess: {what}")


for path in (source / "bench").rglob("*.py"):
    compile(path.read_text(), path, "exec")
for script in SCRIPTS:
    expect(run(source / "bench" / script, "--help").startswith("usage: "), f"{script} --help does not begin with 'usage: '")

measured = {row["measure"]: row for row in rows("--rounds", 1)}
expect({"speed", "bound", "zstd", "kernel"} <= measured.keys(), f"measured only {list(measured)}")
bound = measured["bound"]
expect(all(bound[name] > 0 for name in "TRE"), f"expected positive T, R and E: {bound}")
expect(abs(bound["bound"] * (1 / bound["T"] + 1 / bound["R"]) - 1) < 1e-9, f"expected bound = 1 / (1/T + 1/R): {bound}")

# The kernel may count all processor seconds of a run of milliseconds as its own, so this one is longer.
[kernel] = rows("--measure", "kernel", "--rounds", 1, copies=400)
expect(kernel["MB written"] > 0 and kernel["seconds"] > 0, f"expected a run: {kernel}")
expect(kernel["program s"] > 0 and kernel["kernel s"] > 0 and kernel["kernel / loop's"] > 0,
       f"expected processor seconds of both sides: {kernel}")

memory = rows("--memory", "--scale", 0.0002, "--pipe")
expect(len(memory) == MEMORY_INPUTS, f"{len(memory)} inputs measured, expected {MEMORY_INPUTS}")
for row in memory:
    expect(row["so"] == "within", row)
    expect(row["lines"] > 0 and row["peak MB"] > 0, row)
