# SPDX-License-Identifier: Apache-2.0
"""Runs the Python blocks of the front page and of the package's README, as a reader would type them."""
import importlib.util
import re
import shutil
import subprocess
import sys

import millrace
from conftest import ROOT

FRONT = ROOT / "README.md"
README = ROOT / "loader/python/README.md"


def blocks_of(readme):
    return re.findall(r"```python\n(.*?)```", readme.read_text(), re.S)


def test_snippets(tmp_path):
    shutil.copy(ROOT / "scripts/sample/corpus.jsonl", tmp_path)
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(ROOT / "tests/golden/tiny_bpe" / name, tmp_path)
    (tmp_path / "out").mkdir()
    blocks = blocks_of(README)
    assert len(blocks) >= 4
    run = [block for block in blocks
           if all(importlib.util.find_spec(name) for name in ("torch", "jax") if f"import {name}" in block
                  or f"from {name}" in block)]
    assert len(run) >= 3
    done = subprocess.run([sys.executable, "-c", "\n".join(run)], cwd=tmp_path, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(8, 64) int64\n")


def test_front_page(tmp_path):
    (tmp_path / "out").mkdir()
    millrace.preprocess(ROOT / "scripts/sample/corpus.jsonl", tmp_path / "out/sample",
                        tokenizer=ROOT / "tests/golden/tiny_bpe/vocab.json", append_eod=True)
    [block] = blocks_of(FRONT)
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(8, 64) int64\n")
