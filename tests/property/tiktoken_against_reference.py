#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our ids with those of the package tiktoken and of Megatron's TikTokenizer, on random
adversarial texts and random vocabularies, and with real vocabularies if there are any.

usage: tiktoken_against_reference.py --driver D [--cases N] [--seed S] [--patterns NAME ...]
                                     [--shared FOLDER]

The driver is the program of tests/support/encode_lines.cpp. FOLDER has a folder tokenizers/
with real `.tiktoken` files (default: $MILLRACE_SHARED, or shared next to the checkout). The seed is
printed; the same seed gives the same vocabularies and texts. Exits 1 on a difference and 77 if
the package tiktoken is missing.
"""
import argparse
import base64
import collections
import json
import os
import pathlib
import random
import sys
import tempfile

from gpt2_against_hf import Driver, any_point, text_of

try:
    import tiktoken
except ImportError:
    print("skipped: needs the Python package tiktoken")
    sys.exit(77)
try:
    from megatron.core.tokenizers.text.libraries.tiktoken_tokenizer import TikTokenTokenizer
except ImportError:
    TikTokenTokenizer = None

U, V = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
NOT_HAN_U, NOT_HAN_V = U[:-1] + r"&&[^\p{Han}]]", V[:-1] + r"&&[^\p{Han}]]"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def cased(upper, lower, ending):
    return (rf"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{ending}|"
            rf"[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{ending}|")


PATTERNS = {
    "r50k": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|"
              r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "llama3": ENDING + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES,
    "qwen2": ENDING + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES,
    "o200k": cased(U, V, ENDING + "?") + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES,
    "kimi": r"[\p{Han}]+|" + cased(NOT_HAN_U, NOT_HAN_V, ENDING + "?") +
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES,
}
MEGATRON_PATTERNS = ("v1", "v2")
SPECIALS = ["<|endoftext|>", "<|fim_prefix|>", "<s>", "</s>", "<|im_start|>", "\u00e9\u00e9", "  <"]
FRAGMENTS = ["'", "'s", "'S", "'re", "'\u017f", " ", " ", "  ", "\n", "\r\n", "\t", "/", "the", "in", "er",
             "an", "THE", "Th", "1", "42", "!", "...", "-", "\u00e9", "\u0301", "\u4e00", "\u3042",
             "\u5b57", "\u01c5", "\U0001f600", "\u2028", "\u00a0", "\u0660"]


def trained(rng, size):
    """Tokens in the order in which plain BPE creates them, from a text of few fragments."""
    some = [rng.choice(FRAGMENTS) for _ in range(rng.randrange(3, 20))]
    words = ["".join(rng.choice(some) for _ in range(rng.randrange(1, 9))).encode()
             for _ in range(300)]
    words = [[bytes([byte]) for byte in word] for word in words]
    tokens = []
    while len(tokens) < size:
        pairs = collections.Counter(pair for word in words for pair in zip(word, word[1:]))
        if not pairs:
            break
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        if left + right not in tokens:
            tokens.append(left + right)
        merged = []
        for word in words:
            out = []
            for piece in word:
                out.append(piece)
                if out[-2:] == [left, right]:
                    out[-2:] = [left + right]
            merged.append(out)
        words = merged
    return tokens


def spoiled(rng, tokens):
    """Tokens that training never gives: those that merging does not reach, or reaches by later ones."""
    tokens = list(tokens)
    for _ in range(rng.randrange(4)):
        kind = rng.randrange(4)
        if kind == 0 and tokens:  # some parts of other tokens are missing
            for _ in range(rng.randrange(1, 1 + len(tokens) // 4 + 1)):
                tokens.pop(rng.randrange(len(tokens)))
                if not tokens:
                    break
        elif kind == 1:  # some tokens come before their parts
            part = tokens[:]
            rng.shuffle(part)
            cut = rng.randrange(len(part) + 1)
            tokens = part if rng.random() < 0.3 else tokens[:cut] + sorted(
                tokens[cut:], key=lambda t: -len(t))
        elif kind == 2:  # a token that no merge gives
            tokens.insert(rng.randrange(len(tokens) + 1),
                          "".join(rng.choice(FRAGMENTS) for _ in range(rng.randrange(2, 6))).encode())
        else:  # an existing token with another one appended
            base = rng.choice(tokens) if tokens else b"a"
            tokens.append(base + rng.choice(tokens or [b"b"]))
    return [t for t in dict.fromkeys(tokens) if len(t) > 1]


def vocabulary(rng):
    tokens = trained(rng, rng.randrange(0, 120))
    return spoiled(rng, tokens) if rng.random() < 0.7 else tokens


def texts_of(rng, count, tokens, specials):
    texts = []
    for _ in range(count):
        kind = rng.randrange(4)
        if kind == 0:
            texts.append(text_of(rng))
            continue
        parts = []
        for _ in range(rng.randrange(1, 30)):
            draw = rng.random()
            if draw < 0.5 and tokens:
                parts.append(rng.choice(tokens).decode(errors="ignore"))
            elif draw < 0.58 and specials:
                special = rng.choice(specials)
                parts.append(special[:rng.randrange(1, len(special) + 1)]
                             if rng.random() < 0.3 else special)
            elif draw < 0.95:
                parts.append(rng.choice(FRAGMENTS))
            else:
                parts.append(any_point(rng))
        texts.append("".join(parts) * (30 if kind == 1 and rng.random() < 0.1 else 1))
    return texts


class Comparison:
    def __init__(self):
        self.texts = self.ids = self.differences = 0

    def add(self, what, texts, expected_of, driver):
        for text, found in zip(texts, driver.encode(texts)):
            expected = expected_of(text)
            self.ids += len(expected)
            if expected != found:
                self.differences += 1
                if self.differences <= 5:
                    print(f"{what}: text {text!a}\n  expected {expected}\n  found    {found}")
        self.texts += len(texts)


def compare_ranks(comparison, rng, driver, name, ranks, specials, path, flags, count):
    encoding = tiktoken.Encoding("test", pat_str=PATTERNS[name], mergeable_ranks=ranks,
                                 special_tokens=specials)
    command = [driver, "--tokenizer-type", "TikTokenizer", "--tokenizer-model", path,
               "--tiktoken-pattern", name, *flags]
    texts = texts_of(rng, count, list(ranks), list(specials))
    if rng.random() < 0.5:
        comparison.add(name, texts, encoding.encode_ordinary, Driver(command))
    else:
        comparison.add(name + ", specials", texts,
                       lambda text: encoding.encode(text, allowed_special="all"),
                       Driver(command + ["--special-tokens-in-text", "allow"]))


def round_of_ranks(comparison, rng, driver, folder, names, count):
    """A `.tiktoken` file with ranks in any order and with gaps."""
    order = [bytes([byte]) for byte in range(256)]
    if rng.random() < 0.5:
        rng.shuffle(order)
    order += vocabulary(rng)
    ranks, rank = {}, rng.choice((0, 0, 3))
    gaps = rng.random() < 0.5
    for token in order:
        ranks[token] = rank
        rank += rng.randrange(1, 5) if gaps and rng.random() < 0.2 else 1
    lines = [base64.b64encode(token) + b" %d" % rank for token, rank in ranks.items()]
    if rng.random() < 0.3:
        rng.shuffle(lines)
    end = rng.choice((b"\n", b"\r\n"))
    path = folder / "generated.tiktoken"
    path.write_bytes(end.join(lines) + rng.choice((b"", end)))
    given = rng.sample(SPECIALS, rng.randrange(1, len(SPECIALS) + 1))
    specials = {token: max(ranks.values()) + 1 + i for i, token in enumerate(given)}
    compare_ranks(comparison, rng, driver, rng.choice(names), ranks, specials, path,
                  ["--tokenizer-special-tokens", *given], count)


def round_of_megatron(comparison, rng, driver, folder, names, count):
    """A `.vocab.json` through Megatron's own class."""
    tokens = [bytes([byte]) for byte in range(256)] + vocabulary(rng)
    entries = [{"rank": rank, "token_bytes": base64.b64encode(token).decode(),
                "token_str": token.decode(errors="replace")} for rank, token in enumerate(tokens)]
    path = folder / "generated.vocab.json"
    path.write_text(json.dumps(entries, ensure_ascii=rng.random() < 0.5,
                               indent=rng.choice((None, 1))))
    usual = ["<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"]
    named = usual + rng.sample(["<|x|>", "[INST]", "\u00e9\u00e9", "  <"], rng.randrange(4))
    rng.shuffle(named)
    number = rng.choice((len(named), 100, 1000))
    kept = rng.randrange(256, len(tokens) + 1)  # Megatron leaves out the tokens after these
    name = rng.choice(names)
    theirs = TikTokenTokenizer(str(path), special_tokens=named, num_special_tokens=number,
                               pattern=name, vocab_size=number + kept)
    command = [driver, "--tokenizer-type", "TikTokenizer", "--tokenizer-model", path,
               "--vocab-size", str(number + kept), "--tiktoken-num-special-tokens", str(number),
               "--tokenizer-special-tokens", *named]
    if name != "v2" or rng.random() < 0.5:
        command += ["--tiktoken-pattern", name]
    texts = texts_of(rng, count, tokens[:kept], theirs.special_tokens)
    if rng.random() < 0.7:
        comparison.add("Megatron " + name, texts, theirs.text_to_ids, Driver(command))
    else:
        comparison.add("Megatron " + name + ", as text", texts, theirs.tokenizer.encode_ordinary,
                       Driver(command + ["--special-tokens-in-text", "encode-as-text"]))


REAL = {"cl100k": ("cl100k_base/cl100k_base.tiktoken",
                   {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259,
                    "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}),
        "o200k": ("o200k_base/o200k_base.tiktoken",
                  {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
        "llama3": ("llama3/llama3.tiktoken",
                   {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001,
                    "<|start_header_id|>": 128006, "<|end_header_id|>": 128007,
                    "<|eot_id|>": 128009})}


def rounds_of_real(comparison, rng, driver, shared, names, count):
    for name, (file, specials) in REAL.items():
        path = shared / "tokenizers" / file
        if name not in names or not path.exists():
            continue
        ranks = {}
        for line in path.read_bytes().splitlines():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        for _ in range(2):
            compare_ranks(comparison, rng, driver, name, ranks, specials, path, [], count)


def main():
    beside = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "shared"
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patterns", nargs="+", default=[*PATTERNS, *MEGATRON_PATTERNS])
    parser.add_argument("--shared", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("MILLRACE_SHARED", beside)))
    options = parser.parse_args()
    ours = [name for name in options.patterns if name in PATTERNS]
    megatron = [name for name in options.patterns if name in MEGATRON_PATTERNS]
    if megatron and TikTokenTokenizer is None:
        print("without Megatron's TikTokenizer: needs the Python package megatron-core")
        megatron = []

    print(f"seed {options.seed}")
    rng = random.Random(options.seed)
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        rounds_of_real(comparison, rng, options.driver, options.shared, ours, options.cases // 20)
        while comparison.texts < options.cases:
            count = min(1000, options.cases - comparison.texts)
            if megatron and (not ours or rng.random() < 0.3):
                round_of_megatron(comparison, rng, options.driver, folder, megatron, count)
            else:
                round_of_ranks(comparison, rng, options.driver, folder, ours, count)
    print(f"{comparison.texts} texts, {comparison.ids} ids, {comparison.differences} texts differ")
    sys.exit(1 if comparison.differences else 0)


if __name__ == "__main__":
    main()
