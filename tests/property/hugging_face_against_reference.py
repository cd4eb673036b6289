#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our ids, and the text they decode to, with those of Hugging Face's `tokenizers`, on
random tokenizers and random adversarial texts.

usage: hugging_face_against_reference.py --driver D [--cases N] [--seed S] [--verbose]

A case is a tokenizer: a random model of any kind (some trained by the package), random normalizers,
pre-tokenizers, added tokens, templates and decoders. It encodes about 40 texts. The driver is the
program of tests/support/hugging_face_lines.cpp. The seed is printed; the same seed gives the
same cases. Exits 1 on a difference and 77 if the package `tokenizers` is missing.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import charsmaps
from pretokens_against_regex import DIGITS, PATTERNS

os.environ["TOKENIZERS_PARALLELISM"] = "false"
TEXTS = 40
SPACES = [" ", " ", "  ", "   ", "\n", "\t", "\r\n", "\u00a0", "\u2003", "\u3000"]
LETTERS = list("abcab") + ["A", "B", "\u00e9", "e\u0301", "\u0301", "\u00df", "\u4e2d", "\u6587", "\u3042",
                           "\U0001f600", "\u0130", "\ufb01", "\u1e9e", "\u0e01\u0e33"]
OTHERS = list("0127.,!?'-_<>[]|#@") + ["\u0661", "\u00bd", "\u2581", "\u200b", "\u200d", "\ufffd",
                                       "\x00", "\x1c", "\x85", "\u00ad", "<a>", "<b>", "'s", "n't"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def text_of(rng, marks):
    """A text of few characters in many orders, with strings that matter to these tokenizers."""
    pool = rng.choice([LETTERS, LETTERS + SPACES, LETTERS + SPACES + OTHERS])
    few = [rng.choice(pool) for _ in range(rng.randrange(1, 7))]
    length = rng.choice([0, 1, 2, 3, 5, 8, 13, 30, 80])
    return "".join(rng.choice(marks) if marks and (draw := rng.random()) < 0.25 else
                   rng.choice(few) if draw < 0.6 else rng.choice(LETTERS + SPACES + OTHERS)
                   for _ in range(length)) if marks else "".join(
                       rng.choice(few) for _ in range(length))


def byte_alphabet():
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spelled = {byte: chr(byte) for byte in kept}
    for byte in range(256):
        if byte not in spelled:
            spelled[byte] = chr(0x100 + len(spelled) - len(kept))
    return spelled


SPELLED = byte_alphabet()


def merges_over(rng, symbols, count, prefix=""):
    """Merges that build on each other, some in several ways."""
    vocab, merges = list(dict.fromkeys(symbols)), []
    known = set(vocab)
    for _ in range(count):
        left = rng.choice(vocab[-40:] + vocab[:40])
        right = rng.choice(vocab[-40:] + vocab[:40])
        if prefix and (not right.startswith(prefix) or len(right) <= len(prefix)):
            continue
        merged = left + right[len(prefix):]
        if len(merged) > 12:
            continue
        if merged not in known:
            known.add(merged)
            vocab.append(merged)
        merges.append([left, right])
    if rng.random() < 0.2 and merges:
        merges.append(rng.choice(merges))  # the later one counts
    if rng.random() < 0.3 and not any(" " in part for merge in merges for part in merge):
        merges = [" ".join(merge) for merge in merges]
    return vocab, merges


def ids_of(rng, vocab):
    order = list(vocab)
    if rng.random() < 0.5:
        rng.shuffle(order)
    return {token: i for i, token in enumerate(order)}


def bpe(rng, byte_level):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": rng.random() < 0.5,
             "byte_fallback": rng.random() < 0.3, "ignore_merges": rng.random() < 0.3}
    if byte_level:
        common = [SPELLED[byte] for byte in b" abcABe\n.0"]
        bytes_there = list(SPELLED.values())
        vocab, merges = merges_over(rng, common + bytes_there, rng.choice([0, 10, 100]))
        if rng.random() < 0.2:
            model["byte_fallback"] = False
    else:
        prefix = rng.choice(["", "", "", "##", "@"])
        suffix = rng.choice(["", "", "", "</w>"])
        characters = [c for c in dict.fromkeys(LETTERS[:9] + [" ", "\u2581", "\u4e2d", ".", "0"])
                      if len(c) == 1 and rng.random() < 0.85]
        symbols = [p + c + s for p in dict.fromkeys(["", prefix])
                   for s in dict.fromkeys(["", suffix]) for c in characters]
        vocab, merges = merges_over(rng, symbols, rng.choice([0, 10, 60]), prefix)
        if rng.random() < 0.5:
            vocab += [token for token in BYTES if rng.random() < rng.choice([0.5, 1])]
        if prefix or rng.random() < 0.1:
            model["continuing_subword_prefix"] = prefix
        if suffix or rng.random() < 0.1:
            model["end_of_word_suffix"] = suffix
    if rng.random() < 0.5:
        model["unk_token"] = "<unk>"
        if rng.random() < 0.9:
            vocab.insert(0, "<unk>")
        if not byte_level and rng.random() < 0.2 and not model["continuing_subword_prefix"]:
            vocab += ["<unk>a"]
            merges = [m if isinstance(m, list) else m.split(" ") for m in merges]
            if "<unk>" in vocab and "a" in vocab:
                merges.append(["<unk>", "a"])
    model["vocab"] = ids_of(rng, dict.fromkeys(vocab))
    model["merges"] = merges
    if rng.random() < 0.1:
        del model["type"]
    return model


def words(rng, count):
    return ["".join(rng.choice(LETTERS[:12] + ["0", "."]) for _ in range(rng.randrange(1, 5)))
            for _ in range(count)]


def word_piece(rng):
    prefix = rng.choice(["##", "##", "", "_"])
    vocab = ["[UNK]"] if rng.random() < 0.95 else []
    vocab += [rng.choice(["", prefix]) + word for word in words(rng, 60)]
    vocab += [p + c for c in LETTERS for p in ("", prefix) if rng.random() < 0.6]
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": rng.choice([3, 10, 100]),
            "vocab": ids_of(rng, dict.fromkeys(vocab))}


def word_level(rng):
    vocab = ["<unk>"] if rng.random() < 0.9 else []
    return {"type": "WordLevel", "unk_token": "<unk>",
            "vocab": ids_of(rng, dict.fromkeys(vocab + words(rng, 80) + LETTERS + SPACES))}


def unigram(rng):
    scores = rng.choice([[-1.0, -2.0, -3.0], [-0.1, -0.2, -0.30000000000000004, -0.3], None])
    score = (lambda: rng.choice(scores)) if scores else (lambda: -rng.random() * 10)
    texts = ["<unk>"] + words(rng, 60) + [c for c in LETTERS + [" ", "\u2581"] if rng.random() < 0.8]
    if rng.random() < 0.5:
        texts += [token for token in BYTES if rng.random() < rng.choice([0.7, 1])]
    texts = list(dict.fromkeys(texts)) if rng.random() < 0.9 else texts
    vocab = [[text, 0.0 if i == 0 else score()] for i, text in enumerate(texts)]
    return {"type": "Unigram", "unk_id": 0 if rng.random() < 0.9 else None, "vocab": vocab,
            "byte_fallback": rng.random() < 0.4}


def precompiled(rng):
    known = list(charsmaps.of_sentencepiece().values())
    if known and rng.random() < 0.2:
        return charsmaps.component(rng.choice(known))
    return charsmaps.component(charsmaps.random_map(rng, LETTERS + SPACES + OTHERS))


def like_sentencepiece(rng):
    """A normalizer and a pre-tokenizer, as converted SentencePiece models have them."""
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "split": rng.random() < 0.9,
                 "prepend_scheme": rng.choice(["always", "always", "first", "never"])}
    steps = [precompiled(rng)]
    if rng.random() < 0.5:
        steps += [{"type": "Strip", "strip_left": False, "strip_right": True},
                  {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": rng.choice([" ", "\u2581"])}]
    pre = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}
    return {"type": "Sequence", "normalizers": steps}, rng.choice([pre, metaspace])


def normalizer(rng, depth=0):
    make = [
        lambda: {"type": "Lowercase"}, lambda: {"type": "NFC"}, lambda: {"type": "NFKC"},
        lambda: {"type": "NFD"}, lambda: {"type": "StripAccents"}, lambda: {"type": "Nmt"},
        lambda: precompiled(rng), lambda: precompiled(rng),
        lambda: {"type": "Strip", "strip_left": rng.random() < 0.5, "strip_right": rng.random() < 0.5},
        lambda: {"type": "Replace", "pattern": {"String": rng.choice([" ", "a", "ab", "  "])},
                 "content": rng.choice(["\u2581", "", "b", "aa"])},
        lambda: {"type": "Prepend", "prepend": rng.choice(["\u2581", " ", "a"])},
        lambda: {"type": "BertNormalizer", "clean_text": rng.random() < 0.7,
                 "handle_chinese_chars": rng.random() < 0.7,
                 "strip_accents": rng.choice([None, True, False]), "lowercase": rng.random() < 0.5},
    ]
    if depth == 0 and rng.random() < 0.4:
        return {"type": "Sequence",
                "normalizers": [normalizer(rng, 1) for _ in range(rng.randrange(0, 4))]}
    return rng.choice(make)()


def pre_tokenizer(rng, depth=0):
    make = [
        lambda: {"type": "Whitespace"}, lambda: {"type": "WhitespaceSplit"},
        lambda: {"type": "BertPreTokenizer"},
        lambda: {"type": "Digits", "individual_digits": rng.random() < 0.5},
        lambda: {"type": "Punctuation", "behavior": rng.choice(
            ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"])},
        lambda: {"type": "CharDelimiterSplit", "delimiter": rng.choice(["a", " ", "\u2581"])},
        lambda: {"type": "Split", "pattern": {"String": rng.choice(["a", " ", "ab"])},
                 "behavior": rng.choice(["Isolated", "Removed", "MergedWithPrevious",
                                         "MergedWithNext", "Contiguous"]),
                 "invert": rng.random() < 0.2},
        lambda: {"type": "Metaspace", "replacement": "\u2581", "split": rng.random() < 0.7,
                 "prepend_scheme": rng.choice(["always", "first", "never"])},
    ]
    if depth == 0 and rng.random() < 0.3:
        return {"type": "Sequence",
                "pretokenizers": [pre_tokenizer(rng, 1) for _ in range(rng.randrange(0, 3))]}
    return rng.choice(make)()


def byte_level_pre_tokenizer(rng):
    last = {"type": "ByteLevel", "add_prefix_space": rng.random() < 0.3, "trim_offsets": True,
            "use_regex": rng.random() < 0.7}
    draw = rng.random()
    if draw < 0.5:
        return last
    # The pre-tokenizers that have a specialized splitter, chosen by their regexes, and Digits
    # alone.
    steps = [DIGITS] if draw < 0.6 else rng.choice([splits for splits, readers in PATTERNS.values() if "hf" in readers])
    if draw < 0.9:
        last["use_regex"] = False
    digits = {"type": "Digits", "individual_digits": True}
    return {"type": "Sequence", "pretokenizers": [
        *(digits if step is DIGITS else {"type": "Split", "pattern": {"Regex": step}, "behavior": "Isolated", "invert": False}
          for step in steps), last]}


def added_tokens(rng, model):
    known = list(model["vocab"]) if isinstance(model["vocab"], dict) else [
        piece for piece, _ in model["vocab"]]
    contents = ["<a>", "<b>", "<a><b>", "a>", "  ", "   ", " a", "ab", "\u00e9", "\u4e2d", "A", "\n",
                "a b", "<", ">", "\u2581", "0"]
    tokens = []
    for _ in range(rng.choice([0, 0, 1, 2, 4, 7])):
        content = rng.choice(contents + ([rng.choice(known)] if known else []))
        tokens.append({"id": len(known) + len(tokens), "content": content,
                       "single_word": rng.random() < 0.2, "lstrip": rng.random() < 0.25,
                       "rstrip": rng.random() < 0.25, "normalized": rng.random() < 0.4,
                       "special": rng.random() < 0.5})
    return tokens


def decoder(rng, depth=0):
    make = [
        lambda: {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                 "use_regex": True},
        lambda: {"type": "WordPiece", "prefix": rng.choice(["##", ""]), "cleanup": rng.random() < 0.5},
        lambda: {"type": "Metaspace", "replacement": "\u2581", "split": True,
                 "prepend_scheme": rng.choice(["always", "first", "never"])},
        lambda: {"type": "ByteFallback"}, lambda: {"type": "Fuse"},
        lambda: {"type": "BPEDecoder", "suffix": "</w>"},
        lambda: {"type": "Strip", "content": rng.choice([" ", "a"]), "start": rng.randrange(3),
                 "stop": 0},
        lambda: {"type": "Replace", "pattern": {"String": rng.choice(["\u2581", "a"])},
                 "content": rng.choice([" ", ""])},
        lambda: {"type": "CTC", "pad_token": "a", "word_delimiter_token": "|",
                 "cleanup": rng.random() < 0.5},
    ]
    if depth == 0 and rng.random() < 0.4:
        return {"type": "Sequence",
                "decoders": [decoder(rng, 1) for _ in range(rng.randrange(0, 4))]}
    return rng.choice(make)()


def template(rng, model):
    ids = list(range(min(5, len(model["vocab"]))))
    if not ids:
        return None
    special = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    listed = {name: {"id": name, "ids": [rng.choice(ids) for _ in range(rng.choice([1, 1, 2]))],
                     "tokens": [name]} for name in ("S", "E")}
    single = ([special("S")] if rng.random() < 0.7 else []) + [text] + (
        [special("E")] if rng.random() < 0.5 else [])
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True,
                  "use_regex": True}
    made = rng.choice([
        {"type": "TemplateProcessing", "single": single, "special_tokens": listed,
         "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}]},
        {"type": "BertProcessing", "sep": ["E", rng.choice(ids)], "cls": ["S", rng.choice(ids)]},
        {"type": "RobertaProcessing", "sep": ["E", rng.choice(ids)], "cls": ["S", rng.choice(ids)],
         "trim_offsets": True, "add_prefix_space": False},
        byte_level])
    if rng.random() < 0.3 and made is not byte_level:
        return {"type": "Sequence", "processors": [byte_level, made]}
    return made


def tokenizer_of(rng):
    kind = rng.randrange(6)
    byte_level = kind == 0
    model = (bpe(rng, True) if kind == 0 else bpe(rng, False) if kind in (1, 2) else
             word_piece(rng) if kind == 3 else word_level(rng) if kind == 4 else unigram(rng))
    normal = normalizer(rng) if rng.random() < 0.5 else None
    pre = (byte_level_pre_tokenizer(rng) if byte_level else
           pre_tokenizer(rng) if rng.random() < 0.8 else None)
    if model.get("type") == "Unigram" and rng.random() < 0.6:
        normal, pre = like_sentencepiece(rng)
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": added_tokens(rng, model),
        "normalizer": normal,
        "pre_tokenizer": pre,
        "post_processor": template(rng, model) if rng.random() < 0.5 else None,
        "decoder": decoder(rng) if rng.random() < 0.7 else None,
        "model": model,
    }


REFUSED = 0xFFFFFFFF


class Reference:
    """The result of the package for a text; REFUSED if it raises."""

    def __init__(self, described, specials, in_text):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_str(json.dumps(described))
        self.tokenizer.encode_special_tokens = in_text == "text"
        self.specials = specials == "yes"

    def never_ends(self, added_tokens):
        """Whether an added token is empty after normalization, which crashes the package, or equal
        to another one, so that the package finds one of them at random."""
        normalizer = self.tokenizer.normalizer
        if normalizer is None:
            return False
        once = {}
        for token in added_tokens:
            if token["normalized"]:
                content = normalizer.normalize_str(token["content"])
                if not content or once.setdefault(content, token["content"]) != token["content"]:
                    return True
        return False

    def answer(self, text):
        try:
            ids = self.tokenizer.encode(text, add_special_tokens=self.specials).ids
        except BaseException as e:  # a panic does not derive from Exception
            if isinstance(e, KeyboardInterrupt):
                raise
            return REFUSED, None
        try:
            return ids, self.tokenizer.decode(ids, skip_special_tokens=False)
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            return ids, None


def ask_driver(driver, cases):
    sent = []
    for path, specials, in_text, texts in cases:
        sent.append(f"{path}\t{specials}\t{in_text}\t{len(texts)}\n".encode())
        sent += [struct.pack("<I", len(text)) + text for text in map(str.encode, texts)]
    ran = subprocess.run([driver], input=b"".join(sent), stdout=subprocess.PIPE, check=False)
    if ran.returncode != 0:
        print(f"the driver exits with {ran.returncode} over {[case[0] for case in cases]}")
        sys.exit(1)
    got, at, answers = ran.stdout, 0, []
    for _, _, _, texts in cases:
        end = got.index(b"\n", at)
        head = got[at:end].decode(errors="replace")
        at = end + 1
        found = []
        for _ in texts if head.startswith("ok") else []:
            (count,) = struct.unpack_from("<I", got, at)
            number = 0 if count == REFUSED else count
            ids = list(struct.unpack_from(f"<{number}I", got, at + 4))
            at += 4 + 4 * number
            (size,) = struct.unpack_from("<I", got, at)
            found.append((REFUSED if count == REFUSED else ids, got[at + 4:at + 4 + size]))
            at += 4 + size
        answers.append((head, found))
    return answers


class Tally:
    def __init__(self, verbose):
        self.verbose = verbose
        self.counts = collections.Counter()
        self.refusals = collections.Counter()

    def compare(self, case, described, head, found, reference):
        path, specials, in_text, texts = case
        if not head.startswith("ok"):
            self.counts["tokenizers refused by us"] += 1
            self.refusals[head.split("json: ")[-1].split(" (at")[0][:60]] += 1
            return
        self.counts["tokenizers"] += 1
        for text, (ids, decoded) in zip(texts, found):
            expected_ids, expected_text = reference.answer(text)
            if ids == REFUSED and expected_ids != REFUSED or ids != expected_ids:
                if expected_ids == REFUSED:
                    self.counts["texts only the reference refuses"] += 1
                    continue
                self.differ(described, case, text, expected_ids, ids)
                continue
            self.counts["texts"] += 1
            if expected_text is None or ids == REFUSED:
                continue
            if decoded.decode(errors="replace") != expected_text:
                self.differ(described, case, text, expected_text, decoded)

    def differ(self, described, case, text, expected, found):
        self.counts["differences"] += 1
        if self.counts["differences"] > 5:
            return
        shown = dict(described)
        if not self.verbose:
            shown["model"] = {k: v for k, v in shown["model"].items()
                              if k not in ("vocab", "merges")}
        print(f"{case[0]} specials {case[1]} in_text {case[2]}\n{charsmaps.shown(shown)}\n"
              f"  text     {text!a}\n  expected {expected!a}\n  found    {found!a}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="folder for tokenizers that give differences")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        print("skipped: needs the Python package tokenizers")
        sys.exit(77)
    print(f"seed {options.seed}, tokenizers {tokenizers.__version__}", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it prints many long panics
    rng = random.Random(options.seed)
    tally = Tally(options.verbose)
    done = 0
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(options.keep or made)
        while done < options.cases:
            cases, others, references = [], [], []
            for _ in range(min(100, options.cases - done)):
                described = tokenizer_of(rng)
                specials = rng.choice(["yes", "no"])
                in_text = rng.choice(["allow", "allow", "text"])
                done += 1
                try:
                    reference = Reference(described, specials, in_text)
                    if reference.never_ends(described["added_tokens"]):
                        continue
                except BaseException as e:
                    if isinstance(e, KeyboardInterrupt):
                        raise
                    tally.counts["tokenizers refused by the reference"] += 1
                    continue
                path = folder / f"{options.seed}_{done}.json"
                path.write_text(json.dumps(described, ensure_ascii=rng.random() < 0.5))
                marks = [token["content"] for token in described["added_tokens"]] + ["<unk>", "<a>"]
                cases.append((path, specials, in_text,
                              [text_of(rng, marks) for _ in range(TEXTS)]))
                others.append(described)
                references.append(reference)
            for case, described, reference, (head, found) in zip(
                    cases, others, references, ask_driver(options.driver, cases)):
                tally.compare(case, described, head, found, reference)
    print(", ".join(f"{count} {what}" for what, count in tally.counts.items()))
    for problem, count in tally.refusals.most_common(12):
        print(f"  {count} refused: {problem}")
    sys.exit(1 if tally.counts["differences"] else 0)


if __name__ == "__main__":
    main()
