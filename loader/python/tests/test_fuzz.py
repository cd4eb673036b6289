# SPDX-License-Identifier: Apache-2.0
"""Random arguments and damaged files: each call returns or raises, and the interpreter goes on."""
import itertools
import os
import pathlib

import millrace
import numpy as np
import pytest
from conftest import ROOT, random_documents, write_dataset

CALLS = int(os.environ.get("MILLRACE_FUZZED_CALLS", "400"))
# What a call may raise. MemoryError: an argument asks for more memory than there is.
EXPECTED = (millrace.Error, TypeError, ValueError, OSError, OverflowError, IndexError, KeyError, MemoryError,
            StopIteration, BufferError)
NUMBERS = [-1, 0, 1, 2, 3, 7, 64, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**70, -2**63, 0.5, float("nan"), True]
OTHERS = [None, "", "x", "\0", "é" * 300, b"bytes", [], [1], [[]], {}, (), object(), np.int64(3), np.zeros(2)]


def value(random, fitting):
    pool = [fitting, fitting, NUMBERS, OTHERS][int(random.integers(4))]
    return pool[int(random.integers(len(pool)))]


def attempt(call, *arguments, **named):
    try:
        return call(*arguments, **named)
    except EXPECTED as problem:
        assert str(problem) or isinstance(problem, (StopIteration, MemoryError)), repr(problem)
        return None


def use(loader):
    """Takes some batches, which are small."""
    for batch in itertools.islice(loader, 3):
        for array in batch.values():
            np.asarray(array).sum()


def test_arguments_of_runs_and_loaders(prefix):
    random = np.random.default_rng(5)
    runs, loaders = 0, 0
    for _ in range(CALLS):
        named = {"seq_length": value(random, [1, 8, 31])}
        kind = [millrace.MegatronRun, millrace.InstantRun][int(random.integers(2))]
        named["data_path"] = value(random, [[prefix], [prefix], [1, prefix, "2", prefix], [prefix, prefix]])
        if random.integers(2):
            named["train_samples"] = value(random, [None, 1, 50])
        if random.integers(3) == 0:
            named["seed"] = value(random, [1, 5])
        if random.integers(4) == 0:
            named["split"] = value(random, ["1", "90,10", "969, 30, 1"])
        if random.integers(4) == 0:
            named["fields"] = value(random, [("tokens",), ("labels", "cu_seqlens")])
        run = attempt(kind, **named)
        if run is None:
            continue
        runs += 1
        attempt(run.__getitem__, value(random, [0, 1, -1]))
        options = {"micro_batch_size": value(random, [1, 3])}
        fitting = {"rank": [0], "world_size": [1, 2], "global_batch_size": [None, 6], "consumed_samples": [0, 6],
                   "fields": [("tokens", "labels")], "output": ["numpy", "dlpack"], "dtype": ["int64", "source"],
                   "sampler": ["single", "cyclic"], "threads": [None, 1, 2], "look_ahead": [None, 1],
                   "max_held": [None, 4], "reuse": [True, False], "names": ["megatron", "hf"],
                   "rampup_batch_size": [None, (2, 2, 10)], "edits": [None, [{"skip_samples": [0, 2], "why": "x"}]],
                   "context_parallel": [1], "device": ["cpu"]}
        for name in random.choice(list(fitting), int(random.integers(4)), replace=False):
            options[str(name)] = value(random, fitting[str(name)])
        # Numbers that ask for terabytes are not tried: whether they are there depends on the machine.
        if any(isinstance(options.get(name), (int, float)) and options[name] > 1000
               for name in ("micro_batch_size", "threads", "look_ahead")) or run.seq_length > 10**6:
            continue
        loader = attempt(millrace.Loader, run, **options)
        if loader is not None:
            loaders += 1
            attempt(use, loader)
            attempt(loader.load_state_dict, value(random, [loader.state_dict()]))
    assert runs > CALLS / 20 and loaders > CALLS / 100


def test_damaged_datasets(tmp_path):
    random = np.random.default_rng(6)
    prefix = pathlib.Path(write_dataset(tmp_path / "whole", random_documents(3)))
    index, text = prefix.with_suffix(".idx").read_bytes(), prefix.with_suffix(".bin").read_bytes()
    opened = 0
    for number in range(CALLS // 2):
        damaged = tmp_path / f"damaged{number % 4}"
        new = bytearray(index)
        for _ in range(int(random.integers(1, 4))):
            new[int(random.integers(len(new)))] = int(random.integers(256))
        cut = int(random.integers(len(new) + 1)) if random.integers(4) == 0 else len(new)
        damaged.with_suffix(".idx").write_bytes(bytes(new[:cut]))
        damaged.with_suffix(".bin").write_bytes(text if random.integers(4) else text[:int(random.integers(len(text)))])
        data = attempt(millrace.IndexedDataset, damaged)
        if data is None:
            continue
        opened += 1
        for i in range(0, min(len(data), 200), 7):
            attempt(lambda i=i: np.asarray(data[i]).sum())
        attempt(data.get, value(random, [0, 3]), value(random, [0, 2]), value(random, [1, 5]))
        run = attempt(millrace.MegatronRun, data_path=[damaged], seq_length=16, split="1", train_samples=20)
        if run is not None:
            attempt(lambda run=run: use(millrace.Loader(run, micro_batch_size=2)))
    assert opened > CALLS / 40


def test_arguments_of_tokenizers(tmp_path):
    random = np.random.default_rng(7)
    files = [ROOT / "tests/golden/tiny_bpe/vocab.json", ROOT / "tests/golden/tiny_bpe/merges.txt", ROOT / "README.md",
             tmp_path, tmp_path / "nothing"]
    whole = files[0].read_bytes()
    for _ in range(CALLS // 4):
        damaged = bytearray(whole)
        damaged[int(random.integers(len(damaged)))] = int(random.integers(256))
        folder = tmp_path / "damaged"
        folder.mkdir(exist_ok=True)
        (folder / "vocab.json").write_bytes(bytes(damaged))
        (folder / "merges.txt").write_bytes(files[1].read_bytes())
        for path in (value(random, files), folder / "vocab.json"):
            attempt(millrace.Tokenizer.from_folder, value(random, [folder]))
            tokenizer = attempt(millrace.Tokenizer.from_file, path)
            if tokenizer is not None:
                attempt(tokenizer.encode, value(random, ["a text", "\ud800", "ab\0c"]))
                attempt(tokenizer.encode_batch, value(random, [["a", "b"], []]))
                attempt(tokenizer.decode, value(random, [[1, 2], [10**6], [-1]]))


@pytest.mark.parametrize("call", [millrace.where, millrace.audit, millrace.verify, millrace.merge, millrace.preprocess])
def test_arguments_of_programs(call, prefix, tmp_path):
    random = np.random.default_rng(8)
    for _ in range(max(4, CALLS // 100)):
        arguments = [value(random, [prefix, [prefix], tmp_path]) for _ in range(int(random.integers(3)))]
        attempt(call, *arguments, **{name: value(random, [1]) for name in random.choice(
            ["seq_length", "rank", "vocab_size", "workers", "tokenizer"], int(random.integers(2)), replace=False)})
