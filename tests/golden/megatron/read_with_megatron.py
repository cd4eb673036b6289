# SPDX-License-Identifier: Apache-2.0
"""Opens a dataset with Megatron's own IndexedDataset and prints what it finds as one line of JSON.

usage: read_with_megatron.py PREFIX [--multimodal]

Keys: dtype, lengths, document_indices, tokens_md5 (MD5 over all tokens in order, each as a
little-endian int64) and, with --multimodal, modes. Exits with 77 if megatron-core is not installed.
"""

import argparse
import json

import megatron_support


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", help="path of the dataset without .bin and .idx")
    parser.add_argument(
        "--multimodal", action="store_true", help="the .idx ends with one mode per sequence"
    )
    args = parser.parse_args()
    print(json.dumps(megatron_support.read_dataset(args.prefix, args.multimodal)))


if __name__ == "__main__":
    main()
