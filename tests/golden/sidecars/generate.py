#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder, by `sidecar_formats.py`, which knows only the specification.

    generate.py           writes them anew
    generate.py --check   fails if it would now write other bytes

idx_uint16_3docs.sum   of Megatron's files of that name
blocks.sum             of a .bin of 2 MiB + 5 bytes and an .idx of 1 MiB, byte i of each being the
                       low byte of i * i + i / 251 (that of the .idx counts from the .bin's end on)
preprocess_lines.src   of the lines of Megatron's preprocess_lines.jsonl
NAME.src, NAME.tsv     other ways that places may go, and the places themselves: the names of the
                       inputs in the first line, then input, line, begin, end of each document
"""
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sidecar_formats import encode_src, encode_sum  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MEGATRON = HERE.parent / "megatron"
TOP = (1 << 63) - 1


def pattern(start, size):
    return bytes((i * i + i // 251) & 255 for i in range(start, start + size))


def places_of_lines(text):
    """As Python's universal newlines cut them; every line a document."""
    places = []
    for match in re.finditer(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", text):
        if match.group(0) or match.start() < len(text):
            places.append((0, len(places) + 1, match.start(1), match.end(1)))
    return [place for place in places if place[2] < len(text)]


def one_after_another(rng, count, gap=1, skip=0.0, source=0, begin=0, line=1):
    places = []
    for _ in range(count):
        if rng.random() < skip:  # a blank or bad line
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


def files():
    read = lambda name: (MEGATRON / name).read_bytes()  # noqa: E731
    yield "idx_uint16_3docs.sum", encode_sum(read("idx_uint16_3docs.bin"),
                                             read("idx_uint16_3docs.idx"))
    size = (2 << 20) + 5
    yield "blocks.sum", encode_sum(pattern(0, size), pattern(size, 1 << 20))
    yield "preprocess_lines.src", encode_src(places_of_lines(read("preprocess_lines.jsonl")),
                                             [b"preprocess_lines.jsonl"])
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
