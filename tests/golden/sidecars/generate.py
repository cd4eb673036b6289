#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder with `sidecar_formats.py`, which follows only the specification.

    generate.py           writes the files again
    generate.py --check   fails if it would now write other bytes

idx_uint16_3docs.sum   for Megatron's files of that name
idx_uint16_3docs.mask  for the tokens 1, 2, 4, 6 and 7 of these files
two_documents.cuts     for a task that read an input of three lines, the second of which is blank
two_documents.digests  for a run that read a text, and a list of two texts
blocks.sum             for a .bin of 2 MiB + 5 bytes and an .idx of 1 MiB. Byte i is the low byte of
                       i * i + i / 251, where i continues from the .bin to the .idx
idx_uint16_3docs.rows-4        for Megatron's files of that name, with the .sum above
preprocess_lines.rows-8-2-1-9  for documents 1 to 8 of Megatron's files, padded to multiples of 2,
                               without a .sum
preprocess_lines.src   for the lines of Megatron's preprocess_lines.jsonl
preprocess_lines.meta  for the same lines with the byte tokenizer without eod, whose output is
                       Megatron's preprocess_lines.bin and .idx
twice.meta, .src       for a run whose input is the same file twice
twice_I_of_N.meta,     for the tasks into which that input is cut, at the offsets CUTS[N]
  .src
strange.meta           strings that must be escaped, nulls, the largest numbers
NAME.src, NAME.tsv     other sequences of places. The first line of the .tsv has the names of the
                       inputs, the other lines have input, line, begin and end of each document
"""
import hashlib
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sidecar_formats import (crc32c, encode_cuts, encode_digests, encode_mask, encode_meta, encode_rows,  # noqa: E402
                             encode_src, encode_sum, extent)

HERE = pathlib.Path(__file__).resolve().parent
MEGATRON = HERE.parent / "megatron"
TOP = (1 << 63) - 1
NAME = "preprocess_lines.jsonl"
# The text offsets where the tasks begin, by number of tasks. The input is two copies of the same
# file, one after the other. The line at offset 86 comes after a lone CR. If two offsets are equal,
# one task has no input.
CUTS = {2: [0, 741], 3: [0, 86, 840], 6: [0, 86, 86, 741, 1404, 1437]}
KINDS = ["invalid_utf8", "invalid_json", "not_an_object", "missing_key", "wrong_type",
         "not_encodable"]


def pattern(start, size):
    return bytes((i * i + i // 251) & 255 for i in range(start, start + size))


def places_of_lines(text):
    """The places of lines, which end as in Python's universal newlines. Each line is a document."""
    places = []
    for match in re.finditer(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", text):
        if match.group(0) or match.start() < len(text):
            places.append((0, len(places) + 1, match.start(1), match.end(1)))
    return [place for place in places if place[2] < len(text)]


def cuts_of_two_documents():
    """The bytes of the texts are the tokens."""
    text = b'{"text": "abc"}\n\n{"text": "de"}\n'
    points = []
    for end, begin, lines, blank, tokens in [(0, 0, 0, 0, 0), (17, 17, 2, 1, 3), (32, 32, 3, 1, 5)]:
        points.append([lines, tokens, end, lines, crc32c(text[:end]), begin, 0, blank] + 14 * [0] + [tokens])
    return encode_cuts(points, 1, 0)


def counts_of(records):
    """The counts for JSON lines that are all documents, with the byte tokenizer without eod."""
    texts = [json.loads(record)["text"] for record in records]
    documents = [[t.encode() for t in (text if isinstance(text, list) else [text])]
                 for text in texts]
    sequences = [text for texts in documents for text in texts if text]
    tokens = sum(map(len, sequences))
    return {"documents": len(documents), "empty_documents": sum(not any(d) for d in documents),
            "sequences": len(sequences), "tokens": tokens, "lines": len(records), "blank_lines": 0,
            "lone_surrogates": 0, "special_tokens": 0, "text_bytes": tokens,
            "bad_records": dict.fromkeys(KINDS, 0)}


def dataset(text, begin, end, tasks=None, root=None):
    """The `.meta` and `.src` of the bytes of `text` from `begin` to `end`, repeated."""
    inputs, places, records = [], [], []
    while begin < end:
        copy, first = divmod(begin, len(text))
        last = min(len(text), end - copy * len(text))
        lines = [p for p in places_of_lines(text) if first <= p[2] < last]
        skipped = lines[0][1] - 1
        places += [(len(inputs), line - skipped, b, e) for _, line, b, e in lines]
        records += [text[b:e] for _, _, b, e in lines]
        inputs.append(extent(NAME, text, first, last, len(lines)))
        begin += last - first
    counts = counts_of(records)
    meta = {"level": "document", "key": "text", "path": "text", "dtype": "uint16",
            "append_eod": False, "on_bad_record": "skip",
            "options": {"special_tokens": "as-text"}, "tokenizer": {
                "type": "ByteLevelTokenizer",
                "fingerprint": hashlib.sha256(b"type ByteLevelTokenizer\n").hexdigest(),
                "vocab_size": 512, "eod": 0},
            "sum": 1, "src": 1, "tasks": tasks, "inputs": inputs, "counts": counts,
            "bin_bytes": 2 * counts["tokens"],
            "sum_root": root or hashlib.sha256(repr(tasks).encode()).hexdigest()}
    return encode_meta(meta), encode_src(places, [NAME.encode()] * len(inputs))


def datasets():
    text = (MEGATRON / NAME).read_bytes()
    bin_file, idx_file = ((MEGATRON / f"preprocess_lines{end}").read_bytes()
                          for end in (".bin", ".idx"))
    meta, places = dataset(text, 0, len(text), root=encode_sum(bin_file, idx_file)[-32:].hex())
    assert json.loads(meta)["bin_bytes"] == len(bin_file)
    yield "preprocess_lines", meta, places
    yield "twice", *dataset(text, 0, 2 * len(text))
    for of, cuts in CUTS.items():
        for task, (begin, end) in enumerate(zip(cuts, cuts[1:] + [2 * len(text)])):
            tasks = {"first": task, "last": task, "of": of}
            yield f"twice_{task}_of_{of}", *dataset(text, begin, end, tasks)


def strange_meta():
    """A `.meta` with strings that must be escaped, all options and the largest numbers."""
    words = "quote \" backslash \\ line\n tab\t bell\a delete\x7f \u00e9 \u6f22 \U0001f600"
    return encode_meta({
        "level": "sentence", "key": words, "path": "", "dtype": "float64", "append_eod": True,
        "on_bad_record": "fail", "options": {words: words, "": "", "z": "1", "a": "2"},
        "tokenizer": {"type": words, "fingerprint": "", "vocab_size": TOP, "eod": None},
        "sum": None, "src": None, "tasks": {"first": 3, "last": 7, "of": TOP},
        "inputs": [{"path": words, "begin": 1, "text_bytes": TOP - 1, "crc32c": "00000000",
                    "lines": TOP},
                   {"path": "", "text_bytes": TOP, "crc32c": "ffffffff", "lines": 0}],
        "counts": {"documents": TOP, "empty_documents": 0, "sequences": 1, "tokens": (TOP - 7) // 8,
                   "lines": 2, "blank_lines": 3, "lone_surrogates": 4, "special_tokens": 5,
                   "text_bytes": 6, "bad_records": {"worse": 7, "bad": 8}},
        "bin_bytes": TOP - 7, "sum_root": None})


def one_after_another(rng, count, gap=1, skip=0.0, source=0, begin=0, line=1):
    places = []
    for _ in range(count):
        if rng.random() < skip:  # as if this line were blank or bad
            line += rng.randrange(1, 4)
            begin += rng.randrange(1, 5000)
        length = int(rng.lognormvariate(6, 2))
        places.append((source, line, begin, begin + length))
        begin += length + gap
        line += 1
    return places


def by_turns(rng, files, rounds):
    rows = [one_after_another(rng, rounds, skip=0.05, source=f) for f in range(files)]
    return [rows[f][r] for r in range(rounds) for f in range(files)]


def shuffled(rng, count):
    places = one_after_another(rng, count)
    rng.shuffle(places)
    return places


def extremes():
    return [(0, 1, 0, 0), (0, TOP, TOP, TOP), (0, 1, 0, TOP), (1, TOP, TOP, TOP), (0, 1, 0, TOP),
            (0, 2, 0, 0), (0, 3, TOP, TOP), (0, 4, 0, 5), (0, 4, 0, 5), (1, 4, 0, 5), (1, 5, 6, 7)]


def cases():
    rng = random.Random(20260822)
    names = [b"a.jsonl", b"folder/b.jsonl.gz", b"c.jsonl.zst", b""]
    yield "none", [], []
    yield "typical", names[:1], one_after_another(rng, 300)
    yield "one_group", names[:1], one_after_another(rng, 64)
    yield "crlf", names[:1], one_after_another(rng, 200, gap=2)
    yield "skipped", names[:1], one_after_another(rng, 200, skip=0.3)
    yield "files", names, [p for f in range(4)
                           for p in one_after_another(rng, 40, gap=1 + f % 2, source=f)]
    yield "by_turns", names, by_turns(rng, 4, 40)
    yield "shuffled", names[:1], shuffled(rng, 150)
    yield "extremes", names, extremes()
    yield "rows", [b"a.parquet", *names], [(0, row + 1, row, row + 1) for row in range(200) if row % 9] + [
        (source + 1, *rest) for source, *rest in by_turns(rng, 2, 40)]


def files():
    read = lambda name: (MEGATRON / name).read_bytes()  # noqa: E731
    yield "idx_uint16_3docs.sum", encode_sum(read("idx_uint16_3docs.bin"),
                                             read("idx_uint16_3docs.idx"))
    yield "idx_uint16_3docs.mask", encode_mask([token in (1, 2, 4, 6, 7) for token in range(8)])
    yield "two_documents.cuts", cuts_of_two_documents()
    yield "two_documents.digests", encode_digests([[b"abc"], [b"a", b""]])
    pair = read("idx_uint16_3docs.bin"), read("idx_uint16_3docs.idx")
    yield "idx_uint16_3docs.rows-4", encode_rows(*pair, 4, 1, 0, 3, encode_sum(*pair))
    pair = read("preprocess_lines.bin"), read("preprocess_lines.idx")
    yield "preprocess_lines.rows-8-2-1-9", encode_rows(*pair, 8, 2, 1, 9)
    size = (2 << 20) + 5
    yield "blocks.sum", encode_sum(pattern(0, size), pattern(size, 1 << 20))
    for name, meta, places in datasets():
        yield f"{name}.meta", meta
        yield f"{name}.src", places
    yield "strange.meta", strange_meta()
    for name, names, places in cases():
        yield f"{name}.src", encode_src(places, names)
        rows = [b"\t".join(names)] + ["\t".join(map(str, p)).encode() for p in places]
        yield f"{name}.tsv", b"".join(row + b"\n" for row in rows)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    wrong = []
    for name, data in files():
        path = HERE / name
        if not check:
            path.write_bytes(data)
        elif not path.exists() or path.read_bytes() != data:
            wrong.append(name)
    if wrong:
        sys.exit("other bytes now: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
