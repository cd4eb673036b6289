#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our GPT-2 ids with those of Hugging Face's `tokenizers` on random adversarial texts.

usage: gpt2_against_hf.py --driver D [--vocab-file F] [--merge-file F] [--cases N] [--seed S]

The driver is the program of tests/support/encode_lines.cpp. Without files, it uses the tiny BPE of
tests/golden. The seed is printed; the same seed gives the same texts. Exits 1 on a difference and
77 if the package `tokenizers` is missing.
"""
import argparse
import pathlib
import random
import struct
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
SPECIAL = "<|endoftext|>"

# Some tokenizer has treated each of these wrongly at some time: marks, title case and caseless
# letters, numbers that are not digits, white space on which Python or an engine disagrees,
# characters that were unassigned until recently, and the ends of the tables.
ODD = [chr(c) for c in (
    0x00, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1F, 0x7F, 0x80, 0x85, 0xA0, 0xAA, 0xAD, 0xB2, 0xBD,
    0xD7, 0x130, 0x131, 0x149, 0x17F, 0x1C5, 0x2B0, 0x300, 0x301, 0x378, 0x3C2, 0x5D0, 0x660,
    0x903, 0x9F4, 0xE33, 0xFFF, 0x1000, 0x1680, 0x180E, 0x1C89, 0x2000, 0x200A, 0x200B, 0x200D,
    0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x20DD, 0x2160, 0x2167, 0x212A, 0x2460, 0x2FFF, 0x3000,
    0x3005, 0x3007, 0x3042, 0x30FC, 0x4E00, 0x9FFF, 0xA7DC, 0xD7FF, 0xE000, 0xFEFF, 0xFF10, 0xFFFD,
    0xFFFF, 0x10000, 0x10140, 0x104A0, 0x10D4A, 0x10D40, 0x16D40, 0x1D7D8, 0x1E5D0, 0x1F1E6, 0x1F600,
    0x1FBF0, 0x20000, 0x2EBE0, 0x2FA1D, 0x31350, 0x323AF, 0x323B0, 0xE0001, 0xE0100, 0x10FFFF)]
PIECES = ["'", "'", "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", " ", " ", " ", "  ",
          "\n", "\r\n", "\t", "the", "ing", "A", "Z", "a", "e", "s", "t", "0", "1", "42", "!", "...",
          "-", "_", "/", "<", "|", ">", "<|", "|>", SPECIAL, SPECIAL[:-1], SPECIAL[1:],
          "<|<|endoftext|>", "endoftext"]


def any_point(rng):
    while True:
        point = rng.choice((rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x3400),
                            rng.randrange(0x10000), rng.randrange(0x33000), rng.randrange(0x110000)))
        if not 0xD800 <= point < 0xE000:  # surrogates are not valid text
            return chr(point)


def text_of(rng):
    kind = rng.randrange(20)
    if kind == 0:  # a long run, which takes the long merge path
        few = [rng.choice(PIECES + ODD) for _ in range(rng.randrange(1, 4))]
        return "".join(rng.choice(few) for _ in range(rng.randrange(60, 400)))
    if kind == 1:  # letters without a break: many merges that compete
        return "".join(rng.choice("aeinorst") for _ in range(rng.randrange(1, 300)))
    if kind == 2:
        return any_point(rng) * rng.randrange(1, 200)
    length = rng.randrange(0, 24)
    return "".join(any_point(rng) if (draw := rng.random()) < 0.3 else
                   rng.choice(ODD) if draw < 0.5 else rng.choice(PIECES) for _ in range(length))


def reference(vocab_file, merge_file):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    tokenizer = Tokenizer(models.BPE.from_file(str(vocab_file), str(merge_file)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.add_special_tokens([AddedToken(SPECIAL, special=True)])
    return lambda texts: [e.ids for e in tokenizer.encode_batch_fast(texts)]


class Driver:
    def __init__(self, command):
        self.command = command

    def encode(self, texts):
        coded = [text.encode() for text in texts]
        sent = b"".join(struct.pack("<I", len(text)) + text for text in coded)
        got = subprocess.run(self.command, input=sent, stdout=subprocess.PIPE, check=True).stdout
        ids, at = [], 0
        for _ in texts:
            (count,) = struct.unpack_from("<I", got, at)
            ids.append(list(struct.unpack_from(f"<{count}I", got, at + 4)))
            at += 4 + 4 * count
        assert at == len(got), "the driver said more than it was asked"
        return ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--vocab-file", default=GOLDEN / "tiny_bpe/vocab.json")
    parser.add_argument("--merge-file", default=GOLDEN / "tiny_bpe/merges.txt")
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        expected_ids = reference(options.vocab_file, options.merge_file)
    except ImportError:
        print("skipped: needs the Python package tokenizers")
        sys.exit(77)
    driver = Driver([options.driver, "--tokenizer-type", "GPT2BPETokenizer",
                     "--vocab-file", options.vocab_file, "--merge-file", options.merge_file])

    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    done = differences = ids = 0
    while done < options.cases:
        texts = [text_of(rng) for _ in range(min(50000, options.cases - done))]
        for text, expected, found in zip(texts, expected_ids(texts), driver.encode(texts)):
            ids += len(expected)
            if expected != found:
                differences += 1
                if differences <= 5:
                    print(f"text {text!a}\n  expected {expected}\n  found    {found}")
        done += len(texts)
    print(f"{done} texts, {ids} ids, {differences} texts differ")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
