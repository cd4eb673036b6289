# SPDX-License-Identifier: Apache-2.0
"""Runs the examples as their docstrings say. Each example is skipped where its packages are not installed."""
import importlib.util
import os
import signal
import subprocess
import sys
import zlib

import millrace
import pytest
from conftest import ROOT

EXAMPLES = ROOT / "loader/python/examples"
VOCABULARY = ROOT / "tests/golden/tiny_bpe/vocab.json"


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name.split(".")[0]) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The prefix of the sample corpus, and the number of ids of its tokenizer."""
    folder = tmp_path_factory.mktemp("sample")
    done = millrace.preprocess(ROOT / "scripts/sample/corpus.jsonl", folder / "sample", tokenizer=VOCABULARY,
                               append_eod=True)
    return done.outputs[0].prefix, millrace.Tokenizer.from_file(VOCABULARY)


def example(name, *arguments, ranks=1, **options):
    launcher = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return subprocess.Popen([sys.executable, *launcher, str(EXAMPLES / name), *map(str, arguments)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1"}, **options)


def steps_of(process):
    """{step: (loss, checksum of the tokens)}"""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return {int(step): (float(loss), tokens) for step, loss, tokens in map(str.split, out.splitlines())}


@needs("torch")
def test_gpt_is_killed_and_resumed(sample, tmp_path):
    prefix, tokenizer = sample
    arguments = (prefix, "--vocab-size", tokenizer.vocab_size, "--steps", 40)
    whole = steps_of(example("train_gpt.py", *arguments, "--checkpoint", tmp_path / "whole.pt"))
    assert list(whole) == list(range(40))
    first, last = (sum(whole[step][0] for step in steps) / 5 for steps in (range(5), range(35, 40)))
    assert last < first - 0.5, "the loss does not fall"

    checkpoint = tmp_path / "killed.pt"
    killed = example("train_gpt.py", *arguments, "--checkpoint", checkpoint)
    for line in killed.stdout:
        if line.startswith("24 "):
            killed.send_signal(signal.SIGKILL)
            break
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    saved = checkpoint.read_bytes()
    resumed = steps_of(example("train_gpt.py", *arguments, "--checkpoint", checkpoint, "--resume"))
    assert resumed == {step: whole[step] for step in range(20, 40)}

    checkpoint.write_bytes(saved)
    two = steps_of(example("train_gpt.py", *arguments, "--checkpoint", checkpoint, "--resume", ranks=2))
    assert list(two) == list(range(20, 40))
    for step, (loss, tokens) in two.items():
        assert tokens == whole[step][1]
        assert abs(loss - whole[step][0]) < 1e-5


@needs("jax")
def test_jax_gets_the_same_tokens(sample, tmp_path):
    prefix, tokenizer = sample
    steps = steps_of(example("train_jax.py", prefix, "--vocab-size", tokenizer.vocab_size, "--steps", 40))
    assert steps[39][0] < steps[0][0] - 0.2, "the loss does not fall"
    run = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=64, train_samples=320)
    assert list(steps) == list(range(40))
    for t, batch in zip(steps, millrace.Loader(run, micro_batch_size=8)):
        assert steps[t][1] == f"{zlib.crc32(batch['tokens'].tobytes()):08x}"


@needs("torch", "megatron.core")
def test_megatron_side_by_side(sample):
    prefix, tokenizer = sample
    process = example("megatron_side_by_side.py", prefix, "--eod", tokenizer.eod)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert [line.split(":")[0] for line in out.splitlines() if "are equal" in line] == ["train", "valid", "test"]
