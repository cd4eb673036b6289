#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the datasets of `--fim-rate` with what GPTFIMDataset of megatron-core makes of the same texts and draws.

usage: fim_against_megatron.py --program PREPROCESS_DATA --megatron FOLDER [--records N] [--rounds N] [--seed N]

  --megatron  where megatron-core is, 0.19 or newer: the folder that has `megatron`
  --records   records per round (default: 200)
  --rounds    default: 40

Each text is one segment of a sample for Megatron's code. No text has special tokens but the split token, because Megatron
drops them from texts that it permutes. numpy makes the draws, seeded as formats/spec/meta.md says. Exits
with 77 if tokenizers or megatron-core is not there.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

import numpy
import reference_files
import tokenizers

SENTINELS = {"prefix": "<fim_prefix>", "middle": "<fim_middle>", "suffix": "<fim_suffix>"}
SPLIT = "<file_sep>"
NO_PREFIX = "// generated"
SPECIAL = ["<s>", "</s>", *SENTINELS.values(), SPLIT]
WORDS = ["def f(x):\n", "    return x", " and", "  ", "\n\n", "naïve", "größe", "漢字", "かな", "👩‍👩‍👧", "🇩🇪", "é", "e\u0301", "\u2028",
         "\ufffd", "x", "1234", "\t", "λ", "'", "\r\n", "the", " The", "<fim", "sep>", "\U0010ffff"]
ALL_BITS = 2**64 - 1


def mix(z):
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & ALL_BITS
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & ALL_BITS
    return z ^ z >> 31


def random_state(seed, name, place):
    """numpy's generator of a record."""
    step = 0x9E3779B97F4A7C15
    fnv = 0xCBF29CE484222325
    for byte in name.encode():
        fnv = (fnv ^ byte) * 0x100000001B3 & ALL_BITS
    hashed = mix(int.from_bytes(b"fim", "little"))
    hashed = mix((hashed ^ seed) + step & ALL_BITS)
    hashed = mix((hashed ^ fnv) + step & ALL_BITS)
    key = mix(hashed + (place + 1) * step & ALL_BITS)
    return numpy.random.RandomState([key & 0xFFFFFFFF, key >> 32])


def small_tokenizer():
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator([" ".join(WORDS), "".join(WORDS)] * 20, tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    return made


class megatron_side:
    """GPTFIMDataset without a dataset: only its permutations."""

    def __init__(self, folder, tokenizer, options):
        module = reference_files.load_module(
            folder, "megatron.training.datasets.fim_dataset", reference_files.MEGATRON,
            {"megatron.core.datasets.gpt_dataset": {"GPTDataset": object, "GPTDatasetConfig": object},
             "megatron.core.datasets.indexed_dataset": {"IndexedDataset": object},
             "megatron.core.datasets.utils": {"Split": object}})
        self.tokenizer = tokenizer
        self.dataset = object.__new__(module.GPTFIMDataset)
        vars(self.dataset).update(
            fim_rate=options["rate"], fim_spm_rate=options["spm-rate"], fragment_fim_rate=options.get("fragment-rate"),
            no_fim_prefix=options.get("no-prefix"), pad_tok_id=None,
            fim_split_sample=tokenizer.token_to_id(SPLIT) if "split-sample" in options else None,
            config=types.SimpleNamespace(tokenizer=types.SimpleNamespace(_tokenizer=self)))
        for name, token in SENTINELS.items():
            setattr(self.dataset, f"{name}_tok_id", tokenizer.token_to_id(token))

    def ids_to_text(self, ids, remove_special_tokens):
        return self.tokenizer.decode([int(each) for each in ids], skip_special_tokens=remove_special_tokens)

    def text_to_ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def document(self, texts, draws, before, after):
        """The sequences of one key of a record."""
        self.dataset.np_rng = draws
        sequences = []
        for text in texts:
            ids = numpy.array(self.text_to_ids(text), dtype=numpy.int64)
            if text:
                ids = self.dataset._fim_split_and_permute_sequence(ids)
            sequences.append(before + [int(each) for each in ids] + after)
        return [each for each in sequences if each]


def read_dataset(prefix):
    """The sequences of each document."""
    idx = prefix.with_name(prefix.name + ".idx").read_bytes()
    tokens = numpy.fromfile(prefix.with_name(prefix.name + ".bin"), dtype=numpy.uint16)
    sequences, documents = (int(each) for each in numpy.frombuffer(idx, dtype=numpy.int64, count=2, offset=18))
    lengths = numpy.frombuffer(idx, dtype=numpy.int32, count=sequences, offset=34)
    ends = numpy.frombuffer(idx, dtype=numpy.int64, count=documents, offset=34 + 12 * sequences)
    pieces = [each.tolist() for each in numpy.split(tokens, numpy.cumsum(lengths)[:-1])] if sequences else []
    return [pieces[begin:end] for begin, end in zip(ends, ends[1:])]


def random_text(rng, options):
    parts = [rng.choice(WORDS) for _ in range(rng.choice((0, 1, 2, 5, 30, 100)))]
    for _ in range(rng.choice((0, 0, 1, 3)) if "split-sample" in options else 0):
        parts.insert(rng.randint(0, len(parts)), SPLIT)
    if rng.random() < 0.2:
        parts.insert(0, NO_PREFIX)
    return "".join(parts)


def random_options(rng):
    def rate():
        return rng.choice((0.0, 1.0, 0.5, 0.9, 1e-3, rng.random()))
    options = {"rate": rate(), "spm-rate": rate(), "seed": rng.choice((0, 1, rng.getrandbits(64)))}
    if rng.random() < 0.5:
        options |= {"split-sample": SPLIT, "fragment-rate": rate()}
    if rng.random() < 0.5:
        options["no-prefix"] = NO_PREFIX
    return options


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--megatron", required=True)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    texts = permuted = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for number in range(arguments.rounds):
            tokenizer, options = small_tokenizer(), random_options(rng)
            before, after = rng.choice((([], []), (["<s>"], []), (["<s>"], ["</s>"])))
            if before:
                tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
                    single=[*before, "$A", *after], special_tokens=[(each, tokenizer.token_to_id(each)) for each in before + after])
            before, after = ([tokenizer.token_to_id(each) for each in side] for side in (before, after))
            (folder / "tokenizer.json").write_text(tokenizer.to_str())
            theirs = megatron_side(arguments.megatron, tokenizer, options)
            name, wanted, lines = str(folder / "in.jsonl"), {"text": [], "title": []}, b""
            for _ in range(arguments.records):
                record = {key: [random_text(rng, options) for _ in range(rng.choice((1, 1, 1, 0, 3)))] for key in wanted}
                for key, values in record.items():
                    draws = random_state(options["seed"], name, len(lines))
                    wanted[key].append(theirs.document(values, draws, before, after))
                    texts += len(values)
                    permuted += sum(tokenizer.token_to_id(SENTINELS["middle"]) in each for each in wanted[key][-1])
                record = {key: values[0] if len(values) == 1 else values for key, values in record.items()}
                lines += json.dumps(record, ensure_ascii=rng.random() < 0.5).encode() + rng.choice((b"\n", b"\n\n", b"\r\n"))
            pathlib.Path(name).write_bytes(lines)
            flags = [word for flag, value in options.items() for word in (f"--fim-{flag}", str(value))]
            run = subprocess.run(
                [arguments.program, "--input", name, "--output-prefix", folder / "out", "--overwrite", "--json-keys", *wanted,
                 "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder / "tokenizer.json", *flags],
                capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(run.stderr)
            for key, documents in wanted.items():
                found = read_dataset(folder / f"out_{key}_document")
                if found == documents:
                    continue
                line = next((i for i, (a, b) in enumerate(zip(found, documents)) if a != b), min(len(found), len(documents)))
                sys.exit(f"seed {arguments.seed}, round {number}, {options}: document {line} of {key}\nMegatron: "
                         f"{documents[line:line + 1]}\nmillrace: {found[line:line + 1]}")
    print(f"{texts} texts, of which {permuted} were permuted: none differs")
    if permuted < texts / 10:
        sys.exit("too few permutations to prove anything")


if __name__ == "__main__":
    main()
