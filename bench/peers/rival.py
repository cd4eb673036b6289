#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one other tokenizer on the texts of a JSON-lines file in memory, for bench/peers/tokenizers. Prints one JSON
line with the keys of encode_corpus.

usage: rival.py ENGINE MODEL FILE PASSES|halves

ENGINE is gigatoken, snaptokens, quicktok:NAME, tiktoken:PATTERN, tokenizers or sentencepiece. MODEL is the file that it
loads (quicktok brings its own). Each engine gets its fastest call: whole batches, on all cores that the process may use.
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


# Each function below loads a tokenizer. It returns a function that prepares texts, one that encodes them, which is timed,
# and one that makes an array of the ids.

def gigatoken(model, _):
    import awkward
    import gigatoken
    if model.endswith(".json"):
        tokenizer = gigatoken.Tokenizer(model)
    elif model.endswith(".model"):
        tokenizer = gigatoken.Tokenizer.from_sentencepiece(model)
    else:
        tokenizer = gigatoken.Tokenizer.from_tiktoken(model)
    return (awkward.Array, lambda texts: tokenizer.encode_batch(texts, parallel=True),
            lambda ids: awkward.to_numpy(awkward.flatten(ids)))


def snaptokens(model, _):
    import numpy
    import snaptokens as package
    tokenizer = package.Tokenizer.from_file(model)
    return list, tokenizer.encode_batch_flat, lambda ids: numpy.frombuffer(ids[0], numpy.uint32)


def quicktok(_, name):
    import quicktok as package
    encoding = package.get_encoding(name)
    threads = len(os.sched_getaffinity(0))
    return list, lambda texts: encoding.encode_batch(texts, threads), lambda ids: ids[0]


def tiktoken(model, name):
    import base64
    import numpy
    import tiktoken as package
    with open(model, "rb") as file:
        ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file if line.strip())}
    encoding = package.Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    threads = len(os.sched_getaffinity(0))
    return (list, lambda texts: encoding.encode_ordinary_batch(texts, num_threads=threads),
            lambda ids: numpy.concatenate([numpy.array(i, numpy.uint32) for i in ids]))


def tokenizers(model, _):
    import numpy
    import tokenizers as package
    tokenizer = package.Tokenizer.from_file(model)
    return (list, lambda texts: tokenizer.encode_batch_fast(texts, add_special_tokens=False),
            lambda ids: numpy.concatenate([numpy.array(e.ids, numpy.uint32) for e in ids]))


def sentencepiece(model, _):
    import numpy
    import sentencepiece as package
    processor = package.SentencePieceProcessor(model_file=model)
    threads = len(os.sched_getaffinity(0))
    return (list, lambda texts: processor.encode(texts, num_threads=threads),
            lambda ids: numpy.concatenate([numpy.array(i, numpy.uint32) for i in ids]))


def passes_of(path, passes):
    """The texts of each pass; halves by bytes, as encode_corpus cuts them."""
    with open(path, encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    if passes != "halves":
        return [texts] * int(passes)
    sizes = [len(text.encode()) for text in texts]
    first, before = 0, 0
    while first < len(texts) and before + sizes[first] <= sum(sizes) // 2:
        before += sizes[first]
        first += 1
    return [texts[:first], texts[first:]]


def main():
    if os.environ.get("MALLOC_MMAP_MAX_") != "0":
        threads = str(len(os.sched_getaffinity(0)))
        os.execve(sys.executable, [sys.executable, *sys.argv],
                  {**os.environ, **HEAP, "TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": threads})
    import numpy
    engine, model, path, passes = sys.argv[1:]
    engine, _, name = engine.partition(":")
    passes = passes_of(path, passes)
    sizes = [sum(len(text.encode()) for text in texts) for texts in passes]
    start = time.perf_counter()
    prepare, run, flat = globals()[engine](model, name)
    load = time.perf_counter() - start
    prepared = {id(texts): prepare(texts) for texts in passes}
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(HEAP_BYTES)))
    ctypes.memset(block, 1, HEAP_BYTES)
    libc.free(block)
    seconds = []
    for texts in passes:
        texts = prepared[id(texts)]
        start = time.perf_counter()
        ids = run(texts)
        seconds.append(time.perf_counter() - start)
        flattened = numpy.ascontiguousarray(flat(ids), dtype=numpy.uint32)
        del ids
    print(json.dumps({"bytes": sizes[-1], "tokens": len(flattened), "md5": hashlib.md5(flattened.tobytes()).hexdigest(),
                      "load_s": load, "seconds": seconds, "MB_per_s": [size / 1e6 / s for size, s in zip(sizes, seconds)]}))


if __name__ == "__main__":
    main()
