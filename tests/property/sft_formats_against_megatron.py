#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ids and masks of `--sft-tokenizer-prompt-format` with those of Megatron's SFTTokenizer.

usage: sft_formats_against_megatron.py --program PREPROCESS_DATA --megatron FOLDER [--records N] [--rounds N] [--seed N]

  --megatron  where megatron-core is, 0.19 or newer: the folder that has `megatron`
  --records   conversations per format and round (default: 100)
  --rounds    default: 5

Exits with 77 if transformers or megatron-core is not there.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import conversations_against_transformers as conversations
import reference_files
import tokenizers
from transformers import PreTrainedTokenizerFast

FORMATS = ["nemotron-h-aligned", "nemotron-nano-v2", "identity", "default"]
SPECIAL = ["<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<SPECIAL_233>", "<unk>", "<|im_start|>", "<|im_end|>"]
NAMED = {"eos_token": "<|im_end|>", "pad_token": "<unk>"}
TEXTS = conversations.TEXTS + ["/think about it", "do /no_think that", "/no_/thinkthink", "\n\nlines\n\n", "\u3000wide\u3000",
                               "<SPECIAL_11>User\n inside"]


def megatron_tokenizers(folder):
    """The module with SFTTokenizer."""
    return reference_files.load_module(folder, "megatron.core.tokenizers.text.libraries.sft_tokenizer",
                                       reference_files.MEGATRON)


def small_tokenizer():
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator(TEXTS * 20, tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    return made.to_str()


def record(rng):
    def message(role):
        empty = rng.random() < 0.02
        return {"role": role, "content": "" if empty else " ".join(rng.choice(TEXTS) for _ in range(rng.randint(1, 3)))}
    messages = [message("system")] if rng.random() < 0.5 else []
    for _ in range(rng.randint(1, 4)):
        messages.append(message("user"))
        if rng.random() < 0.1:
            messages.append(message("tool"))
        messages.append(message("assistant"))
        if rng.random() < 0.1:
            messages += [message("tool"), message("assistant")]
    if rng.random() < 0.1:
        messages.append(message("user"))
    if rng.random() < 0.05:
        messages.insert(rng.randrange(1, len(messages)), message("assistant"))
    return messages


def expected(tokenizer, messages):
    """Ids and mask, or None if Megatron refuses the conversation or trains none of it."""
    try:
        ids, target = tokenizer.tokenize_conversation(messages, return_target=True, add_generation_prompt=False)
    except (ValueError, AssertionError, IndexError):
        return None
    mask = [int(each != -100) for each in target.tolist()]
    return (ids.tolist(), mask) if any(mask) else None


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--megatron", required=True)
    parser.add_argument("--records", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    megatron = megatron_tokenizers(options.megatron)
    rng = random.Random(options.seed)
    documents = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "tokenizer.json").write_text(small_tokenizer())
        saved = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **NAMED)
        saved.chat_template = conversations.TEMPLATES["chatml"]
        saved.save_pretrained(folder / "saved")
        for number in range(options.rounds * len(FORMATS)):
            name = FORMATS[number % len(FORMATS)]
            theirs = megatron.SFTTokenizer(str(folder / "saved"), name)
            cases = [record(rng) for _ in range(options.records)]
            (folder / "in.jsonl").write_text("".join(json.dumps({"messages": each}) + "\n" for each in cases))
            run = subprocess.run(
                [options.program, "--input", folder / "in.jsonl", "--output-prefix", folder / f"out{number}",
                 "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder / "saved", "--messages-key",
                 "messages", "--sft-tokenizer-prompt-format", name, "--on-bad-record", "quarantine"],
                capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(f"{name}: {run.stderr}")
            found, bad = conversations.read_dataset(folder / f"out{number}_messages_document")
            found = iter(found)
            for line, messages in enumerate(cases, 1):
                want = expected(theirs, messages)
                got = None if line in bad else next(found)
                if got != want:
                    sys.exit(f"{name}, seed {options.seed}, record {line}: {json.dumps(messages)}\n"
                             f"{conversations.difference(want, got)}")
                documents += got is not None
                refused += got is None
    print(f"{documents} documents and {refused} refused conversations of {len(FORMATS)} formats: none differs")
    if documents < refused or refused == 0:
        sys.exit("too few documents or refusals to prove anything")


if __name__ == "__main__":
    main()
