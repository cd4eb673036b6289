#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the instant order with a model of its specification, and with numpy's shuffle.

usage: instant_against_model.py --driver instant_lines [--seed N] [--cases N] [--print-vectors]

  --print-vectors  prints tests/golden/instant/vectors.json, made by the model alone, and compares
                   nothing
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys

import instant_model as model

GOLDEN = pathlib.Path(__file__).parents[2] / "golden/instant/vectors.json"


def ask(driver, lines):
    done = subprocess.run([driver], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{driver}: {done.stderr}")
    return [[int(x) for x in line.split()] for line in done.stdout.splitlines()]


def compare(driver, questions, expected):
    for question, found, wanted in zip(questions, ask(driver, questions), expected, strict=True):
        if found != wanted:
            sys.exit(f"{question}\n  ours  {found[:40]}\n  model {wanted[:40]}")
    print(f"{len(questions)} equal: {questions[0].split()[0]}")


def some_name(rng):
    return "".join(rng.choice("abcxyz_/-.0189é") for _ in range(rng.randint(1, 30)))


def windows(driver, rng, cases):
    questions, expected = [], []
    for _ in range(cases):
        seed, name = rng.getrandbits(rng.choice((1, 16, 64))), some_name(rng)
        seq_len = rng.choice((1, 2, 7, 2048, 4096, 8192, 131072))
        tokens = seq_len + 1 + rng.getrandbits(rng.randint(1, 50))
        k = rng.getrandbits(rng.randint(1, 50))
        questions.append(f"window {seed} {name} {tokens} {seq_len} {k}")
        expected.append([*model.window(seed, name, tokens, seq_len, k), k])
    compare(driver, questions, expected)


def permutations(driver, rng, cases):
    questions, expected = [], []
    for _ in range(cases):
        what = rng.choice(list(model.TAGS))
        seed, name, epoch = rng.getrandbits(64), some_name(rng), rng.getrandbits(20)
        n = 1 + rng.getrandbits(rng.randint(1, 61))
        i = rng.randrange(n)
        hashed = model.epoch_hash(what, seed, name, epoch)
        questions.append(f"permute {what} {seed} {name} {epoch} {n} {i}")
        expected.append([model.permute(hashed, n, i), i])
    compare(driver, questions, expected)


def blends(driver, rng, cases):
    questions, expected = [], []
    for _ in range(cases):
        weights = [rng.expovariate(1) + 1e-4 for _ in range(rng.randint(1, 12))]
        length = rng.randint(1, 700)
        counts, bits = model.counts_of(weights)
        questions.append(f"blend {length} " + " ".join(repr(w) for w in weights))
        expected.append([1 << bits, *counts, *model.slots_of(weights, length)])
    compare(driver, questions, expected)


def against_numpy(driver, rng):
    """Compares with numpy how often two windows that are adjacent in the file share a global batch."""
    try:
        import numpy
    except ImportError:
        print("no numpy here: not compared with its shuffle")
        return
    generator = numpy.random.default_rng(rng.getrandbits(32))
    for n, batch in ((2000, 8), (20000, 64), (100000, 512), (65536, 1024), (131072, 256)):
        shared = []
        rows = ask(driver, [f"order {rng.getrandbits(64)} web {e} {n}" for e in range(8)])
        for orders in (rows, [generator.permutation(n) for _ in range(8)]):
            count = 0
            for order in orders:
                turn = numpy.empty(n, dtype=numpy.int64)
                turn[numpy.asarray(order)] = numpy.arange(n)
                count += int((turn[1:] // batch == turn[:-1] // batch).sum())
            shared.append(count)
        print(f"{n} windows in batches of {batch}: {shared[0]} neighbours share one, {shared[1]} by numpy")
        if not shared[1] / 2 < shared[0] < shared[1] * 2:
            sys.exit("that is not within a factor of two")


def vectors():
    """Returns the frozen numbers, computed by the model alone."""
    permute, window, blend = [], [], []
    for tag, name, seed, epoch, n in (
        ("windows", "web", 0, 0, 10),
        ("windows", "web_text_document", 1234, 0, 1000),
        ("windows", "web_text_document", 1234, 1, 1000),
        ("windows", "web_text_document", 1234, 7, 2**31 + 11),
        ("bins", "code", 2**64 - 1, 3, 300),
        ("documents", "", 42, 0, 10**9),
    ):
        hashed = model.epoch_hash(tag, seed, name, epoch)
        to = [model.permute(hashed, n, i) for i in range(10)]
        permute.append({"tag": tag, "source": name, "seed": seed, "e": epoch, "n": n, "to": to})
    for name, seed, tokens, seq_len in (("web", 1, 10**12, 4096), ("books", 99, 123457, 100)):
        per_epoch = (tokens - 1) // seq_len
        for k in (0, 1, per_epoch - 1, per_epoch, 5 * per_epoch + 3):
            at = model.window(seed, name, tokens, seq_len, k)
            case = {"source": name, "seed": seed, "N": tokens, "L": seq_len, "k": k}
            window.append({**case, "epoch": at[0], "window": at[1], "first": at[2]})
    for weights in ([0.5, 0.3, 0.2], [1, 1, 1, 1], [0.7, 0.2, 0.09, 0.01]):
        slots, bits = model.counts_of(weights)
        first = model.slots_of(weights, 24)
        blend.append({"weights": weights, "P": 1 << bits, "slots": slots, "first": first})
    return {"permute": permute, "window": window, "blend": blend}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--print-vectors", action="store_true")
    args = parser.parse_args()
    if args.print_vectors:
        print(json.dumps(vectors()))
        return
    if json.loads(GOLDEN.read_text()) != vectors():
        sys.exit(f"{GOLDEN} is not what the model says")
    rng = random.Random(args.seed)
    print(f"seed {args.seed}")
    windows(args.driver, rng, args.cases)
    permutations(args.driver, rng, args.cases)
    blends(args.driver, rng, max(1, args.cases // 50))
    against_numpy(args.driver, rng)


main()
