#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares ids of one tokenizer with those of its reference on millions of short random texts.

usage: long_run.py --driver D (--tiktoken FILE --pattern NAME | --tokenizers FILE | --sentencepiece FILE) [--texts N] [--seed S]
                   [--code-points] [FLAG ...]

The other scripts in this folder create unusual tokenizers. This one takes a real file, or one of tests/golden, and creates
texts fast, from a pool that it draws again after every 50,000 texts: tokens, words of letters that rarely occur together, and
unusual characters. Every eighth text has 0 to 127 extra bytes before it and after it, so that it begins and ends at any place
in a block. With --code-points, the texts are every code point instead, alone and next to each of a few others. D is the
program of tests/support/encode_lines.cpp; it also gets the FLAGs. A million texts take 90 seconds on one core with tiktoken.
Exits 1 on a difference and 77 if the reference is missing.
"""
import argparse
import random
import struct
import subprocess
import sys

from gpt2_against_hf import ODD, PIECES, any_point

LETTERS = ["etaoinshrdlu", "abcdefghijklmnopqrstuvwxyz", "ABCDEabcde", "aeiou'", "0123456789", "\u0430\u0435\u0438\u043d\u043e\u0441\u0442\u0440\u043b\u044c",
           "\u3042\u3044\u3046\u306e\u306f\u30a2\u30f3\u30fc\u65e5\u672c\u8a9e\u4eba", "\uac00\ub098\ub2e4\ub77c\uc774\ub294", "\u0915\u093e\u0930\u0928\u0940\u094d\u092e",
           "\u00e9\u00e8\u00fc\u00f1\u0301a", "{}()[];:=<>/*\\", " \t\n\r\u00a0\u3000", "\u05d0\u05d1\u05d2\u0627\u0644\u0645"]


def pool_of(rng, tokens):
    pool = [rng.choice(tokens) for _ in range(1500)] + ODD + PIECES * 2 + [any_point(rng) for _ in range(300)]
    for _ in range(2500):
        letters = rng.choice(LETTERS)
        pool.append(rng.choice(("", " ", " ", "\n")) + "".join(rng.choices(letters, k=rng.choice((1, 2, 3, 5, 8, 11, 15, 16, 31, 32, 40)))))
    return pool


def texts_of(rng, tokens, count):
    pool = pool_of(rng, tokens)
    sizes = rng.choices((1, 2, 3, 4, 6, 9, 14), k=count)
    pieces = iter(rng.choices(pool, k=sum(sizes)))
    texts = ["".join(next(pieces) for _ in range(size)) for size in sizes]
    for i in range(0, count, 8):
        texts[i] = rng.choice("a 1!") * rng.randrange(128) + texts[i] + rng.choice("a 1!") * rng.randrange(128)
    return texts


def code_point_texts(at, count):
    """Texts of `count` code points from `at` on: each code point alone, then after and before each neighbor."""
    texts = []
    for value in range(at, min(at + count, 0x110000)):
        if 0xD800 <= value < 0xE000:
            continue
        point = chr(value)
        texts.append(point)
        for neighbour in "aA1 \n!'":
            texts += (neighbour + point, point + neighbour)
    return texts


def tiktoken_reference(file, pattern):
    import base64
    import tiktoken
    from tiktoken_against_reference import MEGATRON_PATTERNS, PATTERNS
    if pattern in MEGATRON_PATTERNS:
        from megatron.core.tokenizers.text.libraries import tiktoken_tokenizer
        PATTERNS[pattern] = getattr(tiktoken_tokenizer, f"_PATTERN_TIKTOKEN_{pattern.upper()}")
    ranks = {}
    with open(file, "rb") as lines:
        for line in lines:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    encoding = tiktoken.Encoding("long", pat_str=PATTERNS[pattern], mergeable_ranks=ranks, special_tokens={})
    tokens = [token.decode(errors="ignore") for token in ranks]
    # If a file lists a special token itself, its vocabulary may differ from that of the pattern.
    return tokens, lambda texts: encoding.encode_ordinary_batch(texts, num_threads=1), [
        "--tokenizer-type", "TikTokenizer", "--tiktoken-pattern", pattern, "--tokenizer-model", file,
        "--tokenizer-special-tokens", "<|endoftext|>"]


def tokenizers_reference(file):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(file)
    return list(tokenizer.get_vocab()), lambda texts: [
        e.ids for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)], [
        "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-hf-no-include-special-tokens", "--tokenizer-model", file]


def sentencepiece_reference(file):
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=file)
    tokens = [model.id_to_piece(i).replace("\u2581", " ") for i in range(model.get_piece_size())]
    return tokens, lambda texts: model.encode(texts, num_threads=1), [
        "--tokenizer-type", "SentencePieceTokenizer", "--tokenizer-model", file, "--special-tokens-in-text", "encode-as-text"]


def ours(command, texts):
    coded = [text.encode() for text in texts]
    sent = b"".join(struct.pack("<I", len(text)) + text for text in coded)
    return subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=True).stdout


def packed(ids):
    return struct.pack(f"<{len(ids) + 1}I", len(ids), *ids)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--tiktoken")
    parser.add_argument("--pattern", default="cl100k")
    parser.add_argument("--tokenizers")
    parser.add_argument("--sentencepiece")
    parser.add_argument("--texts", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code-points", action="store_true")
    options, more = parser.parse_known_args()
    try:
        tokens, reference, flags = (tiktoken_reference(options.tiktoken, options.pattern) if options.tiktoken else
                                    tokenizers_reference(options.tokenizers) if options.tokenizers else
                                    sentencepiece_reference(options.sentencepiece))
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    tokens = [token for token in tokens if token] or ["a"]
    batches = ((code_point_texts(at, 3000) for at in range(0, 0x110000, 3000)) if options.code_points else
               (texts_of(rng, tokens, min(50000, options.texts - at)) for at in range(0, options.texts, 50000)))
    done = different = ids = 0
    for texts in batches:
        if not texts:
            continue
        expected = [packed(each) for each in reference(texts)]
        found = ours([options.driver, *flags, *more], texts)
        ids += (len(found) - 4 * len(texts)) // 4
        if b"".join(expected) != found:
            at = 0
            for text, each in zip(texts, expected):
                (count,) = struct.unpack_from("<I", found, at)
                got = found[at:at + 4 + 4 * count]
                at += len(got)
                if got == each:
                    continue
                different += 1
                if different <= 5:
                    print(f"{text!r}: expected {struct.unpack(f'<{len(each) // 4}I', each)[1:]}, found "
                          f"{struct.unpack(f'<{len(got) // 4}I', got)[1:]}")
        done += len(texts)
    print(f"{done} texts, {ids} ids, {different} texts differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
