#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""megatron-core's build of a GPTDataset's index caches, for bench/peers/megatron_index.

usage: rival_megatron_index.py PREFIX FOLDER SEQUENCE_LENGTH SAMPLES SEED

Prints one JSON object with the seconds from the open dataset to the written files.
"""
import json
import resource
import sys
import time
import warnings

warnings.filterwarnings("ignore")
from megatron.core.datasets import helpers  # noqa: E402, F401  loads its compiled part before the clock runs
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402


class Tokenizer:
    unique_identifiers = {}
    vocab_size, pad, eod, eos = 60000, -1, -2, -2


def main():
    prefix, folder, length, samples, seed = sys.argv[1:]
    config = GPTDatasetConfig(
        random_seed=int(seed), sequence_length=int(length), blend=([prefix], None), split="100,0,0",
        path_to_cache=folder, tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
        eod_mask_loss=False, create_attention_mask=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.monotonic(), time.process_time()
    dataset = BlendedMegatronDatasetBuilder(
        GPTDataset, [int(samples), None, None], lambda: True, config).build()[0]
    print(json.dumps({
        "wall": time.monotonic() - wall, "cpu": time.process_time() - cpu, "samples": len(dataset),
        "rss_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        "name": f"{dataset.unique_description_hash}-GPTDataset-train"}))


if __name__ == "__main__":
    main()
