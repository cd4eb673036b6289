#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gathers the first rows of a run with megatron-core, for bench/end_to_end/time_to_first_batch.

usage: rival_first_batch.py FOLDER SEQUENCE_LENGTH ROWS TRAIN_SAMPLES PREFIX...

Keeps its caches in FOLDER and builds them if they are missing. Prints one JSON object with seconds, imports not
counted.
"""
import json
import sys
import time
import warnings

import torch.distributed as dist

warnings.filterwarnings("ignore")
from megatron.core.datasets import helpers  # noqa: E402, F401  loads its compiled part before the clock runs
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402


class Tokenizer:
    unique_identifiers = {}
    vocab_size, pad, eod, eos = 60000, -1, -2, -2


def main():
    folder, length, rows, samples, *prefixes = sys.argv[1:]
    weights = [1.0] * len(prefixes) if len(prefixes) > 1 else None
    config = GPTDatasetConfig(
        random_seed=1234, sequence_length=int(length), blend=(prefixes, weights), split="100,0,0",
        path_to_cache=folder, tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
        eod_mask_loss=False, create_attention_mask=False, mid_level_dataset_surplus=0.005)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # blends need a rank
    wall, cpu = time.monotonic(), time.process_time()
    dataset = BlendedMegatronDatasetBuilder(
        GPTDataset, [int(samples), 0, 0], lambda: True, config).build()[0]
    opened = time.monotonic()
    batch = [dataset[row] for row in range(int(rows))]
    assert len(batch[0]["tokens"]) == int(length)
    end = time.monotonic()
    print(json.dumps({"open": opened - wall, "gather": end - opened, "wall": end - wall,
                      "cpu": time.process_time() - cpu}))


if __name__ == "__main__":
    main()
