#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the caches of whole runs with the caches of megatron-core. megatron-core runs its
BlendedMegatronDatasetBuilder on GPTDatasets of real .bin and .idx files, with a cache folder, in a gloo process
group of one process.

usage: blend_caches_against_reference.py --driver D [--program I] [--cases N] [--seed S]
       blend_caches_against_reference.py --plant-bugs [--cases N] [--seed S]

The driver is the program of tests/support/megatron_caches.cpp; I is inspect_dataset, whose verb
prepare-cache makes the folder of every fourth case. Both folders must hold the same names and the same
bytes. Then each reads what the other wrote: nothing may be written again, and Megatron's arrays and some
samples of ours, down to their tokens, must be those of before.

With --plant-bugs the driver is built here, by $CXX or c++, once for each bug that is planted in a copy of
our sources; each must be found. The same seed gives the same cases. What Megatron refuses, or would never
finish, is left out and counted; we must refuse it too. Exits 1 on a difference, on a bug that was not
found, and where one of BRANCHES was never met in 150 cases or more; 77 if megatron-core is missing.
"""
import argparse
import collections
import json
import logging
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import met_branches  # noqa: E402
from megatron_against_reference import (  # noqa: E402  (exits 77 if megatron-core is missing)
    Limits, Tokenizer, random_split, report_planted, samples_of, write_corpus)
import numpy  # noqa: E402
import torch  # noqa: E402
from megatron.core.datasets import gpt_dataset, helpers  # noqa: E402
from megatron.core.datasets.blended_dataset import BlendedDataset  # noqa: E402
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402
from megatron.core.datasets.utils import get_blend_from_list  # noqa: E402

PARTS = ("train", "valid", "test")

BRANCHES = (
    "one epoch", "separate last epoch", "epochs shuffled together", "partial validation sample",
    "int64 sample index", "int64 shuffle index", "blend by weights", "blend by lengths, cut off",
    "exhaustive blend", "blend of one dataset", "no samples", "one dataset, not blended",
    "sets of validation data", "one split", "data for each part", "surplus of our own",
    "left out: Megatron never ends", "left out: Megatron refuses", "prepare-cache ran")

# Messages of cases that millrace refuses and Megatron does not. Either these cases would give no
# samples at all, or they fail an assert in Megatron's HEAD.
STRICTER = ("the sequence length is", "1 token", "has no samples", "no number of samples",
            "each set is used completely", "each sample is used once", "expected a weight before each prefix",
            "single precision")

# See planted_bugs.py.
BUGS = (
    ("the weights of a blend are normalised once",
     "shares_ = normalize($plan.weights);", "shares_ = $plan.weights;"),
    ("an exhaustive blend is described by its size",
     'all.set("size", exhaustive() ? python_json() : python_json::integer(size_));',
     'all.set("size", python_json::integer(size_));'),
    ("a blend by length is not cut off",
     "size_ = std::min(size_, *plan.size);", "size_ = *plan.size;"),
    ("the surplus is always 0.005",
     "static_cast<double>(target) * (1 + surplus)", "static_cast<double>(target) * (1 + 0.005)"),
    ("the last epoch is separate at 0.80, too",
     "of_last < static_cast", "of_last <= static_cast"),
    ("the column of samples has 32 bits",
     "detail::npy_file::of<std::int64_t>(sample_path(), {size})",
     "detail::npy_file::of<std::int32_t>(sample_path(), {size})"),
    ("a blend serves its datasets in their own order",
     "return {blend().dataset[i], blend().sample[i]};", "return {blend().dataset[i], position};"),
    ("data of its own is described by an empty split",
     'all.set("split", split ? python_json::string(*split) : python_json());',
     'all.set("split", python_json::string(split.value_or("")));'),
    ("indices that Megatron kept as int64 are not taken",
     "(mapped.npy.type != narrow && !wide)", "(mapped.npy.type != narrow)"),
)


class Endless(Exception):
    """Megatron would count epochs without tokens forever."""


def finite_epochs(self, tokens, original=GPTDataset._get_num_epochs):
    if tokens == 0 and self.num_samples is not None:
        raise Endless(self.num_samples)
    return original(self, tokens)


GPTDataset._get_num_epochs = finite_epochs


def random_words(rng, prefixes, weighted):
    words = []
    for prefix in rng.sample(prefixes, rng.randrange(1, len(prefixes) + 1)):
        if weighted:
            words.append(rng.choice(["1", "2.5", "0.1", "30", "1e-3", "0.7", str(rng.random())]))
        words.append(prefix)
    return words


def random_case(rng, folder):
    """Writes corpora to disk, and draws the request of a case."""
    corpora = {}
    most = rng.choice([5, 20, 60])
    for number in range(rng.choice([1, 2, 2, 3, 3, 4, 6])):
        lengths = [0 if rng.random() < 0.1 else rng.randrange(1, most) for _ in range(rng.randrange(1, 60))]
        lengths[0] = max(lengths[0], 2)
        corpora[f"{folder}/corpus_{number}"] = lengths
        write_corpus(f"{folder}/corpus_{number}", lengths, True)
    prefixes = list(corpora)
    flags = {}
    weighted = {part: rng.random() < 0.5 for part in PARTS}
    if rng.random() < 0.6:
        weighted = dict.fromkeys(PARTS, weighted["train"])
        flags["--data-path"] = random_words(rng, prefixes, weighted["train"])
        if rng.random() < 0.9:
            flags["--split"] = [rng.choice(["8,1,1", "1,1,1", "100,0,0", "6;4", random_split(rng)])]
    else:
        for part in rng.sample(PARTS, rng.randrange(1, 4)):
            flags[f"--{part}-data-path"] = random_words(rng, prefixes, weighted[part])
        if rng.random() < 0.6 and "--valid-data-path" in flags and not weighted["valid"]:
            flags["--multiple-validation-sets"] = []
    if rng.random() < (0.03 if weighted["valid"] else 0.2):
        flags["--full-validation"] = []
    if rng.random() < 0.3:
        flags["--mid-level-dataset-surplus"] = [rng.choice(["0", "0.05", "0.5", "1"])]
    sizes = []
    for part in PARTS:
        without = rng.random() < (0.03 if weighted[part] else 0.6)
        sizes.append(None if without else rng.choice([0, 1, rng.randrange(100), rng.randrange(100),
                                                      rng.randrange(2000)]))
    options = dict(
        length=rng.choice([2, 3, 4, 8, 16]), seed=rng.choice([1234, 0, 2**32 - 1, rng.randrange(2**32)]),
        extra=rng.random() < 0.7, drop=rng.random() < 0.5, threads=rng.choice([1, 2]),
        wide_sample=rng.random() < 0.12, wide_shuffle=rng.random() < 0.12)
    return corpora, flags, sizes, options, Tokenizer(rng)


def reference(flags, sizes, options, tokenizer, cache):
    """Builds the datasets of all parts with Megatron's builder."""
    given = {}
    if "--data-path" in flags:
        given = {"blend": get_blend_from_list(flags["--data-path"]),
                 "split": flags.get("--split", ["969, 30, 1"])[0]}
    else:
        given["blend_per_split"] = [get_blend_from_list(flags.get(f"--{part}-data-path")) for part in PARTS]
    if "--mid-level-dataset-surplus" in flags:
        given["mid_level_dataset_surplus"] = float(flags["--mid-level-dataset-surplus"][0])
    full = "--full-validation" in flags
    config = GPTDatasetConfig(
        random_seed=options["seed"], sequence_length=options["length"], path_to_cache=cache,
        full_validation=full, multiple_validation_sets="--multiple-validation-sets" in flags,
        reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False,
        tokenizer=tokenizer, add_extra_token_to_sequence=options["extra"],
        drop_last_partial_validation_sequence=options["drop"], **given)
    sizes = [sizes[0], None if full else sizes[1], sizes[2]]
    helpers.numpy = Limits(int32=-1) if options["wide_sample"] else numpy
    gpt_dataset.numpy = Limits(uint32=0) if options["wide_shuffle"] else numpy
    try:
        return BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()
    finally:
        helpers.numpy = gpt_dataset.numpy = numpy


def datasets_of(part):
    """Returns a pair: the blend or None, and the list of its datasets."""
    if isinstance(part, BlendedDataset):
        return part, part.datasets
    return None, part if isinstance(part, list) else [part]


def arrays_of(parts):
    arrays = []
    for part in filter(None, parts):
        blend, datasets = datasets_of(part)
        if blend:
            arrays += [blend.dataset_index, blend.dataset_sample_index]
        for each in datasets:
            arrays += [each.document_index, each.sample_index, each.shuffle_index]
    return [numpy.array(array) for array in arrays]


def files_of(folder):
    os.makedirs(folder, exist_ok=True)  # no part has data
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def times_of(folder):
    return {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(folder)}


def compare_samples(part, shown, corpora):
    """Compares positions of our run, down to the tokens, with what Megatron serves at these positions."""
    blend, datasets = datasets_of(part)
    for run, samples in enumerate(shown):
        for at, source, k, pieces, padding in samples:
            if blend:
                assert (source, k) == (blend.dataset_index[at], blend.dataset_sample_index[at]), (at, source, k)
            dataset = datasets[source if blend else run]
            starts = numpy.cumsum([0] + corpora[dataset.dataset_path]).tolist()
            text, documents = samples_of(dataset, k)
            ours = [starts[s] + first + i for s, first, tokens in pieces for i in range(tokens)]
            assert ours + [-1] * padding == text, ("tokens", at, ours, padding, text)
            assert [s for s, _, _ in pieces] == documents, ("documents", at, pieces, documents)


def compare_parts(ours, theirs, corpora, built, seen):
    for name, answer, part in zip(PARTS, ours, theirs):
        assert (answer is None) == (part is None), name
        if part is None:
            continue
        blend, datasets = datasets_of(part)
        assert [each["samples"] for each in answer["datasets"]] == list(map(len, datasets)), name
        for each, dataset in zip(answer["datasets"], datasets):
            assert each["name"] == f"{dataset.unique_description_hash}-GPTDataset-{name}", name
            assert built or not each["built"], f"{each['name']} of Megatron was not taken"
        assert ("blend" in answer) == (blend is not None), name
        if blend:
            assert answer["blend"]["samples"] == len(blend), name
            assert answer["blend"]["name"] == f"{blend.unique_description_hash}-BlendedDataset-{name}", name
            assert built or not answer["blend"]["built"], f"the {name} blend of Megatron was not taken"
        compare_samples(part, answer["shown"], corpora)
        seen["samples compared"] += sum(map(len, answer["shown"]))


def count_branches(ours, flags, sizes, options, seen):
    seen["one split" if "--data-path" in flags else "data for each part"] += 1
    for part, answer in zip(PARTS, ours):
        if answer is None:
            continue
        for each in answer["datasets"]:
            seen["datasets compared"] += 1
            seen["one epoch" if each["epochs"] == 1 else
                 "separate last epoch" if each["separate"] else "epochs shuffled together"] += 1
            seen["partial validation sample"] += each["partial"]
            seen["int64 sample index"] += options["wide_sample"]
            seen["int64 shuffle index"] += options["wide_shuffle"]
            seen["no samples"] += each["samples"] == 0
        count = len(answer["datasets"])
        if "blend" in answer:
            words = flags.get("--data-path") or flags[f"--{part}-data-path"]
            by_weights = len(words) == 2 * count
            seen["exhaustive blend" if answer["blend"]["exhaustive"] else
                 "blend by weights" if by_weights else "blend by lengths, cut off"] += 1
            seen["blend of one dataset"] += count == 1
            seen["surplus of our own"] += by_weights and "--mid-level-dataset-surplus" in flags
        else:
            seen["one dataset, not blended" if count == 1 else "sets of validation data"] += 1


def prepare_by_program(program, flags, sizes, options, tokenizer, folder, cache):
    """Runs inspect_dataset prepare-cache; returns whether it succeeded."""
    pathlib.Path(f"{folder}/tokenizer.json").write_text(json.dumps(tokenizer.unique_identifiers))
    words = [program, "prepare-cache", "--json", "--data-cache-path", cache,
             "--tokenizer-description", f"{folder}/tokenizer.json", "--seq-length", str(options["length"]),
             "--seed", str(options["seed"]), "--threads", str(options["threads"])]
    words += [] if options["extra"] else ["--no-extra-token"]
    words += [] if options["drop"] else ["--keep-partial-validation"]
    for part, size in zip(PARTS, sizes):
        words += [] if size is None else [f"--{part}-samples", str(size)]
    for flag, values in flags.items():
        words += [flag, *values]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode in (0, 1), (words, done)
    return done.returncode == 0


def without_values(sentence):
    """Returns the words of an error message before its first colon, to count such errors."""
    return re.sub(r"'[^']*'|[0-9.]+", "_", sentence).split(":")[0][:60]


def run_case(rng, folder, ask, program, seen):
    corpora, flags, sizes, options, tokenizer = random_case(rng, folder)
    by_program = rng.random() < 0.25  # always drawn: cases must not depend on what is installed
    ours_in, theirs_in = f"{folder}/ours", f"{folder}/theirs"
    case = f"{flags} {sizes} {options} {tokenizer.unique_identifiers} {corpora}"

    def answer_in(cache):
        fields = [cache, *("-" if size is None else size for size in sizes), options["length"],
                  options["seed"], int(options["extra"]), int(options["drop"]), int(options["wide_sample"]),
                  int(options["wide_shuffle"]), options["threads"], json.dumps(tokenizer.unique_identifiers)]
        for flag, words in flags.items():
            fields += [flag, len(words), *(word.encode().hex() for word in words)]
        return ask(*fields)

    if by_program and program and not (options["wide_sample"] or options["wide_shuffle"]):
        went_well = prepare_by_program(program, flags, sizes, options, tokenizer, folder, ours_in)
        prepared = files_of(ours_in) if went_well else None
        ours = answer_in(ours_in)
        assert went_well == ("refused" not in ours), f"prepare-cache and the library differ: {case} {ours}"
        assert prepared is None or prepared == files_of(ours_in), f"prepare-cache left something out: {case}"
        seen["prepare-cache ran"] += 1
    else:
        ours = answer_in(ours_in)
    refused = ours.get("refused") if isinstance(ours, dict) else None

    try:
        theirs = reference(flags, sizes, options, tokenizer, theirs_in)
    except Endless as endless:
        # If no samples are requested, a part without tokens gets no samples in millrace.
        assert refused or endless.args[0] == 0, f"endless for Megatron, not refused: {case}\n{ours}"
        seen["left out: Megatron never ends"] += 1
        return
    except (AssertionError, IndexError, ValueError, RuntimeError) as problem:
        assert refused, f"Megatron refuses ({problem!r}), we do not: {case}\n{ours}"
        seen["left out: Megatron refuses"] += 1
        seen[f"left out: we say '{without_values(refused)}'"] += 1
        return
    if refused:
        known = [words for words in STRICTER if words in refused]
        assert known, f"we alone refuse: {case}\n{refused}"
        seen[f"left out: we alone refuse, '{known[0]}'"] += 1
        return
    try:
        written, expected = files_of(ours_in), files_of(theirs_in)
        assert written.keys() == expected.keys(), sorted(written.keys() ^ expected.keys())
        for name in expected:
            assert written[name] == expected[name], f"{name} differs"
        compare_parts(ours, theirs, corpora, True, seen)
        # Each program reads the files of the other.
        before = times_of(theirs_in)
        compare_parts(answer_in(theirs_in), theirs, corpora, False, seen)
        assert times_of(theirs_in) == before, "we wrote what Megatron had written"
        before, arrays = times_of(ours_in), arrays_of(theirs)
        again = arrays_of(reference(flags, sizes, options, tokenizer, ours_in))
        assert times_of(ours_in) == before, "Megatron wrote what we had written"
        assert len(again) == len(arrays) and all(map(numpy.array_equal, again, arrays)), "arrays differ"
    except AssertionError as difference:
        raise AssertionError(f"{difference}\n{case}\n{json.dumps(ours)[:2000]}") from None
    seen["files compared"] += len(expected)
    seen["arrays read back"] += len(arrays)
    count_branches(ours, flags, sizes, options, seen)


def run(driver, program, cases, seed):
    """The branches that were reached. Raises AssertionError at the first difference."""
    rng = random.Random(seed)
    seen = collections.Counter()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as home, \
            subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as answers:
        def ask(*fields):
            answers.stdin.write("\t".join(map(str, fields)) + "\n")
            answers.stdin.flush()
            return json.loads(answers.stdout.readline())
        try:
            for number in range(cases):
                folder = f"{home}/{number}"
                os.mkdir(folder)
                run_case(rng, folder, ask, program, seen)
                shutil.rmtree(folder)
        finally:
            answers.stdin.close()
    return seen


def start_process_group(folder):
    """Starts a process group. With a cache folder, Megatron's blends ask which rank is the first."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=0, world_size=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver")
    parser.add_argument("--program")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--enough", type=int, default=400)
    parser.add_argument("--plant-bugs", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start_process_group(folder)
        try:
            if options.plant_bugs:
                sys.exit(report_planted(BUGS, lambda driver: run(driver, None, options.cases, options.seed),
                                        "megatron_caches.cpp"))
            print(f"seed {options.seed}", flush=True)
            seen = run(options.driver, options.program, options.cases, options.seed)
            met_branches.show(seen, options.cases, "runs", options.seed)
            needed = [b for b in BRANCHES if options.program or b != "prepare-cache ran"]
            met_branches.require(seen, needed, options.cases, options.enough)
        finally:
            torch.distributed.destroy_process_group()


if __name__ == "__main__":
    try:
        main()
    except AssertionError as difference:
        print(difference)
        sys.exit(1)
