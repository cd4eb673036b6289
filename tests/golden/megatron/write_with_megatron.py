# SPDX-License-Identifier: Apache-2.0
"""Writes random datasets with Megatron's own IndexedDatasetBuilder, each with its contents as JSON.

usage: write_with_megatron.py OUTDIR --seed N --count K

Dataset i is OUTDIR/random_<i>.bin and .idx; OUTDIR/random_<i>.json has what a reader must find:
the keys that read_with_megatron.py prints, and "multimodal". Equal seeds give equal files. Exits with
77 if megatron-core is not installed.
"""

import argparse
import json
import os
import random

import megatron_support

LARGEST = {"uint16": 65535, "int32": 2**31 - 1}


def random_document(rng, dtype, multimodal):
    """A list of 0 to 6 sequences. One in six documents is empty, and a sequence may be empty."""
    if rng.random() < 1 / 6:
        return []
    document = []
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        length = rng.choice([0, 1, 2, rng.randrange(100), rng.randrange(3000)])
        tokens = [rng.randrange(LARGEST[dtype] + 1) for _ in range(length)]
        if tokens and rng.random() < 0.2:
            tokens[rng.randrange(length)] = LARGEST[dtype]
        document.append((tokens, rng.randrange(-128, 128)) if multimodal else tokens)
    return document


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir", help="folder; created if it is missing")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True, help="number of datasets")
    args = parser.parse_args()

    megatron_support.load()
    os.makedirs(args.outdir, exist_ok=True)
    rng = random.Random(args.seed)
    for i in range(args.count):
        prefix = os.path.join(args.outdir, f"random_{i}")
        dtype = rng.choice(sorted(LARGEST))
        multimodal = rng.random() < 0.25
        documents = [
            random_document(rng, dtype, multimodal)
            for _ in range(rng.choice([0, 1, 5, 20, 20, 40]))
        ]
        answer = megatron_support.write_dataset(prefix, documents, dtype, multimodal)
        with open(prefix + ".json", "w", encoding="utf-8") as stream:
            json.dump({"multimodal": multimodal, **answer}, stream)
            stream.write("\n")


if __name__ == "__main__":
    main()
