#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our normalizers and pre-tokenizers with Hugging Face's tokenizers.

usage: components_against_hf.py --driver PROGRAM [--cases N] [--texts N] [--seed N] [--regexes]
                                [--code-points] [--only WORD]

A case is a random tree of components as a tokenizer.json has them, and texts of odd characters; with --regexes, one
component with a random regular expression. With --code-points, instead, every code point alone and among neighbours
goes through each component by itself, and through each set that regular expressions know (an hour). With --only
those cases alone are made that name WORD, e.g. Precompiled.
PROGRAM is apply_components. A component that ours refuses is counted, not compared; some have to be refused and are
never made. Exits 77 if the package tokenizers is missing.
"""
import argparse
import json
import random
import struct
import subprocess
import sys

import charsmaps

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

# What ends a grapheme cluster or goes on with it, and bases short enough for clusters of less than six bytes.
CLUSTERS = ["a", "b", "E", "\u00e9", "\u0627", "\r", "\n", "\r\n", "\0", "\u00ad", "\u200b", "\u2028", "\U000e0001",
            "\u0300", "\u0301", "\u0327", "\u0483", "\u05b0", "\u064b", "\u07eb", "\u20dd", "\ufe0f", "\u0897", "\u1acf",
            "\U0001f3fd", "\U000e0100", "\u200c", "\u200d", "\u200d", "\u0903", "\u093e", "\u0e33", "\U0001d166",
            "\u0600", "\u06dd", "\u08e2", "\u0d4e", "\U000110bd", "\U0001f1e6", "\U0001f1fa", "\u00a9", "\u00ae",
            "\u263a", "\u2764", "\U0001f468", "\U0001f600", "\u0915", "\u0924", "\u0995", "\u0c95", "\u1000", "\ua984",
            "\u093c", "\u094d", "\u094d", "\u09cd", "\u0ccd", "\u1039", "\ua9c0", "\u1100", "\ua960", "\u1161",
            "\u1175", "\ud7b0", "\u11a8", "\ud7cb", "\uac00", "\uac01", "\U00016d63", "\u0378", " ", "\u3000"]


def any_point(rng):
    while True:
        point = rng.choice((rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x3400), rng.randrange(0x10000),
                            rng.randrange(0x33000), rng.randrange(0x110000)))
        if not 0xD800 <= point < 0xE000:
            return chr(point)


def cluster_text_of(rng):
    few = rng.sample(CLUSTERS, rng.randrange(1, 9)) if rng.random() < 0.6 else CLUSTERS
    return "".join(rng.choice(few) if rng.random() < 0.95 else any_point(rng) for _ in range(rng.choice((2, 3, 5, 9, 25))))


def text_of(rng, near=()):
    """A random text, of few different characters or of many; `near` are some that it should have."""
    if not near and rng.random() < 0.3:
        return cluster_text_of(rng)
    length = rng.choice((0, 1, 2, 3, 4, 6, 10, 20, 40, 150))
    few = [rng.choice(ODD + PLAIN) for _ in range(rng.randrange(1, 6))] if rng.random() < 0.4 else None
    if near and rng.random() < 0.5:
        few = rng.choices(near, k=4) + [rng.choice(PLAIN), rng.choice(ODD)]
    return "".join(rng.choice(few) if few else any_point(rng) if (draw := rng.random()) < 0.2 else
                   rng.choice(ODD) if draw < 0.6 else rng.choice(PLAIN) for _ in range(length))


def flag(rng):
    return rng.random() < 0.5


def literal(rng):
    return "".join(rng.choice(PLAIN + ODD[:60]) for _ in range(rng.choice((1, 1, 1, 2))))


WS = r"\s+(?!\S)|\s+"
NLWS = r"\s*[\r\n]+|" + WS
CI = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
KNOWN = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|" + WS,
    CI + "|" + PREFIX + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + NLWS,
    CI + "|" + PREFIX + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + NLWS,
    CI + "|" + PREFIX + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + NLWS,
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|" + WS,
    "|".join((PREFIX + UPPER + "*" + LOWER + "+" + CI + "?", PREFIX + UPPER + "+" + LOWER + "*" + CI + "?",
              r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", NLWS)),
    "|".join((PREFIX + UPPER + "*" + LOWER + "+", PREFIX + UPPER + "+" + LOWER + "*", r"\p{N}",
              r" ?[^\s\p{L}\p{N}]+[\r\n/]*", NLWS)),
    r"[\p{Han}]+|" + r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+" +
    CI + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + NLWS,
    r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" + NLWS,
    r"[\p{P}\$\+<=>\^~\|`]+", "[0-9][0-9][0-9]", r" ?[^(\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
    r"[\r\n]", r"\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba]+", r"\s?[!-/:-~\uff01-\uff0f]+", r"\s+$",
    r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}+", r"\d", r"\w+|[^\w\s]+", r" {2,}", r"[ \t]{1,3}", r"\n+", "\u2581+",
    r"(?<=\s)\d|(?<!\w)a", r"\b", r"\B", r"^", r"$", r"(?:)", r"a*", r"\s*?", r"(?=\d{3})", r"\b\w", r"(?>\s+)a?", r"[^\n]*\n?",
]


CATEGORIES = ["L", "M", "N", "P", "S", "Z", "C", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc",
              "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cn", "Co", "Han",
              "Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Hangul", "Hiragana", "Katakana", "Devanagari", "Thai"]
POSIX = ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "word"]


def known_set(rng, in_class):
    draw = rng.randrange(4 if in_class else 3)
    if draw == 0:
        return "\\" + rng.choice("sSdDwWhH")
    if draw < 3:
        return rng.choice(("\\p{", "\\P{", "\\p{^")) + rng.choice(CATEGORIES) + "}"
    return "[:" + rng.choice(("", "^")) + rng.choice(POSIX) + ":]"


def class_items(rng, depth):
    items = ""
    for _ in range(rng.randrange(1, 4)):
        draw = rng.random()
        if draw < 0.35:
            items += known_set(rng, True)
        elif draw < 0.55:
            first, last = sorted((any_point(rng), any_point(rng)) if draw < 0.45 else rng.choices("abcdkstz0189", k=2))
            items += in_class(first) + "-" + in_class(last)
        elif draw < 0.65 and depth < 2:
            items += a_class(rng, depth + 1)
        else:
            items += in_class(rng.choice(ODD + list("aAstK01 _-.,'!\n")))
    return items


def in_class(c):
    return f"\\x{{{ord(c):x}}}" if not c.isalnum() else c


def a_class(rng, depth=0):
    text = class_items(rng, depth)
    while rng.random() < 0.2:
        text += "&&" + class_items(rng, depth)
    return "[" + rng.choice(("", "", "^")) + text + "]"


def folded(rng):
    """What (?i) is honoured for: letters of ASCII, but for those that one character stands for together."""
    word = "".join(rng.choice("abckKSxyz'1-") for _ in range(rng.randrange(1, 4)))
    return rng.choice(("(?i:%s)", "(?i:%s|[a-s]|[^k\\d])", "(?:(?i)%s|k)", "(?i:a(?-i:K)%s)")) % (
        "s" if "SS" in word.upper() else word)


def atom(rng):
    draw = rng.random()
    if draw < 0.25:
        return a_class(rng)
    if draw < 0.45:
        return known_set(rng, False)
    if draw < 0.52:
        return folded(rng)
    return rng.choice(["a", "b", "s", " ", "\\n", ".", "(?m:.)", "\\s", "\\S", "\\d", "\\w", "\\p{L}", "\\p{N}", "-", "!", "'", "\\h",
                       "[^a\\s]", "[\\p{L}\\p{M}]", "[^\\r\\n\\p{L}]", "[[:alpha:]_]", "[\\w&&[^\\d]]", "[!-/]", "\\x{301}",
                       "\\u3042", "[[:punct:]]", "[[:^space:]]", "[\u3040-\u30ff]", "\u00e9", "\u4e2d", "\U0001f600"])


def fixed(rng):
    """What always matches as many characters."""
    return "".join(atom_of_one(rng) + rng.choice(("", "", "{2}")) for _ in range(rng.randrange(1, 3)))


def atom_of_one(rng):
    return rng.choice((a_class(rng), known_set(rng, False), "a", " ", ".", "\u00e9", "(?:a|\\d)"))


def zero(rng, depth):
    draw = rng.random()
    if draw < 0.45:
        return rng.choice(["^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B", "(?!\\S)", "(?=\\p{L})", "(?<=a)", "(?<!\\s)", "(?<=ab|\\d)"])
    if draw < 0.7 and depth < 2:
        return rng.choice(("(?=", "(?!")) + regex(rng, depth + 1) + ")"
    return rng.choice(("(?<=", "(?<!")) + "|".join(fixed(rng) for _ in range(rng.randrange(1, 3))) + ")"


def regex(rng, depth=0):
    """A random pattern of what is supported, with few repeats in repeats, which may take for ever there too."""
    parts = []
    for _ in range(rng.randrange(1, 4)):
        draw = rng.random()
        if draw < 0.14:
            parts.append(zero(rng, depth))
            continue
        inner = draw < 0.32 and depth < 2
        quantifiers = ["", "", "?", "??", "{1,2}", "{2}", "{1,3}?", "?+", "++", "*", "+", "+?", "*?", "*+"] if inner else [
            "", "", "", "?", "*", "+", "*?", "+?", "??", "?+", "*+", "++", "{1,3}", "{2}", "{,2}", "{2,}", "{1,2}?", "{1,3}+"]
        quantifier = rng.choice(quantifiers)
        inside = regex(rng, depth + 1) if inner else ""
        if quantifier.startswith("{"):
            inside = not_empty(rng, inside)
        parts.append((rng.choice(("(?:", "(", "(?>")) + inside + ")" if inner else atom(rng)) + quantifier)
    text = "".join(parts)
    return text + "|" + regex(rng, depth + 1) if rng.random() < 0.35 and depth < 3 else text


def some_regex(rng):
    return rng.choice(KNOWN) if rng.random() < 0.4 else regex(rng)


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


def not_empty(rng, pattern):
    return "(?:" + pattern + ")" + atom(rng)


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
                # A text that is empty may come as an empty piece, which no model makes anything of.
                pieces = [p for p, _ in pre.pre_tokenize_str(changed) if p] if pre else [changed]
                # Both at once, which keeps places in the text: every piece is one token of this model.
                if pre and len(tokenizer.encode(text).ids) != len(pieces):
                    print(f"the whole differs from its parts there: {charsmaps.shown(components)} {text!a}")
                    pieces = "cannot be told"
                yield pieces
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
        return [self.pieces() for _ in texts]

    def pieces(self):
        count = self.number()
        return None if count == 0xFFFFFFFF else [self.text() for _ in range(count)]


class Comparison:
    def __init__(self, driver):
        self.reference, self.driver = Reference(), Driver(driver)
        self.texts = self.differences = self.refused = self.panics = self.given_up = 0

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
    points = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
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
    points = [*range(0xD800), *range(0xE000, 0x33500), *range(0xE0000, 0xE0200), *range(0x10FF00, 0x110000)]
    for case in code_point_cases(only):
        for start in range(0, len(points), 20000):
            some = [chr(point) for point in points[start:start + 20000]]
            comparison.compare(case, [text for c in some for text in neighbours(c)])
        print(charsmaps.shown(case), comparison.texts, "texts,", comparison.differences, "differ", flush=True)


# What may take characters away so that nothing is at the start of the text to a Metaspace, which has to be refused.
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
          f"{comparison.panics} texts that the reference dies of, {comparison.given_up} that ours gives up")
    sys.exit(1 if comparison.differences or comparison.refused > options.cases // 10 else 0)


if __name__ == "__main__":
    main()
