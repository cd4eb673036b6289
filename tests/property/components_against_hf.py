#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our normalizers and pre-tokenizers with Hugging Face's tokenizers.

usage: components_against_hf.py --driver PROGRAM [--cases N] [--texts N] [--seed N] [--code-points] [--only WORD]

A case is a random tree of components as a tokenizer.json has them, and texts of odd characters. With --code-points,
instead, every code point alone and among neighbours goes through each component by itself (an hour's half).
PROGRAM is apply_components. A component that ours refuses is counted, not compared; some have to be refused and are
never made. Exits 77 if the package tokenizers is missing.
"""
import argparse
import json
import random
import struct
import subprocess
import sys

PACKAGE = "0.23.3"
ODD = [chr(p) for p in (
    0x0, 0x1, 0x9, 0xA, 0xB, 0xC, 0xD, 0x1C, 0x1F, 0x20, 0x7F, 0x80, 0x85, 0x8F, 0xA0, 0xAD, 0xB2, 0xBD, 0xC5, 0xDF,
    0xE9, 0x130, 0x131, 0x149, 0x17F, 0x1C4, 0x1C5, 0x2BC, 0x300, 0x301, 0x302, 0x307, 0x308, 0x30C, 0x315, 0x323,
    0x327, 0x328, 0x334, 0x338, 0x344, 0x345, 0x378, 0x37A, 0x37E, 0x390, 0x3A3, 0x3B1, 0x3C2, 0x3C3, 0x439, 0x483,
    0x5B0, 0x5D0, 0x600, 0x61D, 0x627, 0x644, 0x64B, 0x653, 0x661, 0x7FD, 0x897, 0x8E2, 0x903, 0x915, 0x93C, 0x94D,
    0x958, 0x9BE, 0x9C7, 0x9DC, 0xB3E, 0xB47, 0xB56, 0xDCF, 0xDD9, 0xE01, 0xE33, 0xF71, 0xF73, 0xF81, 0xFB2, 0x1025,
    0x102E, 0x1100, 0x1112, 0x1161, 0x1175, 0x11A7, 0x11A8, 0x11C2, 0x1680, 0x1734, 0x180E, 0x1AB0, 0x1ABF, 0x1B05,
    0x1B35, 0x1C89, 0x1D2C, 0x1DF6, 0x1E9E, 0x1EAD, 0x1F00, 0x1FB3, 0x1FEF, 0x2000, 0x200B, 0x200D, 0x2028, 0x2029,
    0x202F, 0x205F, 0x2060, 0x20DD, 0x2126, 0x212A, 0x212B, 0x2160, 0x2260, 0x2460, 0x24B6, 0x2581, 0x2ADC, 0x2E43,
    0x3000, 0x3002, 0x3042, 0x304B, 0x3099, 0x309A, 0x30AB, 0x30FC, 0x3131, 0x32FF, 0x3400, 0x4E00, 0x9FFF, 0xA66F,
    0xA69C, 0xA7CB, 0xA7F2, 0xA8C5, 0xA8E0, 0xAB5C, 0xAC00, 0xAC01, 0xD7A3, 0xD7B0, 0xE000, 0xF900, 0xFA0E, 0xFB1D,
    0xFB2C, 0xFB01, 0xFB06, 0xFDFA, 0xFE0F, 0xFE20, 0xFEFF, 0xFF10, 0xFF21, 0xFF76, 0xFF9E, 0xFFFD, 0x10140, 0x10400,
    0x105C9, 0x10A01, 0x10D4A, 0x10D50, 0x11099, 0x110BA, 0x11131, 0x111C9, 0x11347, 0x11357, 0x114B9, 0x114BA,
    0x11DE0, 0x16EA0, 0x16FF0, 0x1D15E, 0x1D165, 0x1D1BF, 0x1D400, 0x1D7D8, 0x1E000, 0x1E8D0, 0x1F130, 0x1F1E6,
    0x1F468, 0x1F3FD, 0x1F600, 0x20000, 0x2B820, 0x2CEA1, 0x2F800, 0x2FA1D, 0x323AF, 0xE0001, 0xE0100, 0x10FFFF)]
PLAIN = ["a", "A", "e", "Z", "s", "t", "f", "i", "0", "1", "42", " ", " ", " ", "  ", "\n", "\r\n", "\t", "!", "...",
         "-", "--", "_", "'", "'s", "'S", "'ll", "don't", "the", " the", ",", "(", "\u2581", "\u2581\u2581", "x_y", "ab"]


def any_point(rng):
    while True:
        point = rng.choice((rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x3400), rng.randrange(0x10000),
                            rng.randrange(0x33000), rng.randrange(0x110000)))
        if not 0xD800 <= point < 0xE000:
            return chr(point)


def text_of(rng):
    length = rng.choice((0, 1, 2, 3, 4, 6, 10, 20, 40, 150))
    few = [rng.choice(ODD + PLAIN) for _ in range(rng.randrange(1, 6))] if rng.random() < 0.4 else None
    return "".join(rng.choice(few) if few else any_point(rng) if (draw := rng.random()) < 0.2 else
                   rng.choice(ODD) if draw < 0.6 else rng.choice(PLAIN) for _ in range(length))


def flag(rng):
    return rng.random() < 0.5


def literal(rng):
    return "".join(rng.choice(PLAIN + ODD[:60]) for _ in range(rng.choice((1, 1, 1, 2))))


def normalizer(rng, depth=0):
    kind = rng.choice(("BertNormalizer", "Strip", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt",
                       "Replace", "Prepend", "ByteLevel") + ("Sequence",) * (6 if depth < 2 else 0))
    made = {"type": kind}
    if kind == "BertNormalizer":
        made |= {"clean_text": flag(rng), "handle_chinese_chars": flag(rng), "lowercase": flag(rng),
                 "strip_accents": rng.choice((True, False, None))}
    elif kind == "Strip":
        made |= {"strip_left": flag(rng), "strip_right": flag(rng)}
    elif kind == "Replace":
        made |= {"pattern": {"String": literal(rng)}, "content": rng.choice(("", literal(rng)))}
    elif kind == "Prepend":
        made |= {"prepend": literal(rng)}
    elif kind == "Sequence":
        made |= {"normalizers": [normalizer(rng, depth + 1) for _ in range(rng.randrange(0, 4))]}
    return made


BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def pre_tokenizer(rng, depth=0, first=True):
    kind = rng.choice(("BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Whitespace",
                       "WhitespaceSplit", "Split", "Split", "Punctuation", "Digits", "UnicodeScripts", "FixedLength") +
                      ("Sequence",) * (6 if depth < 2 else 0))
    made = {"type": kind}
    if kind == "ByteLevel":
        made |= {"add_prefix_space": flag(rng), "trim_offsets": flag(rng), "use_regex": flag(rng)}
    elif kind == "CharDelimiterSplit":
        made |= {"delimiter": rng.choice(" ,-\u2581a\u0301")}
    elif kind == "Metaspace":
        scheme = rng.choice(("always", "first", "never") if first else ("always", "never"))
        made |= {"replacement": rng.choice("\u2581\u2581_ "), "prepend_scheme": scheme, "split": flag(rng)}
    elif kind == "Split":
        made |= {"pattern": {"String": literal(rng)}, "behavior": rng.choice(BEHAVIORS), "invert": flag(rng)}
    elif kind == "Punctuation":
        made |= {"behavior": rng.choice(BEHAVIORS)}
    elif kind == "Digits":
        made |= {"individual_digits": flag(rng)}
    elif kind == "FixedLength":
        made |= {"length": rng.randrange(1, 7)}
    elif kind == "Sequence":
        parts = []
        for _ in range(rng.randrange(0, 4)):
            parts.append(pre_tokenizer(rng, depth + 1, first))
            first = first and parts[-1] == {"type": "Sequence", "pretokenizers": []}
        made |= {"pretokenizers": parts}
    return made


class Reference:
    def __init__(self):
        import tokenizers
        if tokenizers.__version__ != PACKAGE:
            print(f"skipped: needs tokenizers {PACKAGE}, found {tokenizers.__version__}")
            sys.exit(77)
        self.parse = tokenizers.Tokenizer.from_str

    def apply(self, components, texts):
        whole = {"version": "1.0", "added_tokens": [], "post_processor": None, "decoder": None, "truncation": None,
                 "padding": None, "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}}
        tokenizer = self.parse(json.dumps(whole | components))
        normal, pre = tokenizer.normalizer, tokenizer.pre_tokenizer
        for text in texts:
            try:
                changed = normal.normalize_str(text) if normal else text
                # A text that is empty may come as an empty piece, which no model makes anything of.
                yield [p for p, _ in pre.pre_tokenize_str(changed) if p] if pre else [changed]
            except BaseException as e:  # its panics are no Exception
                if "Panic" not in type(e).__name__:
                    raise
                yield None


class Driver:
    def __init__(self, command):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def number(self):
        return struct.unpack("<I", self.process.stdout.read(4))[0]

    def text(self):
        return self.process.stdout.read(self.number()).decode()

    def apply(self, components, texts):
        coded = [json.dumps(components).encode()] + [text.encode() for text in texts]
        parts = [struct.pack("<I", len(part)) + part for part in coded]
        self.process.stdin.write(parts[0] + struct.pack("<I", len(texts)) + b"".join(parts[1:]))
        self.process.stdin.flush()
        if self.number():
            return self.text()
        return [[self.text() for _ in range(self.number())] for _ in texts]


class Comparison:
    def __init__(self, driver):
        self.reference, self.driver = Reference(), Driver(driver)
        self.texts = self.differences = self.refused = self.panics = 0

    def compare(self, components, texts):
        found = self.driver.apply(components, texts)
        if isinstance(found, str):
            self.refused += 1
            if self.refused <= 5:
                print(f"refused: {found}")
            return
        for text, expected, ours in zip(texts, self.reference.apply(components, texts), found):
            self.texts += 1
            if expected is None:
                self.panics += 1
            elif expected != ours:
                self.differences += 1
                if self.differences <= 5:
                    print(f"{json.dumps(components)}\ntext {text!a}\n  expected {expected!a}\n  found    {ours!a}")


def code_point_cases(only):
    def normal(**fields):
        return {"normalizer": fields, "pre_tokenizer": None}

    def pre(**fields):
        return {"normalizer": None, "pre_tokenizer": fields}

    bert = dict(type="BertNormalizer", clean_text=False, handle_chinese_chars=False, strip_accents=False,
                lowercase=False)
    cases = [normal(type=kind) for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "StripAccents",
                                            "ByteLevel")]
    cases += [normal(**bert | {key: True}) for key in bert if key != "type"]
    cases += [normal(type="Strip", strip_left=True, strip_right=True)]
    cases += [pre(type=kind) for kind in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")]
    cases += [pre(type="Punctuation", behavior="Isolated"), pre(type="Digits", individual_digits=True),
              pre(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True),
              pre(type="Metaspace", replacement="\u2581", prepend_scheme="always", split=True)]
    return [case for case in cases if only in json.dumps(case)]


def every_code_point(comparison, only):
    points = [*range(0xD800), *range(0xE000, 0x33500), *range(0xE0000, 0xE0200), *range(0x10FF00, 0x110000)]
    for case in code_point_cases(only):
        for start in range(0, len(points), 20000):
            some = [chr(point) for point in points[start:start + 20000]]
            comparison.compare(case, some)
            comparison.compare(case, [f"a{c}A{c}1{c} {c}\n{c}!{c}'{c}a\u0301{c}\u1161{c}" for c in some])
        print(json.dumps(case), comparison.texts, "texts,", comparison.differences, "differ", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code-points", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    try:
        comparison = Comparison(options.driver)
    except ImportError:
        print("skipped: needs the Python package tokenizers")
        sys.exit(77)
    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    if options.code_points:
        every_code_point(comparison, options.only)
    else:
        for _ in range(options.cases):
            kind = rng.randrange(3)
            components = {"normalizer": normalizer(rng) if kind != 1 else None,
                          "pre_tokenizer": pre_tokenizer(rng) if kind != 0 else None}
            comparison.compare(components, [text_of(rng) for _ in range(options.texts)])
    print(f"{comparison.texts} texts, {comparison.differences} differ, {comparison.refused} cases refused, "
          f"{comparison.panics} texts that the reference dies of")
    sys.exit(1 if comparison.differences or comparison.refused > options.cases // 10 else 0)


if __name__ == "__main__":
    main()
