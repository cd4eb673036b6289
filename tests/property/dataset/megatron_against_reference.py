#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our indices with those of megatron-core, file by file and byte by byte. Corpora, splits, lengths, numbers of
samples and seeds are random. Also compares some samples with the samples that megatron-core serves.

usage: megatron_against_reference.py --driver D [--cases N] [--seed S]
       megatron_against_reference.py --plant-bugs [--cases N] [--seed S]

The driver is the program of tests/support/megatron_index.cpp. With --plant-bugs it is built here,
by $CXX or c++, once for each bug that is put into a copy of our sources; each must be found. The seed
is printed; the same seed gives the same cases. Cases that Megatron refuses, or would never finish, are
skipped and counted; we must refuse them too. Exits 1 on a difference, on a bug that was not found, and
if one of BRANCHES was never reached in 400 corpora or more; 77 if megatron-core is missing.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings

import met_branches

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import planted_bugs  # noqa: E402

warnings.filterwarnings("ignore")  # from packages that megatron-core would use for training
try:
    import numpy
    import torch  # noqa: F401
    from megatron.core.datasets import gpt_dataset, helpers
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
except ImportError as missing:
    print(f"skipped: needs the Python package megatron-core ({missing})")
    sys.exit(77)

SUPPORT = pathlib.Path(__file__).resolve().parents[2] / "support"
PARTS = ("train", "valid", "test")
FILES = ("description.txt", "document_index.npy", "sample_index.npy", "shuffle_index.npy")

BRANCHES = (
    "train", "valid", "test", "one epoch", "separate last epoch", "epochs shuffled together",
    "partial validation sample", "large partial validation", "no extra token", "int64 sample index",
    "int64 shuffle index", "size left out", "no samples", "empty sequences", "a part with data of its own",
    "two threads", "longer than an epoch", "inverse checked", "left out: endless: samples of no tokens",
    "left out: no such split", "left out: sequence length 1, where HEAD asserts")

# See planted_bugs.py.
BUGS = (
    ("the last epoch is separate at 0.80, too",
     "of_last < static_cast", "of_last <= static_cast"),
    ("every epoch is shuffled by itself",
     "run(0, ends_[0]);",
     "for (std::int64_t i = 0; i < ends_[0]; i += plan_.sequences.size()) "
     "run(i, i + plan_.sequences.size());"),
    ("bounds of a split are rounded up from the middle",
     "above_it == 0.5 && integer % 2 != 0", "above_it == 0.5"),
    ("partial samples are counted in double precision",
     "const volatile float quotient = static_cast<float>($tokens) / static_cast<float>($length)",
     "const volatile double quotient = static_cast<double>($tokens) / static_cast<double>($length)"),
    ("empty sequences before the first token are passed over",
     "rows_[0] = 0; rows_[1] = 0;", ""),
    ("a draw is taken for an interval of one",
     "settled(0);", "(void)twister_(); settled(0);"),
    ("a first bound of 0 is always printed as a float",
     "i == 0 ? python_json::integer(0) : python_json::real(bounds_[i])",
     "python_json::real(bounds_[i])"),
)


class Tokenizer:
    """The parts of a tokenizer that a description needs."""
    def __init__(self, rng):
        self.unique_identifiers = {"class": "some.Tokenizer", "tokenizer_path": rng.choice([None, "a/b"]),
                                   "vocab_size": str(rng.randrange(1000)),
                                   rng.choice(["legacy", "\u00e9t\u00e9\"\\"]): rng.choice([[], {}, 0.5, 1e-7, True])}
        self.vocab_size, self.pad, self.eod, self.eos = 100000, -1, -2, -2


class Limits:
    """Replaces numpy in Megatron's modules. Reports other largest numbers, which change the choice of types."""
    def __init__(self, **limits):
        self.limits = limits

    def __getattr__(self, name):
        return getattr(numpy, name)

    def iinfo(self, dtype):
        limit = self.limits.get(numpy.dtype(dtype).name)
        return type("Info", (), {"max": limit}) if limit is not None else numpy.iinfo(dtype)


def write_corpus(prefix, lengths, tokens_too):
    """Writes an int32 dataset whose tokens count up from 0. Without `tokens_too`, leaves out the tokens."""
    pointers = numpy.cumsum([0] + lengths[:-1], dtype=numpy.int64) * 4
    with open(f"{prefix}.idx", "wb") as out:
        out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, len(lengths), len(lengths) + 1))
        out.write(numpy.array(lengths, dtype="<i4").tobytes() + pointers.astype("<i8").tobytes())
        out.write(numpy.arange(len(lengths) + 1, dtype="<i8").tobytes())
    with open(f"{prefix}.bin", "wb") as out:
        out.write(numpy.arange(sum(lengths) if tokens_too else 1, dtype="<i4").tobytes())


def random_split(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return "969, 30, 1"
    if kind == 1:
        return rng.choice(["100,0,0", "0,1,1", "1,1", "1,0,1", "0,0,1", "1/1/2", "1e-3", ".5;.25;.25",
                           "0,0,0", "1,2,3,4", "x"])  # the last three are invalid
    numbers = [rng.choice([rng.randrange(0, 100), round(rng.random(), 3)]) for _ in range(rng.choice([2, 3]))]
    return rng.choice([",", ", ", ":"]).join(map(str, numbers))


def random_case(rng):
    """Draws lengths and a request. Some cases are so large that single precision affects the result."""
    large = rng.random() < 0.08
    if large:
        lengths = [rng.randrange(1, 2**rng.randrange(20, 27)) for _ in range(rng.randrange(1, 6))]
        if rng.random() < 0.5:
            lengths = [rng.choice([134217737, 2**24 + rng.randrange(3), 2**26 + rng.randrange(9)])]
        length = rng.choice([4096, 2048, 1000, 8191])
    else:
        most = rng.choice([2, 5, 20, 60, 300])
        lengths = [0 if rng.random() < 0.15 else rng.randrange(1, most) for _ in range(rng.randrange(1, 40))]
        length = rng.choice([1, 2, 3, 4, 8, 16, 37, 128])
    return lengths, length, large


def random_samples(rng, tokens, length, extra):
    """Draws None, a small number, or a number near the end of an epoch or near the limit for a separate last epoch."""
    kind = rng.randrange(5)
    if kind == 0 or tokens == 0:
        return rng.choice([None, None, 0, 3])
    epochs = rng.randrange(1, 6)
    if kind == 1:
        return max(0, ((epochs * tokens - extra) // length) + rng.randrange(-2, 3))
    if kind in (2, 3):
        per_epoch = (tokens - extra) // length
        return max(0, (epochs * tokens - extra) // length + int(0.8 * per_epoch) + rng.randrange(-1, 2))
    return rng.randrange(0, 200)


def bounds_of(split, count):
    """Returns the bounds of each part, by Megatron's own code; None if a part has no weight or the split is refused."""
    if split is None:
        return [(0, count)] * 3
    from megatron.core.datasets import blended_megatron_dataset_config as c
    try:
        matrix = c.convert_split_vector_to_split_matrix(c.parse_and_normalize_split(split))
        return [None if m is None else tuple(int(round(b * float(count))) for b in m) for m in matrix]
    except (AssertionError, ValueError, ZeroDivisionError):
        return None


def samples_of(dataset, k):
    text, documents = dataset._query_document_sample_shuffle_indices(k)
    return text.tolist(), documents.tolist()


def compare_samples(dataset, answer, lengths, seen):
    """Compares Megatron's samples with our pieces, token by token. Checks the inverse by searching all samples."""
    starts = numpy.cumsum([0] + lengths).tolist()
    for shown in answer["shown"]:
        text, documents = samples_of(dataset, shown["k"])
        ours = [starts[s] + first + i for s, first, tokens in shown["pieces"] for i in range(tokens)]
        assert ours + [-1] * shown["padding"] == text, ("tokens", shown)
        assert [s for s, _, _ in shown["pieces"]] == documents, ("documents", shown)
        if ours and len(dataset) <= 150:
            holders = [k for k in range(len(dataset)) if ours[0] in samples_of(dataset, k)[0]]
            assert shown["with"] == holders, ("samples with a token", shown, holders)
            seen["inverse checked"] += 1


def run_case(rng, number, folder, driver, seen):
    lengths, length, large = random_case(rng)
    prefix = f"{folder}/corpus_{number}"
    write_corpus(prefix, lengths, not large)
    split = random_split(rng) if rng.random() < 0.8 else None
    bounds = bounds_of(split, len(lengths))
    extra, drop = rng.random() < 0.7, rng.random() < 0.5
    tokenizer, seed = Tokenizer(rng), rng.choice([1234, 0, 2**32 - 1, rng.randrange(2**32)])
    wide_sample, wide_shuffle = rng.random() < 0.15, rng.random() < 0.15
    threads = rng.choice([1, 2])
    if sum(lengths) == 0:
        seen["left out: no tokens at all"] += 1
        return

    def ask(part, samples):
        case = "\t".join(map(str, (
            prefix, f"{folder}/ours", "-" if split is None else split, part, length,
            "-" if samples is None else samples, seed, int(extra), int(drop), int(wide_sample),
            int(wide_shuffle), threads, json.dumps(tokenizer.unique_identifiers))))
        driver.stdin.write(case + "\n")
        driver.stdin.flush()
        return case, json.loads(driver.stdout.readline())

    if bounds is None:
        case, answer = ask(0, 1)
        assert "refused" in answer, f"Megatron refuses the split, we do not: {case}\n{answer}"
        seen["left out: no such split"] += 1
        return
    for index, part in enumerate(PARTS):
        if bounds[index] is None:
            continue
        tokens = sum(lengths[bounds[index][0]:bounds[index][1]])
        samples = random_samples(rng, tokens, length, extra)
        case, answer = ask(index, samples)
        where = f"case {number} {part}: {case}\nlengths {lengths}\nanswer {json.dumps(answer)[:600]}"
        reason = None
        if length < 2:
            reason = "sequence length 1, where HEAD asserts"
        elif tokens == 0 and samples:
            reason = "endless: samples of no tokens"
        elif tokens == 1 and samples:
            reason = "samples of one token, where HEAD asserts"
        elif tokens == 0 and samples == 0:
            assert answer.get("samples") == 0, where  # Megatron would loop forever
            seen["left out: endless, but of length 0 here"] += 1
            continue
        if reason is None:
            helpers.numpy = Limits(int32=-1) if wide_sample else numpy
            gpt_dataset.numpy = Limits(uint32=0) if wide_shuffle else numpy
            try:
                dataset = reference_part(prefix, split, index, samples, folder, bounds[index], dict(
                    random_seed=seed, sequence_length=length, tokenizer=tokenizer,
                    drop_last_partial_validation_sequence=drop, add_extra_token_to_sequence=extra))
            except AssertionError as e:
                reason = f"Megatron asserts: {e}"
            finally:
                helpers.numpy = gpt_dataset.numpy = numpy
        if reason is None and "refused" in answer and "single precision" in answer["refused"]:
            seen["left out: single precision counts wrong, where HEAD asserts"] += 1
            continue
        if reason is not None:
            assert "refused" in answer, f"{where}\nexpected a refusal: {reason}"
            seen["left out: " + reason] += 1
            continue
        assert "refused" not in answer, where
        name = f"{dataset.unique_description_hash}-GPTDataset-{part}"
        assert answer["name"] == name, f"{where}\n{dataset.unique_description}"
        for file in FILES:
            ours, theirs = (pathlib.Path(f"{folder}/{which}/{name}-{file}") for which in ("ours", "theirs"))
            assert ours.read_bytes() == theirs.read_bytes(), f"{where}\n{file} differs"
        assert answer["samples"] == len(dataset), where
        if not large:
            try:
                compare_samples(dataset, answer, lengths, seen)
            except AssertionError as e:
                raise AssertionError(f"{where}\n{e}") from None
        seen["compared"] += 1
        seen[part] += 1
        seen["one epoch" if answer["epochs"] == 1 else
             "separate last epoch" if answer["separate"] else "epochs shuffled together"] += 1
        for condition, what in ((answer["partial"], "partial validation sample"),
                                (large and part == "valid" and not drop, "large partial validation"),
                                (not extra, "no extra token"), (wide_sample, "int64 sample index"),
                                (wide_shuffle, "int64 shuffle index"), (samples is None, "size left out"),
                                (answer["samples"] == 0, "no samples"), (0 in lengths, "empty sequences"),
                                (split is None, "a part with data of its own"),
                                (threads == 2, "two threads"), (length > tokens, "longer than an epoch")):
            seen[what] += bool(condition)
    for suffix in (".idx", ".bin"):
        os.unlink(prefix + suffix)
    for which in ("ours", "theirs"):
        shutil.rmtree(f"{folder}/{which}", ignore_errors=True)


def reference_part(prefix, split, index, samples, folder, bounds, config):
    """Builds one part with Megatron's own class, in the same way as its builder."""
    config = GPTDatasetConfig(
        blend=([prefix], None) if split is not None else None,
        blend_per_split=None if split is not None else [([prefix], None), None, None], split=split,
        path_to_cache=f"{folder}/theirs", reset_position_ids=False, reset_attention_mask=False,
        eod_mask_loss=False, create_attention_mask=False, **config)
    builder = BlendedMegatronDatasetBuilder(GPTDataset, [None] * 3, lambda: True, config)
    matrix = list(config.split_matrix) if split is not None else [(0.0, 1.0)] * 3
    matrix = [m if i == index else None for i, m in enumerate(matrix)]
    sizes = [samples if i == index else None for i in range(3)]
    return builder._build_megatron_dataset_splits(prefix, matrix, sizes)[index]


def run(driver_path, cases, seed):
    """The branches that were reached. Raises AssertionError at the first difference."""
    rng = random.Random(seed)
    seen = collections.Counter()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        driver = subprocess.Popen([driver_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            for number in range(cases):
                run_case(rng, number, folder, driver, seen)
        finally:
            driver.stdin.close()
            driver.wait()
    return seen


def plant(bug, folder, source="megatron_index.cpp"):
    """Builds the driver with a planted bug, from a copy of the dataset library."""
    root = SUPPORT.parent.parent
    copy = pathlib.Path(folder) / "dataset"
    shutil.rmtree(copy, ignore_errors=True)
    for part in ("include", "src"):
        shutil.copytree(root / "dataset" / part, copy / part)
    file, text = planted_bugs.Library.read(copy).plant(bug)
    (copy / file).write_text(text)
    library = copy / "all.cpp"
    library.write_text("".join(f'#include "{each}"\n' for each in sorted((copy / "src").rglob("*.cpp"))))
    driver = f"{folder}/driver"
    subprocess.run([*planted_bugs.COMPILER, "-O1", "-DNDEBUG", "-DMILLRACE_INLINE=", f"-I{copy}/include",
                    f"-I{root}/formats/include", f"-I{SUPPORT.parent}", str(SUPPORT / source), str(library), "-o", driver],
                   check=True)
    return driver


def report_planted(bugs, compare, source="megatron_index.cpp"):
    """Reports for each bug whether `compare(driver)` finds it in a driver that has the bug. Returns the exit status."""
    def find(bug):
        with tempfile.TemporaryDirectory() as folder:
            driver = plant(bug, folder, source)
            try:
                compare(driver)
            except AssertionError as difference:
                return f"{str(difference).splitlines()[0][:60]} ..."
        return None

    return planted_bugs.report(bugs, find)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--plant-bugs", action="store_true")
    options = parser.parse_args()
    if not options.plant_bugs:
        print(f"seed {options.seed}", flush=True)
        seen = run(options.driver, options.cases, options.seed)
        met_branches.show(seen, options.cases, "corpora", options.seed)
        met_branches.require(seen, BRANCHES, options.cases, 400)
        return
    sys.exit(report_planted(BUGS, lambda driver: run(driver, options.cases, options.seed)))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as difference:
        print(difference)
        sys.exit(1)
