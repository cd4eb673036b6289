#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our blends with megatron-core's. Covers the greedy and the exhaustive loop, and what megatron-core's builder
makes of --data-path and the other data flags, of sizes and of surpluses. Also compares numbers with Python's float(),
and permutations with torch.randperm.

usage: blends_against_reference.py --driver D [--cases N] [--seed S]
       blends_against_reference.py --plant-bugs [--cases N] [--seed S]

The driver is the program of tests/support/megatron_blend.cpp. With --plant-bugs it is built here,
by $CXX or c++, once for each bug that is put into a copy of our sources; each must be found. The seed
is printed; the same seed gives the same cases. What Megatron refuses, we must refuse too; what we refuse
beyond that is counted. Exits 1 on a difference, on a bug that was not found, and where one of BRANCHES was
never met in 1000 cases or more; 77 if megatron-core is missing. Whole runs, over files and with a cache
folder, are for blend_caches_against_reference.py.
"""
import argparse
import collections
import hashlib
import json
import logging
import math
import pathlib
import random
import subprocess
import sys
import warnings

import met_branches
from megatron_against_reference import report_planted  # exits 77 if megatron-core is missing

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
try:
    import numpy
    import torch
    from megatron.core.datasets import helpers_cpp
    from megatron.core.datasets.blended_dataset import BlendedDataset
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.blended_megatron_dataset_config import BlendedMegatronDatasetConfig
    from megatron.core.datasets.utils import get_blend_from_list, normalize
except ImportError as missing:
    print(f"skipped: needs the Python packages megatron-core and torch ({missing})")
    sys.exit(77)

BRANCHES = (
    "exhaustive", "randperm", "float: a number", "float: none", "fused: compared",
    "fused: another blend than rounded twice", "groups: in lanes", "groups: more than lanes",
    "data: no part", "data: apart", "data: blended", "data: exhaustive",
    "data: both refuse, AssertionError")

# See planted_bugs.py.
BUGS = (
    ("errors are rounded once",
     "return rounded($weight * $position) - $count;", "return std::fma($weight, $position, -$count);"),
    ("errors are rounded once, by AVX-512",
     "return _mm512_sub_pd(product, counts);", "return _mm512_fmsub_pd(weights, position, counts);"),
    ("of equals the last wins (>= for >)",
     "all.next_of(some.groups[winner]) < all.next_of(some.groups[lane])",
     "all.next_of(some.groups[winner]) > all.next_of(some.groups[lane])"),
    ("of equals the last wins, by AVX-512",
     "all.next_of(some.groups[lane]) < all.next_of(some.groups[winner])",
     "all.next_of(some.groups[lane]) > all.next_of(some.groups[winner])"),
    ("the first step has position 0",
     "return std::max(static_cast<double>($at), 1.0);", "return static_cast<double>($at);"),
    ("groups are bounded by where a block begins",
     "blend_position(end - 1)", "blend_position(begin)"),
    ("blocks go on below their floor",
     "steps(end, floor_);", "steps(end, floor_ - 0.01);"),
    # A bug that never marks a dataset as exhausted would not be noticed, because a dataset that has
    # contributed all its samples is never furthest behind.
    ("datasets are spent a sample early",
     "t.round == t.limit ?", "t.round + 1 == t.limit ?"),
    ("weights are normalised once",
     "shares_ = normalize($plan.weights);", "shares_ = $plan.weights;"),
    ("sums are pairwise in longer pieces",
     "most_at_once = 128", "most_at_once = 256"),
    ("built samples are rounded up once",
     "static_cast<double>(target) * (1 + surplus)",
     "static_cast<double>(size) * plan.weights[d] * (1 + surplus)"),
    ("a blend by length is not capped",
     "size_ = std::min(size_, *plan.size);", "size_ = *plan.size;"),
    ("a weighted single prefix is no blend",
     "list.prefixes.size() == 1 && (!split || !list.weighted())", "list.prefixes.size() == 1"),
    ("the surplus is taken for all samples",
     "*plan.size += target;", "*plan.size += built;"),
    ("prefixes keep their spaces",
     "prefixes.emplace_back(detail::python_strip($word));", "prefixes.emplace_back($word);"),
    ("underscores are no part of a number",
     "!is_digit(text[i - 1]) || !is_digit(text[i + 1])", "true"),
    ("permutations are shuffled from the end",
     "i + twister() % left",
     "twister() % static_cast<std::uint32_t>(i + 1)"),
)


def md5(array):
    return hashlib.md5(numpy.ascontiguousarray(array).tobytes()).hexdigest()


def reference_blend(weights, size):
    dataset = numpy.zeros(size, dtype=numpy.int16)
    sample = numpy.zeros(size, dtype=numpy.int64)
    helpers_cpp.build_blending_indices(dataset, sample, weights, len(weights), size, False)
    return dataset, sample


def fused_blend(weights, size):
    """Computes the same blend with exact fractions that are rounded once, as fma() does."""
    from fractions import Fraction
    exact = [Fraction(w) for w in weights]
    counts = [0] * len(weights)
    dataset = numpy.zeros(size, dtype=numpy.int16)
    sample = numpy.zeros(size, dtype=numpy.int64)
    for i in range(size):
        errors = [float(w * max(i, 1) - c) for w, c in zip(exact, counts)]
        winner = errors.index(max(errors))
        dataset[i], sample[i] = winner, counts[winner]
        counts[winner] += 1
    return dataset, sample


def random_weights(rng, seen):
    count = rng.choice([1, 2, 3, 5, 8, 12, 40, 41, 64, 65, 100, 129, 200, 300])
    kind = rng.choice(["integers", "few integers", "log-normal", "steep", "equal", "dyadic", "nearly equal"])
    seen[f"weights: {kind}"] += 1
    draw = {"integers": lambda: rng.randrange(1, 1000),
            "few integers": lambda: rng.randrange(1, 4),
            "log-normal": lambda: math.exp(rng.gauss(0, 1.5)),
            "steep": lambda: math.exp(rng.gauss(0, 8)),
            "equal": lambda: 0.1,
            "dyadic": lambda: 2.0 ** -rng.randrange(6),
            "nearly equal": lambda: 1 + rng.randrange(5) * 2.0 ** -50}[kind]
    return [draw() for _ in range(count)]


def greedy_case(rng, ask, seen):
    typed = [float(weight) for weight in random_weights(rng, seen)]
    weights = normalize(normalize(typed))
    if min(weights) <= 0:
        seen["left out: a weight underflowed"] += 1
        return
    size = rng.randrange(0, 3000) if rng.random() < 0.9 else 20000
    # Fractions are slow, so this script compares only a few small cases. The C++ test has a model
    # with fma() for the other cases.
    ours = ask("greedy", size, *map(float.__repr__, typed))
    assert ours[128:] == md5(numpy.array(weights)), f"normalised twice: {typed}"
    dataset, sample = reference_blend(numpy.array(weights), size)
    assert ours[:64] == md5(dataset) + md5(sample), f"greedy blend of {size}: {weights}"
    seen["groups: more than lanes" if len(set(weights)) > 64 else "groups: in lanes"] += 1
    if size * len(weights) < 6000:
        once = fused_blend(weights, size)
        assert ours[64:128] == md5(once[0]) + md5(once[1]), f"fused blend of {size}: {weights}"
        seen["fused: compared"] += 1
        seen["fused: another blend than rounded twice"] += ours[64:128] != ours[:64]


def exhaustive_case(rng, ask, seen):
    count = rng.choice([1, 2, 3, 8, 40, 41, 64, 65, 100])
    most = rng.choice([1, 2, 20, 200])
    sizes = [rng.randint(1, most) for _ in range(count)]
    if rng.random() < 0.3:
        sizes[rng.randrange(count)] += 2000
    dataset = numpy.zeros(sum(sizes), dtype=numpy.int16)
    sample = numpy.zeros(sum(sizes), dtype=numpy.int64)
    helpers_cpp.build_exhaustive_blending_indices(dataset, sample, numpy.array(sizes), count)
    assert ask("exhaustive", *sizes) == md5(dataset) + md5(sample), f"exhaustive blend: {sizes}"
    seen["exhaustive"] += 1


def randperm_case(rng, ask, seen):
    seed, size = rng.randrange(2**33), rng.choice([0, 1, 2, 64, 65, rng.randrange(3000)])
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    assert ask("randperm", seed, size) == md5(order.numpy()), f"randperm: {seed} {size}"
    seen["randperm"] += 1


FLOATS = ["1", "0", "7", "_", ".", "e", "E", "+", "-", " ", "inf", "nan", "INF", "infinity", "12", "5", "\t", "x"]


def float_case(rng, ask, seen):
    text = "".join(rng.choice(FLOATS) for _ in range(rng.randrange(0, 7)))
    try:
        expected = json.dumps(float(text))
    except ValueError:
        expected = None
    assert ask("float", text.encode().hex()) == expected, f"float({text!r}), expected {expected}"
    seen["float: a number" if expected else "float: none"] += 1


class Dataset:
    """Replaces GPTDataset. Has as many samples as the whole epochs that are needed."""
    def __init__(self, low, path, indices, num_samples, part, config):
        epoch = len(path.encode()) * 7
        self.length = epoch * max(1, -(-(1 if num_samples is None else num_samples) // epoch))
        self.index_split, self.num_samples = part, num_samples
        self.unique_identifiers = {"path": path, "num_samples": num_samples, "part": part.name}

    def __len__(self):
        return self.length

    @staticmethod
    def build_low_level_dataset(path, config):
        return path

    @staticmethod
    def numel_low_level_dataset(low):
        return 1000


PREFIXES = ["a", "bb", "ccc", "data/web", "7", "0.5", " padded ", "1e2", "\u00e9t\u00e9", "x_1"]


def random_words(rng):
    words = []
    weighted = rng.random() < 0.5
    for _ in range(rng.randrange(1, 8)):
        if weighted or rng.random() < 0.05:
            words.append(rng.choice(["1", "2.5", "0.1", "30", "1_0", " 3", "1e-3", "0.7"]))
        words.append(rng.choice(PREFIXES))
    return words


def reference_data(flags, sizes):
    """Returns what Megatron's training code and builder make of the flags and sizes."""
    per_split = not ("--data-path" in flags)
    options = {"random_seed": 1, "sequence_length": 8}
    if per_split:
        options["blend_per_split"] = [get_blend_from_list(flags.get(f"--{part}-data-path"))
                                      for part in ("train", "valid", "test")]
    else:
        options["blend"] = get_blend_from_list(flags["--data-path"])
        options["split"] = flags.get("--split", ["969, 30, 1"])[0]
    options["full_validation"] = "--full-validation" in flags
    options["multiple_validation_sets"] = "--multiple-validation-sets" in flags
    if "--mid-level-dataset-surplus" in flags:
        options["mid_level_dataset_surplus"] = float(flags["--mid-level-dataset-surplus"][0])
    sizes = list(sizes)
    if options["full_validation"]:
        sizes[1] = None
    config = BlendedMegatronDatasetConfig(**options)
    built = BlendedMegatronDatasetBuilder(Dataset, sizes, lambda: True, config).build()
    answer = []
    for part in built:
        if part is None:
            answer.append(None)
        elif isinstance(part, BlendedDataset):
            answer.append([part.unique_description, md5(part.dataset_index) + md5(part.dataset_sample_index)])
        else:
            answer.append([each.unique_identifiers for each in (part if isinstance(part, list) else [part])])
    return answer


def data_case(rng, ask, seen):
    flags = {}
    if rng.random() < 0.5:
        flags["--data-path"] = random_words(rng)
        if rng.random() < 0.8:
            flags["--split"] = [rng.choice(["80,15,5", "1,1,1", "100,0,0", "50;50", "9.5/0.5"])]
    else:
        for part in rng.sample(["train", "valid", "test"], rng.randrange(1, 4)):
            flags[f"--{part}-data-path"] = random_words(rng)
        if rng.random() < 0.3 and "--valid-data-path" in flags:
            flags["--multiple-validation-sets"] = []
    if rng.random() < 0.2:
        flags["--full-validation"] = []
    if rng.random() < 0.4:
        flags["--mid-level-dataset-surplus"] = [rng.choice(["0", "0.005", "0.05", "0.5", "1"])]
    sizes = [rng.choice([0, 1, rng.randrange(100), rng.randrange(3000)]) for _ in range(3)]
    if rng.random() < 0.15:
        sizes[rng.randrange(3)] = None
    fields = []
    for flag, words in flags.items():
        fields += [flag, len(words), *(word.encode().hex() for word in words)]
    ours = ask("data", *("-" if size is None else size for size in sizes), *fields)
    try:
        expected = reference_data(flags, sizes)
    except (AssertionError, IndexError, ValueError) as refused:
        assert "refused" in ours, f"Megatron refuses {flags} {sizes}: {refused}, we give {ours}"
        seen[f"data: both refuse, {type(refused).__name__}"] += 1
        return
    if isinstance(ours, dict):
        why = ours["refused"]
        stricter = [w for w in ("each set is used completely", "each sample is used once",
                                "no number of samples", "expected a weight before each prefix")
                    if w in why]
        assert stricter, f"we refuse {flags} {sizes}: {why}"
        seen[f"data: we alone refuse, {stricter[0]}"] += 1
        return
    assert ours == expected, f"{flags} {sizes}: {ours} for {expected}"
    for part in expected:
        kind = ("no part" if part is None else "apart" if not isinstance(part[0], str) else
                "exhaustive" if '"size": null' in part[0] else "blended")
        seen[f"data: {kind}"] += 1


def run(driver, cases, seed):
    rng = random.Random(seed)
    seen = collections.Counter()
    with subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        def ask(*fields):
            program.stdin.write("\t".join(map(str, fields)) + "\n")
            program.stdin.flush()
            return json.loads(program.stdout.readline())
        try:
            for _ in range(cases):
                rng.choices([greedy_case, exhaustive_case, data_case, float_case, randperm_case],
                            [6, 2, 5, 4, 1])[0](rng, ask, seen)
        finally:
            program.stdin.close()
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver")
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--plant-bugs", action="store_true")
    options = parser.parse_args()
    if not options.plant_bugs:
        print(f"seed {options.seed}", flush=True)
        seen = run(options.driver, options.cases, options.seed)
        met_branches.show(seen, options.cases, "cases", options.seed)
        met_branches.require(seen, BRANCHES, options.cases, 1000)
        return
    has_avx512 = "avx512dq" in pathlib.Path("/proc/cpuinfo").read_text()
    bugs = [bug for bug in BUGS if has_avx512 or "AVX-512" not in bug[0]]
    for bug in BUGS:
        if bug not in bugs:
            print(f"left out, as this processor has no AVX-512: {bug[0]}")
    sys.exit(report_planted(bugs, lambda driver: run(driver, options.cases, options.seed), "megatron_blend.cpp"))


if __name__ == "__main__":
    try:
        main()
    except AssertionError as difference:
        print(difference)
        sys.exit(1)
