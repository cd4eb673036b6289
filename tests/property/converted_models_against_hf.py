#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our ids with those of Hugging Face's `tokenizers` for SentencePiece models that were converted.

usage: converted_models_against_hf.py --driver D [--every N] [--seed S] [MODEL ...]

Converts each Unigram MODEL to a tokenizer.json in the ways in which `transformers` converts those of T5, XLM-R, Pegasus
and ALBERT. Without MODEL, it takes those in the folder of vocabularies next to the checkout (or in $MILLRACE_SHARED), and
the tiny one in tests/golden. The texts are every Nth line of the corpora in that folder, and the sample corpus. The driver
is the program of tests/support/hugging_face_lines.cpp. Exits 1 on a difference and 77 if the package `tokenizers` is
missing.
"""
import argparse
import gzip
import json
import os
import pathlib
import struct
import sys
import tempfile

import charsmaps
from hugging_face_against_reference import ask_driver

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = pathlib.Path(os.environ.get("MILLRACE_SHARED", ROOT / "../shared"))
SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM = 1


def pieces_of(model):
    """(text, score, type) of each piece, or None if the model is not of type Unigram."""
    pieces, kind = [], UNIGRAM
    for number, value in charsmaps.fields(model):
        if number == 1:
            piece = dict(charsmaps.fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece.get(2, bytes(4)))[0], piece.get(3, NORMAL)))
        elif number == 2:
            kind = dict(charsmaps.fields(value)).get(3, UNIGRAM)
    return pieces if kind == UNIGRAM else None


def special(token, content, **flags):
    return {"id": token, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True} | flags


def conversions(model):
    """{name: tokenizer.json}"""
    pieces = pieces_of(model)
    if not pieces:
        return {}
    vocab = [[text, score] for text, score, _ in pieces]
    controls = [special(i, text) for i, (text, _, kind) in enumerate(pieces) if kind in (UNKNOWN, CONTROL)]
    metaspace = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
    charsmap = charsmaps.in_model(model)
    rules = [charsmaps.component(charsmap)] if charsmap else []
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}

    def spaces(content):
        return {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": content}

    def literal(text, content):
        return {"type": "Replace", "pattern": {"String": text}, "content": content}

    def end(token, name):
        return {"type": "TemplateProcessing", "pair": [{"Sequence": {"id": "A", "type_id": 0}},
                                                       {"Sequence": {"id": "B", "type_id": 1}}],
                "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": name, "type_id": 0}}],
                "special_tokens": {name: {"id": name, "ids": [token], "tokens": [name]}}}

    def made(steps, pre, more=(), post=None):
        unknown = next(i for i, piece in enumerate(pieces) if piece[2] == UNKNOWN)
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [*controls, *more],
                "normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": pre,
                "post_processor": post, "decoder": metaspace,
                "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocab,
                          "byte_fallback": any(kind == BYTE for _, _, kind in pieces)}}

    ends = [(i, text) for i, (text, _, kind) in enumerate(pieces) if kind == CONTROL]
    post = end(*ends[-1]) if ends else None
    extra = [special(len(pieces) + i, f"<extra_id_{i}>") for i in range(3)]
    return {
        "T5": made([*rules, strip, spaces(SPACE)], metaspace, extra, post),
        "T5 as it was first": made(rules, {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
                                   extra, post),
        "not legacy": made([*rules, strip, spaces(SPACE)], metaspace | {"prepend_scheme": "first"},
                           [special(len(pieces), "<mask>", lstrip=True)], post),
        "ALBERT": made([literal("``", '"'), literal("''", '"'), {"type": "NFKD"}, {"type": "StripAccents"},
                        {"type": "Lowercase"}, *rules, spaces(" ")], metaspace),
    }


def texts_of(every):
    for line in (ROOT / "scripts/sample/corpus.jsonl").read_text().splitlines():
        text = json.loads(line)["text"]
        yield from [text] if isinstance(text, str) else text
    for corpus in sorted((SHARED / "corpora").glob("*.jsonl.gz")):
        with gzip.open(corpus, "rt") as lines:
            for number, line in enumerate(lines):
                if number % every == 0:
                    # A lone surrogate is not valid text for either program.
                    yield json.loads(line)["text"].encode(errors="replace").decode()
    yield from ("", " ", "  ", "\n", "a<extra_id_1> b", " <mask> x", "</s>", "e\u0301 E\u0301 \ufb01\u2460\r\n x  ",
                "\u0915\u094d\u0915\u0301 \u1100\u1161\u11a8 \u00a9\u200d\u00a9\u0301 \U0001f1e6\U0001f1e7", SPACE * 3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    try:
        from tokenizers import Tokenizer
    except ImportError:
        print("skipped: needs the Python package tokenizers")
        sys.exit(77)
    models = options.models or [*(ROOT / "tests/golden/tiny_sentencepiece").glob("*.model"),
                                *(SHARED / "tokenizers/nai_t5").glob("*.model")]
    texts, differences, converted = list(texts_of(options.every)), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            for name, described in conversions(model.read_bytes()).items():
                path = pathlib.Path(folder) / "tokenizer.json"
                path.write_text(json.dumps(described))
                reference = Tokenizer.from_file(str(path))
                (head, found), = ask_driver(options.driver, [(path, "yes", "allow", texts)])
                converted += 1
                wrong = 0 if head.startswith("ok") else 1
                for text, (ids, decoded) in zip(texts, found):
                    expected = reference.encode(text).ids
                    if ids != expected or decoded.decode() != reference.decode(expected, skip_special_tokens=False):
                        wrong += 1
                        if wrong == 1:
                            print(f"  text     {text[:200]!a}\n  expected {expected[:40]}\n  found    {ids[:40]}")
                refusal = "" if found else head + ", "
                print(f"{model.name} as {name}: {refusal}{len(texts)} texts, {wrong} differ", flush=True)
                differences += wrong
    sys.exit(1 if differences or not converted else 0)


if __name__ == "__main__":
    main()
