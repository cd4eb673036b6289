#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes randperm.json: permutations by torch.randperm on a CPU.

usage: generate.py [--wide]

--wide prints, instead, what tests/support/randperm.cpp prints for the length at which torch starts to
draw 64 bits per number: two runs to compare by hand, of 3.5 GB each. Exits 77 if torch is missing.
"""
import argparse
import hashlib
import json
import pathlib
import sys

try:
    import torch
except ImportError:
    print("skipped: needs the Python package torch")
    sys.exit(77)


def permutation(seed, size):
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed))


def digest(order):
    return hashlib.md5(order.numpy().astype("<i8").tobytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wide", action="store_true")
    if parser.parse_args().wide:
        for size in (2**32 // 20 - 1, 2**32 // 20):
            order = permutation(3, size)
            print(size, order[:4].tolist(), digest(order))
            del order
        return
    cases = []
    for seed in (0, 1, 2, 1234, 2**32 - 1, 2**32 + 5):
        for size in (0, 1, 2, 3, 20, 63, 64, 65, 66, 1000, 100000):
            order = permutation(seed, size)
            cases.append({"seed": seed, "size": size, "first": order[:20].tolist(),
                          "md5_le_int64": digest(order)})
    out = pathlib.Path(__file__).with_name("randperm.json")
    lines = ",\n".join(json.dumps(case) for case in cases)
    out.write_text('{"torch": "%s", "cases": [\n%s\n]}\n' % (torch.__version__, lines))


main()
