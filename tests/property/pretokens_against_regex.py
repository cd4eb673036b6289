#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our hand-written pre-tokenizers with the regexes that they stand for, on adversarial texts.

usage: pretokens_against_regex.py --driver D [--cases N] [--code-points STEP] [--seed S] [--patterns A,B]
                                  [--sets A,B]

The driver is the program of tests/support/split_lines.cpp. Up to three engines read each pattern:
the one that users run (Oniguruma inside Hugging Face's tokenizers, or Rust's fancy-regex inside
tiktoken), and Python's `regex`. The last has a later Unicode version than ours, so code points that
only the later version assigns are skipped. The script tests N random texts per pattern, and code
points one by one between a few neighbors. The seed is printed; the same seed gives the same
texts. Exits 1 on a difference and 77 if tokenizers, tiktoken or regex is missing.
"""
import argparse
import itertools
import random
import struct
import subprocess
import sys

C = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
NLW = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
MIXED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"


def without_han(words):
    return words.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]")


R50K = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGITS = None  # the pre-tokenizer Digits, with individual digits
# For each pattern: the splits, nested one in the other, and the programs that read them.
PATTERNS = {
    "r50k": ([R50K], "hf,tiktoken,regex"),
    "cl100k": ([r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
                r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"], "tiktoken,regex"),
    "llama3": ([C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + NLW],
               "hf,tiktoken,regex"),
    "qwen2": ([C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + NLW],
              "hf,tiktoken,regex"),
    "qwen3.5": ([C + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + NLW],
                "hf,tiktoken,regex"),
    "o200k": ([MIXED + C + "?|" + UPPER + C + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + NLW],
              "hf,tiktoken,regex"),
    "tekken": ([MIXED + "|" + UPPER + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + NLW], "hf,tiktoken,regex"),
    "megatron_v1": ([r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
                    "hf,tiktoken,regex"),
    "kimi": ([r"[\p{Han}]+|" + without_han(MIXED) + C + "?|" + without_han(UPPER) + C +
              r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + NLW], "hf,tiktoken,regex"),
    "deepseek_v3": ([r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                     r"""[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
                     r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + NLW], "hf,regex"),
    "starcoder": ([r"\p{N}", R50K], "hf,regex"),
    "seed_coder": ([C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + NLW], "hf,tiktoken,regex"),
    "deepseek_coder": (["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", DIGITS], "hf"),
    "bloom": ([" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"], "hf"),
}
SPELLINGS = {  # other spellings of the same pattern, which must be recognized
    "qwen2": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "r50k": [r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
             r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
             r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"],
    "llama3": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
               r"|\s*[\r\n]|\s+(?!\S)|\s+"],
}

# One or more characters of each kind that a pattern distinguishes. Common kinds occur more often.
ALPHABET = ["a", "s", "S", "t", "d", "m", "r", "e", "v", "l", "L", "E", "\u017f", "'", "'", "'", "A", "B",
            "\u01c5", "\u02b0", "\u05d0", "\u4e00", "\u4e2d", "\u3042", "\u30a2", "\u30fc", "\u3005",
            "\u0301", "\u0903", "\u20dd", "1", "2", "\u00b2", "\u2167", "\u3007", " ", " ", " ", "\t", "\n",
            "\n", "\r", "\u00a0", "\u3000", "\u2028", "\x1c", "\u200b", "!", "/", "/", "-", "$", "\u20ac",
            "\u3002", "\ue000", "\U0001F600", "\U00020000", "\u0130", "\u212a", "\u00df", "\x85", "\x0b",
            "\x00", "\u0378", "\u2f00", "\U00016ff0", "\u9fa6", "\uff0c", "\u0430", "\u0410", "(", ".", "|", "+",
            "\u2026", "\u0964", "\u0966", "\u2e80"]
FEW = ["a1!\n\r  \t'", "1234567\u00b2a", "aAbB's", " \n", "/\n!a", "\u4e2d\u6587Aa\u3002 ", "'sStTlLeE",
       "\u0410\u0430\u0301 !", "a\u0301! ", "\u3042\u30fb\u4e2d1a", " \u00a0a1\n", "{}()_.;= \n\tabcXY"]
NEIGHBOURS = ["", "a", "A", "1", " ", "\n", "!", "'", "\u4e2d", "'s", "a'", " \n"]


def text_of(rng):
    kind = rng.randrange(10)
    if kind < 5:
        return "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(1, 15)))
    if kind < 7:
        few = rng.choice(FEW)
        return "".join(rng.choice(few) for _ in range(rng.randrange(1, 90)))
    if kind < 8:  # runs across the end of a 64-byte window
        return "".join(rng.choice(ALPHABET) * rng.choice((1, 1, 2, 3, 20, 31, 62, 63, 64, 65))
                       for _ in range(rng.randrange(1, 7)))
    if kind < 9:  # matches whose place in their window matters
        return ("x" * rng.randrange(130) + " " * rng.randrange(2) +
                "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(1, 90))))
    words = ["the", " of", " It's", " we'LL", "\n\n", "\n    ", " 1234", "(x)", " //", "fooBar", "HTTPServer",
             " \u043c\u0438\u0440", "\u4f60\u597d", "\uff0c", "\u3067\u3059", ".\n", " na\u00efve", "'", '"']
    return "".join(rng.choice(words) for _ in range(rng.randrange(1, 60)))


def code_points(rng, step):
    """Each one of `step`, assigned or not, between neighbours that are drawn."""
    for point in range(rng.randrange(step), 0x110000, step):
        if not 0xD800 <= point < 0xE000:  # surrogates are not valid text
            yield rng.choice(NEIGHBOURS) + chr(point) + rng.choice(NEIGHBOURS)


def newer_than_ours():
    """Code points that Python's regex has and Oniguruma's Unicode 16 lacks."""
    import regex
    from tokenizers import Regex, pre_tokenizers
    everything = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    known = regex.sub(r"\p{Cn}+", "", everything)
    unknown_before = pre_tokenizers.Split(Regex(r"\P{Cn}+"), "removed").pre_tokenize_str(known)
    return {c for piece, _ in unknown_before for c in piece}


def ends_of(pieces):
    return tuple(itertools.accumulate(len(piece.encode()) for piece in pieces))


def isolate(find, parts):
    for text in parts:
        done = 0
        for begin, end in find(text):
            if begin > done:
                yield text[done:begin]
            if end > begin:
                yield text[begin:end]
            done = end
        if done < len(text):
            yield text[done:]


def by_regex(splits):
    import regex
    compiled = [regex.compile(split.replace(r"\s++$", r"\s++\Z"), regex.V1) for split in splits]

    def cut(text):
        parts = [text]
        for one in compiled:
            parts = list(isolate(lambda t: (m.span() for m in one.finditer(t)), parts))
        return ends_of(parts)
    return lambda texts, ours: [cut(text) for text in texts]


def by_hf(splits):
    from tokenizers import Regex, pre_tokenizers
    steps = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), "isolated") if split is not DIGITS
                                     else pre_tokenizers.Digits(individual_digits=True) for split in splits])
    return lambda texts, ours: [ends_of(piece for piece, _ in steps.pre_tokenize_str(text)) for text in texts]


def by_tiktoken(splits):
    """tiktoken reports ids, not cuts. So it gets a vocabulary in which each pretoken that we found is a
    token, which it looks up whole. Each pair of bytes at a cut of ours is the first merge, so that a
    pretoken that spans a cut is found."""
    import tiktoken
    (split,) = splits

    def cut(texts, ours):
        coded = [text.encode() for text in texts]
        bridges, words = set(), set()
        for text, ends in zip(coded, ours):
            bridges.update(text[end - 1:end + 1] for end in ends[:-1])
            words.update(text[begin:end] for begin, end in zip((0,) + ends, ends))
        tokens = [bytes([b]) for b in range(256)] + sorted(bridges)
        tokens += sorted(word for word in words - bridges if len(word) > 1)
        encoding = tiktoken.Encoding("cuts", pat_str=split, special_tokens={},
                                     mergeable_ranks={token: rank for rank, token in enumerate(tokens)})
        return [tuple(itertools.accumulate(len(tokens[i]) for i in encoding.encode_ordinary(text)))
                for text in texts]
    return cut


ENGINES = {"regex": by_regex, "hf": by_hf, "tiktoken": by_tiktoken}


class Driver:
    def __init__(self, path):
        self.path = path

    def ends(self, pattern, instruction_set, batch, texts):
        sent = b"".join(struct.pack("<I", len(text)) + text for text in texts)
        done = subprocess.run([self.path, pattern, instruction_set, str(batch)], input=sent,
                              stdout=subprocess.PIPE)
        if done.returncode == 77:
            return None
        done.check_returncode()
        found, at = [], 0
        for _ in texts:
            (count,) = struct.unpack_from("<I", done.stdout, at)
            found.append(struct.unpack_from(f"<{count}I", done.stdout, at + 4))
            at += 4 + 4 * count
        assert at == len(done.stdout), "the driver said more than it was asked"
        return found


class Comparison:
    def __init__(self, options):
        self.driver = Driver(options.driver)
        self.sets = options.sets.split(",")
        self.newer = newer_than_ours()
        self.rng = random.Random(options.seed)
        self.differences = 0

    def compare(self, name, engines, texts):
        coded = [text.encode() for text in texts]
        ours = self.driver.ends(name, "portable", 256, coded)
        for instruction_set in self.sets:
            batch = self.rng.choice((1, 2, 7, 64, 65, 256, 4096))
            found = self.driver.ends(name, instruction_set, batch, coded)
            if found is not None:
                self.report(name, instruction_set, texts, ours, found)
        for engine, cut in engines:
            some = [i for i, text in enumerate(texts) if engine != "regex" or self.newer.isdisjoint(text)]
            expected = cut([texts[i] for i in some], [ours[i] for i in some])
            self.report(name, engine, [texts[i] for i in some], [ours[i] for i in some], expected)

    def report(self, name, other, texts, ours, theirs):
        for text, found, expected in zip(texts, ours, theirs):
            if found != expected:
                self.differences += 1
                if self.differences <= 8:
                    print(f"{name}: text {text!a}\n  {other} {expected}\n  portable {found}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=20000, help="random texts for each pattern")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patterns", default=",".join(PATTERNS))
    parser.add_argument("--sets", default="neon,avx2,avx512", help="instruction sets to test in addition to the portable one")
    parser.add_argument("--code-points", type=int, default=1, metavar="STEP",
                        help="also try every STEP-th code point for each pattern; 0: none")
    options = parser.parse_args()
    try:
        comparison = Comparison(options)
        engines = {name: [(f"{engine} {i}", engine, ENGINES[engine](splits))
                          for engine in readers.split(",")
                          for i, splits in enumerate([all_splits] + [[s] for s in SPELLINGS.get(name, [])])]
                   for name, (all_splits, readers) in PATTERNS.items()}
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)

    print(f"seed {options.seed}, {len(comparison.newer)} code points too new for us")
    for name in options.patterns.split(","):
        pairs = [(engine, cut) for _, engine, cut in engines[name]]
        texts = (text_of(comparison.rng) for _ in range(options.cases))
        if options.code_points:
            texts = itertools.chain(code_points(comparison.rng, options.code_points), texts)
        count = 0
        while some := list(itertools.islice(texts, 20000)):
            comparison.compare(name, pairs, some)
            count += len(some)
        print(f"{name}: {count} texts, {comparison.differences} differences so far", flush=True)
    sys.exit(1 if comparison.differences else 0)


if __name__ == "__main__":
    main()
