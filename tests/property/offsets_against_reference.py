#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the spans of our tokens in the text with the offsets of Hugging Face's `tokenizers`, of
`sentencepiece` and of `tiktoken`: on random tokenizers, and on real ones if there are any.

usage: offsets_against_reference.py --driver D [--cases N] [--models N] [--texts N] [--seed S]
                                    [--shared FOLDER] [--only NAME]

  --cases   random tokenizer.json files, with 40 random texts each
  --models  random SentencePiece models, with 100 random texts each
  --texts   random texts for each real tokenizer in FOLDER/tokenizers

The driver is the program of tests/support/offset_lines.cpp. It also compares the ids with those of
encode(), and the spans of parts of texts with those of the whole texts. The seed is printed; the same
seed gives the same cases. Exits 1 on a difference, and 77 if a package is missing.
"""
import argparse
import base64
import collections
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import sentencepiece
    import tiktoken
    import tokenizers
except ImportError as e:
    print(f"skipped: needs the Python packages tokenizers, sentencepiece and tiktoken ({e})")
    sys.exit(77)

import hugging_face_against_reference as random_tokenizers
import sentencepiece_against_reference as random_models
from tiktoken_against_reference import PATTERNS

NONE = 0xFFFFFFFF
SPECIALS = ["<|endoftext|>", "<s>", "</s>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "<|begin_of_text|>", "<|im_start|>",
            "<|im_end|>", "<|eot_id|>", "<0x41>", "<pad>"]
PARTS = (["a", "the", "The", "HTTPServer", "don't", "'ll", "I'VE", "12345", "3.14", "na\u00efve", "Stra\u00dfe",
          "\u043f\u0440\u0438\u0432\u0435\u0442", "\u0419", "\u0130", "\u05e9\u05dc\u05d5\u05dd", "\u0939\u093f\u0928",
          "\u0e44\u0e17\u0e22", "a\u0301", "\u0301", "e\u0301\u0302", "o\u0302\u0323", "\ufb01", "\u212b", "\u017f",
          "\u4e2d\u6587", "\u65e5\u672c\u8a9e", "\u3002", "\u304b\u3099", "\u304c", "\uff8a\uff9e", "\ud55c\uad6d",
          "\u1112\u1161\u11ab", "\uff11", "\u337f", "\U00020000", "...", "\u2026", "\u00bd", "\u2167", "\U0001f600",
          "\U0001f468\u200d\U0001f469", "\u200d", "\u200b", "\u00ad", "\ufe0f", "\x01", "\x7f", "\x00", "\u2581",
          "\ufeff", "\ufffd", "=\u0338", "\u1e9b\u0323", "for (int i = 0; i < n; ++i) {", "https://", "_", "##"],
         [" ", " ", " ", "  ", "   ", "        ", "\n", "\n\n", "\r\n", "\t", " \n", "\u00a0", "\u3000", "\u2003",
          "\u2028", "\x0b", "\u0085"])


def text_of(rng, corpus):
    """A text of words, marks, spaces of all kinds and special tokens that it spells out."""
    kind = rng.randrange(8)
    if kind == 0 and corpus:
        begin = rng.randrange(len(corpus))
        return corpus[begin:begin + rng.randrange(1, 300)]
    if kind == 1:
        return "".join(random_models.any_point(rng) for _ in range(rng.randrange(12)))
    pools = [PARTS[0], PARTS[0], PARTS[1], SPECIALS]
    few = [rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 9))]
    return "".join(rng.choice(few) if rng.random() < 0.6 else rng.choice(rng.choice(pools))
                   for _ in range(rng.randrange(0, 25)))


def ask_driver(driver, cases):
    """cases: (type, model, pattern, specials, in_text, texts). Gives for each a head and the answers: a
    pair of ids and spans, or None and the reason."""
    sent = []
    for *head, texts in cases:
        sent.append("\t".join([str(field) for field in head] + [str(len(texts))]).encode() + b"\n")
        sent += [struct.pack("<I", len(text)) + text for text in map(str.encode, texts)]
    ran = subprocess.run([driver], input=b"".join(sent), capture_output=True, check=False)
    if ran.returncode != 0:
        print(f"the driver exits with {ran.returncode}: {ran.stderr[-2000:]!r} over {[case[:5] for case in cases][:3]}")
        sys.exit(1)
    got, at, answers = ran.stdout, 0, []
    for case in cases:
        end = got.index(b"\n", at)
        head, at, found = got[at:end].decode(errors="replace"), end + 1, []
        for _ in case[-1] if head == "ok" else []:
            (count,) = struct.unpack_from("<I", got, at)
            at += 4
            if count == NONE:
                has_ids, size = struct.unpack_from("<II", got, at)
                reason = got[at + 8:at + 8 + size].decode(errors="replace")
                found.append((None, reason if has_ids else ""))
                at += 8 + size
                continue
            numbers = struct.unpack_from(f"<{3 * count}I", got, at)
            at += 12 * count
            found.append((list(numbers[:count]),
                          list(zip(numbers[count::2], numbers[count + 1::2]))))
        answers.append((head, found))
    return answers


class Characters:
    """Maps the bytes of a text to characters, as `tokenizers` does."""

    def __init__(self, text):
        self.count = len(text)
        self.index = []
        for i, character in enumerate(text):
            self.index += [i] * len(character.encode())

    def span(self, begin, end):
        if begin == len(self.index):
            return self.count, self.count
        return self.index[begin], self.index[end] if end < len(self.index) else self.index[end - 1] + 1


class HuggingFace:
    def __init__(self, tokenizer, specials, in_text):
        self.tokenizer = tokenizer
        self.tokenizer.encode_special_tokens = in_text == "text"
        self.specials = specials == "yes"

    def answer(self, text):
        try:
            encoding = self.tokenizer.encode(text, add_special_tokens=self.specials)
        except BaseException as e:  # a panic does not derive from Exception
            if isinstance(e, KeyboardInterrupt):
                raise
            return None
        return encoding.ids, encoding.offsets


class SentencePiece:
    def __init__(self, model):
        self.model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def answer(self, text):
        try:
            pieces = list(self.model.encode(text, return_type="proto").pieces)
            index = Characters(text).index + [len(text)]  # its places are bytes
            spans = [(index[piece.begin], index[piece.end]) for piece in pieces]
        except TypeError:  # before sentencepiece 0.2.3
            pieces = list(self.model.encode(text, out_type="immutable_proto").pieces)
            spans = [(piece.begin, piece.end) for piece in pieces]
        at = 0
        while at < len(pieces):  # the package gives a character to the last of its bytes
            size = 1
            if self.model.is_byte(pieces[at].id):
                lead = int(pieces[at].piece[3:5], 16)
                size = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
                spans[at:at + size] = [spans[at + size - 1]] * size
            at += size
        return [piece.id for piece in pieces], spans


class TikToken:
    def __init__(self, path, pattern):
        ranks = {}
        for line in path.read_bytes().splitlines():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        self.encoding = tiktoken.Encoding("ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def answer(self, text):
        ids = self.encoding.encode_ordinary(text)
        index = Characters(text).index + [len(text)]
        spans, at = [], 0
        for token in self.encoding.decode_tokens_bytes(ids):
            spans.append((index[at], index[at + len(token) - 1] + 1))
            at += len(token)
        return ids, spans


class Tally:
    def __init__(self):
        self.counts = collections.Counter()
        self.refusals = collections.Counter()

    def compare(self, name, texts, answers, reference):
        for text, (ids, spans) in zip(texts, answers):
            expected = reference.answer(text)
            if expected is None:
                self.counts["texts that the reference refuses"] += 1
                continue
            if ids is None:
                self.counts["texts without spans"] += 1
                self.refusals[spans[:100]] += 1
                continue
            characters = Characters(text)
            found = ids, [characters.span(*span) for span in spans]
            self.counts["texts"] += 1
            self.counts["tokens"] += len(ids)
            if found == (list(expected[0]), list(expected[1])):
                continue
            self.counts["differences"] += 1
            if self.counts["differences"] <= 8:
                print(f"{name}\n  text     {text!a}\n  expected {expected[0]} {expected[1]}\n"
                      f"  found    {found[0]} {found[1]}", flush=True)

    def report(self, name):
        print(name + ": " + ", ".join(f"{count} {what}" for what, count in self.counts.items()))
        for reason, count in self.refusals.most_common(6):
            print(f"  {count} without spans: {reason}")
        sys.stdout.flush()


def trims(rng, described):
    """Varies the flags that only offsets depend on."""
    def vary(processor):
        if not isinstance(processor, dict):
            return
        for each in processor.get("processors", []):
            vary(each)
        if "trim_offsets" in processor:
            processor["trim_offsets"] = rng.random() < 0.7
            processor["add_prefix_space"] = rng.random() < 0.5
    processor = described["post_processor"]
    if processor is not None and processor["type"] == "Sequence" and rng.random() < 0.5:
        processor["processors"].reverse()
    described["post_processor"] = json.loads(json.dumps(processor))
    vary(described["post_processor"])


def random_files(options, rng, folder):
    tally, done = Tally(), 0
    while done < options.cases:
        cases, references, shown = [], [], []
        for _ in range(min(100, options.cases - done)):
            done += 1
            described = random_tokenizers.tokenizer_of(rng)
            trims(rng, described)
            specials, in_text = rng.choice(["yes", "no"]), rng.choice(["allow", "allow", "text"])
            try:
                reference = random_tokenizers.Reference(described, specials, in_text)
                if reference.never_ends(described["added_tokens"]):
                    continue
            except BaseException as e:
                if isinstance(e, KeyboardInterrupt):
                    raise
                continue
            path = folder / f"{options.seed}_{done}.json"
            path.write_text(json.dumps(described))
            marks = [token["content"] for token in described["added_tokens"]] + ["<unk>", "<a>"]
            cases.append(("HuggingFaceTokenizer", path, "", specials, in_text,
                          [random_tokenizers.text_of(rng, marks) for _ in range(40)]))
            references.append(HuggingFace(reference.tokenizer, specials, in_text))
            short = {key: value for key, value in described["model"].items() if key not in ("vocab", "merges")}
            shown.append(f"{path} {specials} {in_text} {str({**described, 'model': short})[:1500]!a}")
        for case, reference, name, (head, found) in zip(cases, references, shown, ask_driver(options.driver, cases)):
            tally.counts["tokenizers" if head == "ok" else "tokenizers refused"] += 1
            tally.compare(name, case[-1], found, reference)
            os.unlink(case[1]) if not options.keep else None
    tally.report("random tokenizer.json files")
    return tally


def random_sentencepiece(options, rng, folder):
    tally, done = Tally(), 0
    while done < options.models:
        data = random_models.train(rng, sentencepiece)
        if data is None:
            continue
        done += 1
        path = folder / f"{options.seed}_{done}.model"
        path.write_bytes(data)
        reference = SentencePiece(data)
        pieces = [reference.model.id_to_piece(i).replace("\u2581", " ") for i in range(reference.model.get_piece_size())]
        texts = [random_models.text_of(rng, [c for piece in pieces for c in piece][-80:], pieces) for _ in range(100)]
        case = ("SentencePieceTokenizer", path, "", "yes", "reference", texts)
        ((head, found),) = ask_driver(options.driver, [case])
        tally.counts["models" if head == "ok" else "models refused"] += 1
        tally.compare(path, texts, found, reference)
    tally.report("random SentencePiece models")
    return tally


def real_tokenizers(shared):
    root = shared / "tokenizers"
    for path in sorted(root.glob("*/tokenizer.json")):
        for specials in ("yes", "no"):
            yield ("HuggingFaceTokenizer", path, "", specials, "allow",
                   lambda path=path, specials=specials: HuggingFace(tokenizers.Tokenizer.from_file(str(path)), specials,
                                                                    "allow"))
    for path in sorted(root.glob("*/*.model")):
        yield ("SentencePieceTokenizer", path, "", "yes", "reference", lambda path=path: SentencePiece(path.read_bytes()))
    for name in ("cl100k", "o200k", "llama3"):
        for path in sorted(root.glob(f"{name}*/*.tiktoken")):
            yield ("TikTokenizer", path, name, "yes", "reference",
                   lambda path=path, name=name: TikToken(path, PATTERNS[name]))
    path = root / "gpt2/vocab.json"
    if path.exists():
        yield ("GPT2BPETokenizer", path, "", "yes", "allow",
               lambda: HuggingFace(tokenizers.Tokenizer.from_file(str(root / "gpt2/tokenizer.json")), "yes", "allow"))


def real(options, rng):
    corpora = [path.read_text(errors="ignore")[:2_000_000] for path in
               sorted(options.shared.glob("corpus/*.txt")) + sorted(pathlib.Path(__file__).parent.glob("*.py"))]
    corpus = "\n".join(corpora)
    tallies = []
    for *head, make in real_tokenizers(options.shared):
        name = f"{head[0]} {head[1].parent.name}/{head[1].name} {head[2]} specials {head[3]}"
        if options.only not in name:
            continue
        tally, reference, left = Tally(), make(), options.texts
        while left > 0:
            texts = [text_of(rng, corpus) for _ in range(min(20000, left))]
            left -= len(texts)
            ((said, found),) = ask_driver(options.driver, [(*head, texts)])
            if said != "ok":
                tally.counts[said] += 1
                tally.counts["differences"] += 1
                break
            tally.compare(name, texts, found, reference)
        tally.report(name)
        tallies.append(tally)
    return tallies


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--models", type=int, default=30)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only real tokenizers with this in their names")
    parser.add_argument("--keep", action="store_true", help="keep the random files")
    here = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--shared", type=pathlib.Path,
                        default=os.environ.get("MILLRACE_SHARED", here.parent / "shared"))
    options = parser.parse_args()
    print(f"seed {options.seed}, tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}, "
          f"tiktoken {tiktoken.__version__}", flush=True)
    rng = random.Random(options.seed)
    sys.stderr = sys.stdout
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the packages print many long panics
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path("/tmp" if options.keep else made)
        tallies = [random_files(options, rng, folder), random_sentencepiece(options, rng, folder)]
        tallies += real(options, rng)
    sys.exit(1 if any(tally.counts["differences"] for tally in tallies) else 0)


if __name__ == "__main__":
    main()
