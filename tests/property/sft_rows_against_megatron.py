#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares rows of conversations with the samples of Megatron's SFTDataset: tokens, labels, loss mask, positions and
cu_seqlens.

usage: sft_rows_against_megatron.py --preprocess PREPROCESS_DATA --inspect INSPECT_DATASET --megatron FOLDER
           [--records N] [--rounds N] [--seed N]

  --megatron  where megatron-core is, 0.19 or newer: the folder that has `megatron`
  --records   conversations per round (default: 60)
  --rounds    default: 8

Each line is one conversation, which is a row of its own. Megatron's labels are -100 or padding where the loss does not
count; labels are compared elsewhere. Exits with 77 if torch, transformers or megatron-core is not there.
"""
import argparse
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

import numpy
import reference_files
import sft_formats_against_megatron as formats
from transformers import PreTrainedTokenizerFast


def megatron_dataset(folder):
    """Megatron's class that serves conversations."""
    if importlib.util.find_spec("torch") is None:
        print("skipped: needs torch (scripts/setup --references)")
        sys.exit(77)
    return reference_files.load_module(
        folder, "megatron.training.datasets.sft_dataset", reference_files.MEGATRON,
        {"megatron.core.datasets.gpt_dataset": {"GPTDatasetConfig": None},
         "megatron.core.datasets.megatron_dataset": {"LowLevelDataset": None, "MegatronDataset": object},
         "megatron.core.datasets.utils": {"Split": None}}).SFTDataset


def expected_rows(dataset_class, tokenizer, lines, seq_len, cp):
    """What Megatron serves for each line of which it trains a token, or None if it refuses the line."""
    dataset = dataset_class.__new__(dataset_class)
    dataset.dataset, dataset.indices = lines, numpy.arange(len(lines))
    dataset.config = types.SimpleNamespace(tokenizer=tokenizer, sequence_length=seq_len, context_parallel_size=cp,
                                           reset_position_ids=False, create_attention_mask=False,
                                           reset_attention_mask=False)
    for number in range(len(lines)):
        try:
            yield dataset[number]
        except (ValueError, AssertionError, IndexError):
            yield None


def row_of_megatron(sample, pad):
    tokens, labels = sample["tokens"].tolist(), sample["labels"].tolist()
    loss = [int(each) for each in sample["loss_mask"].tolist()]
    boundaries = sorted(set(sample["cu_seqlens"].tolist()))
    return (tuple(0 if token == pad else token for token in tokens),
            tuple(label if counts else None for label, counts in zip(labels, loss)), tuple(loss),
            tuple(sample["position_ids"].tolist()), tuple(boundaries), int(sample["max_seqlen"]))


def our_rows(options, folder, prefix, seq_len, pad, rows, cp):
    """The rows that `show` prints for an epoch, in the order of the run."""
    found = subprocess.run(
        [options.inspect, "show", prefix, "--order", "instant", "--packing", "one_per_row", "--seq-length", str(seq_len),
         "--pad-documents-to", str(2 * cp if cp > 1 else 1), "--pad-id", str(pad), "--micro-batch-size", str(rows),
         "--step", "0", "--json", "--all"], capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(found.stderr)
    batch = json.loads(found.stdout)
    made = []
    for row in batch["rows"] if "rows" in batch else batch["batches"][0]["rows"]:
        loss = [int(each) for each in row["loss_mask"]]
        bounds = sorted(set(row["boundaries"]))
        made.append((tuple(row["tokens"]), tuple(label if counts else None for label, counts in zip(row["labels"], loss)),
                     tuple(loss), tuple(row["position_ids"]), tuple(bounds),
                     max(b - a for a, b in zip(bounds, bounds[1:]))))
    return made


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("--preprocess", "--inspect", "--megatron"):
        parser.add_argument(name, required=True)
    parser.add_argument("--records", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tokenizers = formats.megatron_tokenizers(options.megatron)
    dataset_class = megatron_dataset(options.megatron)
    rng = random.Random(options.seed)
    rows = cut = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "tokenizer.json").write_text(formats.small_tokenizer())
        saved = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **formats.NAMED)
        saved.chat_template = formats.conversations.TEMPLATES["chatml"]
        saved.save_pretrained(folder / "saved")
        for number in range(options.rounds):
            name = formats.FORMATS[number % len(formats.FORMATS)]
            cp = rng.choice((1, 1, 2))
            seq_len = 4 * rng.choice((8, 40, 150, 500))
            theirs = tokenizers.SFTTokenizer(str(folder / "saved"), name)
            theirs.pad = theirs.pad_id  # as Megatron's wrapper of it has
            # No line has a system message after its first message, which would begin another conversation.
            lines = [formats.record(rng) for _ in range(options.records)]
            (folder / "in.jsonl").write_text("".join(json.dumps({"messages": each}) + "\n" for each in lines))
            run = subprocess.run(
                [options.preprocess, "--input", folder / "in.jsonl", "--output-prefix", folder / f"out{number}",
                 "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder / "saved", "--messages-key",
                 "messages", "--sft-tokenizer-prompt-format", name, "--on-bad-record", "quarantine", "--max-length",
                 str(seq_len), "--overlong", "truncate"], capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(f"{name}: {run.stderr}")
            prefix = f"{folder}/out{number}_messages_document"
            documents, bad = formats.conversations.read_dataset(prefix)
            wanted = []
            for line, sample in enumerate(expected_rows(dataset_class, theirs, lines, seq_len, cp), 1):
                if sample is None and line not in bad:
                    sys.exit(f"{name}, seed {options.seed}: Megatron refuses record {line}, but it became a document")
                if line not in bad:
                    wanted.append(row_of_megatron(sample, theirs.pad))
                    cut += seq_len <= len(documents[len(wanted) - 1][0])
            found = our_rows(options, folder, prefix, seq_len, theirs.pad, len(wanted), cp)
            for want, got in zip(sorted(wanted, key=str), sorted(found, key=str)):
                for kind, a, b in zip(("tokens", "labels", "loss_mask", "position_ids", "cu_seqlens", "max_seqlen"), want,
                                      got):
                    if a != b:
                        sys.exit(f"{name}, seq_len {seq_len}, seed {options.seed}: {kind} differ: expected {a}, found {b}")
            if len(found) != len(wanted):
                sys.exit(f"{name}: {len(found)} rows, expected {len(wanted)}")
            rows += len(wanted)
    print(f"{rows} rows, of which {cut} were cut: none differs")
    if not 0 < cut < rows:
        sys.exit("too few rows of either kind to prove anything")


if __name__ == "__main__":
    main()
