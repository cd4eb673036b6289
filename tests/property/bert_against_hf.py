#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our BERT ids with those of Hugging Face's `tokenizers` on random adversarial texts.

usage: bert_against_hf.py --driver D [--vocabulary TOKENIZER.JSON] [--cases N] [--seed S] [--code-points STEP]

Tests both BERT types with a vocab.txt, and a tokenizer.json for each setting of BertNormalizer, most with a small random
vocabulary and some with that of the given file. With --code-points, also tests every STEPth code point alone and next to
other characters (all of them take some minutes). Encodes every text twice, so that cached ids are compared as well. The
driver is the program of tests/support/encode_lines.cpp. The seed is printed; the same seed gives the same texts.
Exits 1 on a difference and 77 if the package `tokenizers` is missing.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import sys
import tempfile

from gpt2_against_hf import Driver

os.environ["TOKENIZERS_PARALLELISM"] = "false"
MARKS = [chr(c) for c in (0x300, 0x301, 0x307, 0x308, 0x315, 0x323, 0x327, 0x334, 0x338, 0x345, 0x5B0, 0x64B, 0x93C, 0x94D, 0xE38,
                          0x903, 0x9BE, 0xF71, 0xF72, 0xF74, 0x1DC4, 0x20D0, 0x20DD, 0x302A, 0x3099, 0xFE20, 0x101FD, 0x1D165)]
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\t", "\r\n", "\v", "\f", "\x1c", "\x85", "\u00a0", "\u1680", "\u180e",
          "\u2000", "\u2001", "\u200b", "\u2028", "\u202f", "\u3000"]
ODD = [chr(c) for c in (
    0x0, 0x1, 0x7F, 0x80, 0xAD, 0xB7, 0xBF, 0xC0, 0xC5, 0xDF, 0xE9, 0x130, 0x131, 0x149, 0x17F, 0x1C5, 0x2BC, 0x378, 0x37E, 0x387,
    0x390, 0x3A3, 0x3C2, 0x3C3, 0x439, 0x5BE, 0x5D0, 0x600, 0x61D, 0x627, 0x6D4, 0x915, 0x958, 0x964, 0xE01, 0xE33, 0xF0B, 0x1100,
    0x1161, 0x11A8, 0x1E9E, 0x1EAD, 0x1FEF, 0x200C, 0x200D, 0x2013, 0x2014, 0x2018, 0x2019, 0x201C, 0x201D, 0x2026, 0x2060,
    0x20AC, 0x2126, 0x212A, 0x212B, 0x2260, 0x2329, 0x232A, 0x2E43, 0x2ADC, 0x3001, 0x3002, 0x3005, 0x3007, 0x300C, 0x3042, 0x304C,
    0x30AB, 0x30FB, 0x30FC, 0x3400, 0x4DBF, 0x4DC0, 0x4E00, 0x4E2D, 0x9FA5, 0x9FEF, 0x9FFF, 0xA000, 0xAC00, 0xAC01, 0xD7A3, 0xE000,
    0xF900, 0xFA0E, 0xFAFF, 0xFB01, 0xFB1D, 0xFEFF, 0xFF01, 0xFF0C, 0xFF21, 0xFFFD, 0xFFFE, 0x10100, 0x10400, 0x11047, 0x1F600,
    0x20000, 0x2A6DF, 0x2A6E0, 0x2B740, 0x2B820, 0x2B920, 0x2CEAF, 0x2CEB0, 0x2F800, 0x2FA1F, 0x30000, 0xE0001, 0x10FFFF)]
PLAIN = list("aabceZAIS01") + ["the", "The", "THE", "ing", "un", "don't", "it's", "x_y", "C++", "a=b", "3.14", "e-mail"]
PUNCTUATION = list("!'\"#$+,-./:;<=>?@[]^_`{|}~()") + ["...", "--", "##", "##a", "[UNK]", "[CLS]", "[sep]", "<extra_id_7>", "[MASK"]
NEIGHBOURS = ["", "a", "A", "1", " ", "\n", "!", "'", "\u4e2d", "\u0301", "\u0323"]
SPECIALS = ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"]


def any_point(rng):
    while True:
        point = rng.choice((rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x3400), rng.randrange(0x10000),
                            rng.randrange(0x33000), rng.randrange(0x110000)))
        if not 0xD800 <= point < 0xE000:  # surrogates are not valid text
            return chr(point)


def text_of(rng):
    pools = (PLAIN, PLAIN, SPACES, PUNCTUATION, MARKS, ODD)
    kind = rng.randrange(16)
    if kind == 0:  # long words and long runs of marks or spaces
        few = [rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 4))]
        return "".join(rng.choice(few) for _ in range(rng.choice((30, 99, 100, 101, 130, 400))))
    if kind == 1:  # text at a random place in the windows
        return rng.choice(("x", " ", "y ", "!", "\u4e2d", "\u00e9")) * rng.randrange(128) + "".join(
            rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 8)))
    if kind == 2:  # sizes of words about those of keys
        return " ".join("".join(rng.choice("aeinorst\u00e9") for _ in range(rng.choice((13, 14, 15, 16, 17, 30, 31, 32, 33))))
                        for _ in range(rng.randrange(1, 6)))
    few = [rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 7))] if kind < 6 else None
    return "".join(rng.choice(few) if few and draw < 0.8 else any_point(rng) if draw < 0.1 else rng.choice(rng.choice(pools))
                   for draw in (rng.random() for _ in range(rng.choice((1, 2, 3, 5, 8, 13, 30)))))


def text_with(point):
    """A code point among neighbors, each on its own line."""
    return "\n".join(left + chr(point) + right for left, right in itertools.product(NEIGHBOURS, NEIGHBOURS))


def small_vocabulary(rng):
    letters = [c for c in PLAIN + PUNCTUATION + ODD + MARKS if len(c) == 1 and c not in "\r\n" and rng.random() < 0.8]
    words = ["".join(rng.choice("aabceinorstZI\u00e9\u0301") for _ in range(rng.randrange(1, 6))) for _ in range(300)]
    tokens = letters + ["##" + c for c in letters if rng.random() < 0.8] + words + ["##" + word for word in words[:150]]
    # Tokens without CR and LF, which would end a line of vocab.txt. The tokens are not normalized,
    # neither there nor here.
    return SPECIALS + [token for token in dict.fromkeys(tokens) if token not in SPECIALS]


def added(content, token_id, special=True):
    return {"id": token_id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": special}


def described(vocabulary, clean, chinese, accents, lower, normalizer=True, longest=100):
    """The tokenizer.json of a list of tokens."""
    ids = {token: i for i, token in enumerate(vocabulary)}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [added(t, ids[t]) for t in SPECIALS],
            "normalizer": {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents,
                           "lowercase": lower} if normalizer else None,
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None, "decoder": {"type": "WordPiece", "prefix": "##",
                                                                                              "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": longest, "vocab": ids}}


def bert_type(tokenizers, vocabulary, lower):
    """Megatron's BertWordPieceCase and BertWordPieceLowerCase."""
    spec = described(vocabulary, True, True, None, lower)
    ids = spec["model"]["vocab"]
    spec["post_processor"] = {"type": "BertProcessing", "cls": ["[CLS]", ids["[CLS]"]], "sep": ["[SEP]", ids["[SEP]"]]}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(spec))
    tokenizer.add_special_tokens([tokenizers.AddedToken(f"<extra_id_{i}>", normalized=False, special=True) for i in range(100)])
    return tokenizer


def case_of(rng, number, tokenizers, folder, given):
    """The parts of one tokenizer, and its flags for the driver."""
    vocabulary = given if given and number % 4 == 0 else small_vocabulary(rng)
    if number % 3 == 0:
        path = folder / f"{number}.txt"
        path.write_text("".join(token + "\n" for token in vocabulary), encoding="utf-8", newline="")
        lower = number % 2 == 0
        return bert_type(tokenizers, vocabulary, lower), [
            "--tokenizer-type", "BertWordPieceLowerCase" if lower else "BertWordPieceCase", "--vocab-file", path]
    flag = lambda: rng.random() < 0.5
    spec = described(vocabulary, flag(), flag(), rng.choice((True, False, None)), flag(), rng.random() < 0.9,
                     rng.choice((3, 14, 15, 16, 100, 100)))
    path = folder / f"{number}.json"
    path.write_text(json.dumps(spec))
    return tokenizers.Tokenizer.from_str(json.dumps(spec)), ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", path]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--vocabulary", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=100000, help="texts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code-points", type=int, default=0)
    options = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        print("skipped: needs the Python package tokenizers")
        sys.exit(77)
    print(f"seed {options.seed}, tokenizers {tokenizers.__version__}", flush=True)
    rng = random.Random(options.seed)
    given = list(json.loads(options.vocabulary.read_text())["model"]["vocab"]) if options.vocabulary else None
    points = [p for p in range(0, 0x110000 if options.code_points else 0, options.code_points or 1) if not 0xD800 <= p < 0xE000]
    done = differences = ids = number = 0
    with tempfile.TemporaryDirectory() as folder:
        while done < options.cases or points:
            number += 1
            tokenizer, flags = case_of(rng, number, tokenizers, pathlib.Path(folder), given)
            texts = [text_with(point) for point in points[:2000]] + [text_of(rng) for _ in range(5000)]
            points = points[2000:]
            wanted = [e.ids for e in tokenizer.encode_batch_fast(texts)]
            found = Driver([options.driver, *flags]).encode(texts + texts)
            for text, expected, first, again in zip(texts, wanted, found, found[len(texts):]):
                ids += len(expected)
                if expected == first == again:
                    continue
                differences += 1
                if differences <= 5:
                    print(f"{flags} {json.dumps(json.loads(tokenizer.to_str())['normalizer'])}\n  text {text!a}\n"
                          f"  expected {expected}\n  found    {first}\n  again    {again}")
            done += len(texts)
    print(f"{number} tokenizers, {done} texts, {ids} ids, {differences} texts differ")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
