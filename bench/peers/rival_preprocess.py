#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts JSON lines to a .bin/.idx pair as Megatron's users do, for bench/peers/preprocess. Prints one JSON line.

usage: rival_preprocess.py ENGINE TOKENIZER.json FILE.jsonl OUTPUT_PREFIX WORKERS [EOD_TOKEN]

ENGINE is gigatoken (as tools/preprocess_data_fast.py: encodes the whole file in one call, on WORKERS threads) or
tokenizers (as tools/preprocess_data.py: a pool of WORKERS processes encodes the lines, one process writes).
EOD_TOKEN ends each document that has tokens. The two tools differ in documents without tokens; here both engines
write what preprocess_data.py writes. "seconds" counts from the loaded tokenizer to the closed files, "encode_seconds" only
gigatoken's call, which reads and encodes. As in those tools, nothing is synchronized to disk.
"""
import json
import multiprocessing
import os
import struct
import sys
import time

SMALL_VOCABULARY = 65500  # smaller vocabularies are stored as uint16
CHUNK = 1_000_000         # documents per write
LINES = 32                # lines per task of the pool


def id_of(model, token):
    with open(model, encoding="utf-8") as file:
        return next(t["id"] for t in json.load(file)["added_tokens"] if t["content"] == token)


class writer:
    """The .bin and .idx. The index is written at the end."""

    def __init__(self, prefix, vocabulary):
        import numpy
        self.numpy = numpy
        self.code, self.dtype = (8, numpy.uint16) if vocabulary < SMALL_VOCABULARY else (4, numpy.int32)
        self.prefix = prefix
        self.bin = open(f"{prefix}.bin", "wb")
        self.tokens = 0

    def add(self, ids):
        """Appends ids, given as an array of 32-bit numbers or as a list."""
        numpy = self.numpy
        if isinstance(ids, numpy.ndarray) and self.dtype is numpy.int32:
            array = ids.view(numpy.int32)
        else:
            array = numpy.asarray(ids).astype(self.dtype)
        self.bin.write(memoryview(array))
        self.tokens += len(array)

    def finish(self, lengths, document_ends):
        """Writes the .idx. `lengths` are in tokens; `document_ends` counts the sequences up to each document's end."""
        numpy = self.numpy
        self.bin.close()
        lengths = numpy.asarray(lengths, dtype=numpy.int32)
        pointers = numpy.zeros(len(lengths), dtype=numpy.int64)
        numpy.cumsum(lengths[:-1], dtype=numpy.int64, out=pointers[1:])
        pointers *= numpy.dtype(self.dtype).itemsize
        documents = numpy.concatenate([[0], document_ends]).astype(numpy.int64)
        with open(f"{self.prefix}.idx", "wb") as idx:
            idx.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, self.code, len(lengths), len(documents)))
            for array in (lengths, pointers, documents):
                idx.write(memoryview(array))


def with_eod(numpy, ids, counts, eod):
    ends = numpy.cumsum(counts + 1) - 1
    out = numpy.empty(len(ids) + len(counts), dtype=ids.dtype)
    is_text = numpy.ones(len(out), dtype=bool)
    is_text[ends] = False
    out[is_text] = ids
    out[ends] = eod
    return out


def gigatoken(model, path, prefix, _, eod):
    import gigatoken as package
    import numpy
    tokenizer = package.Tokenizer(model)
    start = time.perf_counter()
    source = package.ParquetFileSource if path.endswith(".parquet") else package.JsonlFileSource
    encoded = tokenizer.encode_files(source([path]), parallel=True).layout
    encode = time.perf_counter() - start
    out = writer(prefix, tokenizer.vocab_size)
    offsets = numpy.asarray(encoded.offsets.data)
    ids = numpy.asarray(encoded.content.data)
    counts = numpy.diff(offsets)
    full = counts > 0
    for first in range(0, len(counts), CHUNK):
        last = min(first + CHUNK, len(counts))
        part = ids[offsets[first]:offsets[last]]
        if eod is not None:
            part = with_eod(numpy, part, counts[first:last][full[first:last]], eod)
        out.add(part)
    lengths = counts[full] + (0 if eod is None else 1)
    out.finish(lengths, numpy.cumsum(full))
    return out.tokens, len(counts), time.perf_counter() - start, encode


def encode_line(line):
    return encode_line.tokenizer.encode(json.loads(line)["text"], add_special_tokens=False).ids


def tokenizers(model, path, prefix, workers, eod):
    import tokenizers as package
    encode_line.tokenizer = package.Tokenizer.from_file(model)  # the forked workers inherit it
    start = time.perf_counter()
    out = writer(prefix, encode_line.tokenizer.get_vocab_size(with_added_tokens=True))
    lengths, document_ends = [], []
    with multiprocessing.get_context("fork").Pool(workers) as pool, open(path, encoding="utf-8") as lines:
        for ids in pool.imap(encode_line, lines, LINES):
            if ids:
                if eod is not None:
                    ids.append(eod)
                out.add(ids)
                lengths.append(len(ids))
            document_ends.append(len(lengths))
    out.finish(lengths, document_ends)
    return out.tokens, len(document_ends), time.perf_counter() - start, None


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def main():
    engine, model, path, prefix, workers = sys.argv[1:6]
    # The pool has one thread per process, as Megatron's users set it. gigatoken uses threads of
    # Rayon.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["RAYON_NUM_THREADS"] = workers
    eod = id_of(model, sys.argv[6]) if len(sys.argv) > 6 else None
    run = {"gigatoken": gigatoken, "tokenizers": tokenizers}[engine]
    tokens, documents, seconds, encode = run(model, path, prefix, int(workers), eod)
    print(json.dumps({"engine": engine, "documents": documents, "tokens": tokens, "seconds": seconds, "encode_seconds": encode,
                      "peak_rss_bytes": peak_bytes()}))


if __name__ == "__main__":
    main()
