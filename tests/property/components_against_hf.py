#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our normalizers and pre-tokenizers with Hugging Face's tokenizers.

usage: components_against_hf.py --driver PROGRAM [--cases N] [--texts N] [--seed N] [--regexes]
                                [--code-points] [--only WORD]

A case is a random tree of components as in a tokenizer.json, and texts of unusual characters; with --regexes, one
component with a random regular expression. With --code-points, every code point goes through each component and each
character set of regular expressions instead, alone and among neighbors (this takes an hour). --only WORD limits the cases
to those that name WORD, e.g. Precompiled.
PROGRAM is apply_components. Components that we refuse are counted, not compared; some must be refused and do not
occur. Exits 77 if the package tokenizers is missing.
"""
import argparse
import json
import random
import struct
import subprocess
import sys

import charsmaps
from random_regexes import (CATEGORIES, CLUSTERS, ODD, PLAIN, POINTS, POSIX, flag, literal, not_empty, regex, some_regex,
                            text_of)

PACKAGE = "0.23.3"


def charsmap(rng):
    if known := list(charsmaps.of_sentencepiece().values()):
        if rng.random() < 0.3:
            return rng.choice(known)
    return charsmaps.random_map(rng, CLUSTERS if flag(rng) else ODD + PLAIN)


def normalizer(rng, depth=0):
    kind = rng.choice(("Precompiled", "Precompiled", "BertNormalizer", "Strip", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt",
                       "Replace", "Prepend", "ByteLevel") + ("Sequence",) * (6 if depth < 2 else 0))
    made = {"type": kind}
    if kind == "Precompiled":
        made = charsmaps.component(charsmap(rng))
    elif kind == "BertNormalizer":
        made |= {"clean_text": flag(rng), "handle_chinese_chars": flag(rng), "lowercase": flag(rng),
                 "strip_accents": rng.choice((True, False, None))}
    elif kind == "Strip":
        made |= {"strip_left": flag(rng), "strip_right": flag(rng)}
    elif kind == "Replace":
        pattern = {"Regex": some_regex(rng)} if flag(rng) else {"String": literal(rng)}
        made |= {"pattern": pattern, "content": rng.choice(("", literal(rng)))}
    elif kind == "Prepend":
        made |= {"prepend": literal(rng)}
    elif kind == "Sequence":
        made |= {"normalizers": [normalizer(rng, depth + 1) for _ in range(rng.randrange(0, 4))]}
    return made


def characters_of_regexes(value):
    """What may match, or nearly."""
    if isinstance(value, list):
        return [c for each in value for c in characters_of_regexes(each)]
    if not isinstance(value, dict):
        return []
    found = [c for c in value.get("Regex", "") if c not in "[](){}*+?|^$"]
    return found + [c for each in value.values() for c in characters_of_regexes(each)]


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
        pattern = {"Regex": some_regex(rng)} if rng.random() < 0.7 else {"String": literal(rng)}
        made |= {"pattern": pattern, "behavior": rng.choice(BEHAVIORS), "invert": flag(rng)}
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


def regex_component(rng):
    pattern = regex(rng)
    if rng.random() < 0.2:
        pattern = {"Regex": not_empty(rng, pattern)}
        return {"normalizer": {"type": "Replace", "pattern": pattern, "content": rng.choice(("", "x"))},
                "pre_tokenizer": None}
    return {"normalizer": None, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern},
                                                  "behavior": rng.choice(BEHAVIORS), "invert": flag(rng)}}


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
        try:
            tokenizer = self.parse(json.dumps(whole | components))
        except Exception as e:
            print(f"refused there: {e} {charsmaps.shown(components)}")
            yield from (None for _ in texts)
            return
        normal, pre = tokenizer.normalizer, tokenizer.pre_tokenizer
        for text in texts:
            try:
                changed = normal.normalize_str(text) if normal else text
                # The pre-tokenizer may return an empty text as an empty piece. No model gives
                # tokens for it.
                pieces = [p for p, _ in pre.pre_tokenize_str(changed) if p] if pre else [changed]
                # Runs both at once, which keeps offsets in the text. With this model, every piece
                # is one token.
                if pre and len(tokenizer.encode(text).ids) != len(pieces):
                    print(f"the whole differs from its parts there: {charsmaps.shown(components)} {text!a}")
                    pieces = "cannot be told"
                yield pieces
            except BaseException as e:  # its panics do not derive from Exception
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
        return [self.pieces() for _ in texts]

    def pieces(self):
        count = self.number()
        return None if count == 0xFFFFFFFF else [self.text() for _ in range(count)]


class Comparison:
    def __init__(self, driver):
        self.reference, self.driver = Reference(), Driver(driver)
        self.texts = self.differences = self.refused = self.panics = self.given_up = self.without_pcre2 = 0

    def compare(self, components, texts):
        found = self.driver.apply(components, texts)
        if isinstance(found, str) and "no PCRE2" in found:
            self.without_pcre2 += 1
            return
        if isinstance(found, str):
            self.refused += 1
            if self.refused <= 5:
                print(f"refused: {found}")
            return
        died = 0
        for text, expected, ours in zip(texts, self.reference.apply(components, texts), found):
            self.texts += 1
            if expected is None:
                self.panics += 1
                died += 1
                if died == 3:  # each case may take seconds
                    return
            elif ours is None:
                self.given_up += 1
                print(f"given up: {json.dumps(components)} text {text!a}")
            elif expected != ours:
                self.differences += 1
                if self.differences <= 5:
                    print(f"{charsmaps.shown(components)}\ntext {text!a}\n  expected {expected!a}\n  found    {ours!a}")


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
    tell = {c: "<" for c in "aE\u00a9\u0301\u0915\u1161\u11a8\u0627"}
    cases += [{"normalizer": charsmaps.component(charsmap), "pre_tokenizer": None} for charsmap in
              [charsmaps.from_rules(tell), *charsmaps.of_sentencepiece().values()]]
    return [case for case in cases if only in json.dumps(case)]


def regex_cases():
    """The sets that regular expressions have by name, and where each of them begins and ends."""
    sets = ["\\" + c for c in "sSdDwWhH."] + ["[\\w]", "[^\\w]", ".", "(?m:.)", "[^a]", "(?i:k)", "(?i:[r-t])"]
    sets += ["\\p{" + name + "}" for name in CATEGORIES] + ["[[:" + name + ":]]" for name in POSIX]
    return [*(each + "+" for each in sets), "\\b", "\\B", "(?<=\\w)\\W", "(?<!\\p{L})\\p{L}", "(?=\\s)"]


def every_neighbour(comparison, rng, only):
    """Sets of characters on texts that have all code points, next to each other and next to others."""
    points = [chr(point) for point in POINTS]
    shuffled = rng.sample(points, len(points))
    texts = ["".join(some[start:start + 4000]) for some in (points, shuffled) for start in range(0, len(some), 4000)]
    for pattern in regex_cases():
        case = {"normalizer": None, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": pattern},
                                                      "behavior": "Isolated", "invert": False}}
        if only in json.dumps(case):
            comparison.compare(case, texts)


def neighbours(c):
    """Texts of one code point in each place where a grapheme cluster may go on with it or past it."""
    yield c
    yield f"a{c}A{c}1{c} {c}\n{c}!{c}'{c}a\u0301{c}\u1161{c}"
    yield f"a{c}\u0301E{c}{c}\u0301\u0302{c}\u0300a\u0301\r{c}\n{c}\u0600{c}a\u0301\u200d{c}\u0301"
    yield f"{c}\u200d\u00a9\u0301 \u00a9{c}\u200d\u00a9\u0301 \u00a9\u200d{c}\u0301 \u00a9\u200d{c}\u00a9\u0301"
    yield f"{c}\u094d\u0915\u0301 \u0915{c}\u0915\u0301 \u0915{c}\u094d\u0915\u0301 \u0915\u094d{c}\u0915\u0301"
    yield f"{c}\u1161\u0301 {c}\u11a8\u0301 \u1100{c}\u0301 \u1161{c}\u11a8\u0301 \U0001f1e6{c}\U0001f1e7a\u0301"


def every_code_point(comparison, only):
    for case in code_point_cases(only):
        for start in range(0, len(POINTS), 20000):
            some = [chr(point) for point in POINTS[start:start + 20000]]
            comparison.compare(case, [text for c in some for text in neighbours(c)])
        print(charsmaps.shown(case), comparison.texts, "texts,", comparison.differences, "differ", flush=True)


# Components that may remove characters, so that a Metaspace may get a text without its start. Such
# a text has to be refused.
MOVING = ("StripAccents", "BertNormalizer", "Nmt", "Strip", '"content": ""')


def random_components(rng):
    kind = rng.randrange(3)
    normal, pre = normalizer(rng) if kind != 1 else None, pre_tokenizer(rng) if kind != 0 else None
    if any(word in json.dumps(normal) for word in MOVING):
        pre = json.loads(json.dumps(pre).replace('"first"', '"always"'))
    return {"normalizer": normal, "pre_tokenizer": pre}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--code-points", action="store_true")
    parser.add_argument("--regexes", action="store_true")
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
        every_neighbour(comparison, rng, options.only)
        every_code_point(comparison, options.only)
    else:
        for _ in range(options.cases):
            components = {}
            while not components or options.only not in json.dumps(components):
                components = regex_component(rng) if options.regexes else random_components(rng)
            near = characters_of_regexes(components)
            comparison.compare(components, [text_of(rng, near) for _ in range(options.texts)])
    print(f"{comparison.texts} texts, {comparison.differences} differ, {comparison.refused} cases refused, "
          f"{comparison.panics} texts that crash the reference, {comparison.given_up} that we give up on")
    if comparison.without_pcre2:
        print(f"skipped: {comparison.without_pcre2} cases, as this build is without PCRE2")
    if comparison.without_pcre2 and options.regexes:
        sys.exit(77)
    sys.exit(1 if comparison.differences or comparison.refused > options.cases // 10 else 0)


if __name__ == "__main__":
    main()
