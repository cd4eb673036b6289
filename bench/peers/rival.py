#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one other tokenizer on the texts of a JSON-lines file in memory, for bench/peers/tokenizers. Prints one JSON
line with the keys of encode_corpus.

usage: rival.py ENGINE MODEL FILE PASSES MEGABYTES

ENGINE is gigatoken, quicktok:NAME, tiktoken:PATTERN, tokenizers or sentencepiece. MODEL is the file that it loads
(quicktok brings its own). Each engine gets its fastest call: whole batches, on all cores that the process may use.
Uses at most MEGABYTES of text; 0 means all.
"""
import ctypes
import hashlib
import json
import os
import sys
import time

# On a virtual machine, a new page takes longer than encoding the text on it. So malloc gets its
# memory before timing starts, and never returns it.
HEAP = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(64 << 20)}
HEAP_BYTES = 3 << 30

PATTERNS = {
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def gigatoken(model, texts, _):
    import awkward
    import gigatoken
    if model.endswith(".json"):
        tokenizer = gigatoken.Tokenizer(model)
    elif model.endswith(".model"):
        tokenizer = gigatoken.Tokenizer.from_sentencepiece(model)
    else:
        tokenizer = gigatoken.Tokenizer.from_tiktoken(model)
    documents = awkward.Array(texts)
    return lambda: tokenizer.encode_batch(documents, parallel=True), lambda ids: awkward.to_numpy(awkward.flatten(ids))


def quicktok(_, texts, name):
    import quicktok as package
    encoding = package.get_encoding(name)
    threads = len(os.sched_getaffinity(0))
    return lambda: encoding.encode_batch(texts, threads), lambda ids: ids[0]


def tiktoken(model, texts, name):
    import base64
    import numpy
    import tiktoken as package
    with open(model, "rb") as file:
        ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file if line.strip())}
    encoding = package.Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    threads = len(os.sched_getaffinity(0))
    return (lambda: encoding.encode_ordinary_batch(texts, num_threads=threads),
            lambda ids: numpy.concatenate([numpy.array(i, numpy.uint32) for i in ids]))


def tokenizers(model, texts, _):
    import numpy
    import tokenizers as package
    tokenizer = package.Tokenizer.from_file(model)
    return (lambda: tokenizer.encode_batch_fast(texts, add_special_tokens=False),
            lambda ids: numpy.concatenate([numpy.array(e.ids, numpy.uint32) for e in ids]))


def sentencepiece(model, texts, _):
    import numpy
    import sentencepiece as package
    processor = package.SentencePieceProcessor(model_file=model)
    threads = len(os.sched_getaffinity(0))
    return (lambda: processor.encode(texts, num_threads=threads),
            lambda ids: numpy.concatenate([numpy.array(i, numpy.uint32) for i in ids]))


def texts_of(path, limit):
    size = 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            text = json.loads(line)["text"]
            size += len(text.encode())
            yield text
            if limit and size > limit:
                return


def main():
    if os.environ.get("MALLOC_MMAP_MAX_") != "0":
        threads = str(len(os.sched_getaffinity(0)))
        os.execve(sys.executable, [sys.executable, *sys.argv],
                  {**os.environ, **HEAP, "TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": threads})
    import numpy
    engine, model, path, passes, megabytes = sys.argv[1:]
    engine, _, name = engine.partition(":")
    texts = list(texts_of(path, float(megabytes) * 1e6))
    size = sum(len(text.encode()) for text in texts)
    start = time.perf_counter()
    run, flat = globals()[engine](model, texts, name)
    load = time.perf_counter() - start
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(HEAP_BYTES)))
    ctypes.memset(block, 1, HEAP_BYTES)
    libc.free(block)
    seconds = []
    for _ in range(int(passes)):
        start = time.perf_counter()
        ids = run()
        seconds.append(time.perf_counter() - start)
        flattened = numpy.ascontiguousarray(flat(ids), dtype=numpy.uint32)
        del ids
    print(json.dumps({"bytes": size, "tokens": len(flattened), "md5": hashlib.md5(flattened.tobytes()).hexdigest(),
                      "load_s": load, "seconds": seconds, "MB_per_s": [size / 1e6 / s for s in seconds]}))


if __name__ == "__main__":
    main()
