#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times other ways to load Megatron's files, for bench/peers/loader. Prints one JSON line.

usage: rival_loader.py numpy|megatron PREFIX SEQ_LEN BATCH BATCHES

numpy     random windows of a memmap, converted to int64 and stacked: a loop written by hand megatron
megatron-core's GPTDataset with torch's collation, without worker processes
"""
import json
import os
import sys
import tempfile
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")


def by_numpy(prefix, length, rows, batches):
    with open(prefix + ".idx", "rb") as idx:
        dtype = {4: np.int32, 5: np.int64, 8: np.uint16}[idx.read(18)[17]]
    stream = np.memmap(prefix + ".bin", dtype=dtype, mode="r")
    order = np.random.default_rng(1).permutation((len(stream) - 1) // length)
    for first in range(0, rows * (batches + 1), rows):
        windows = [stream[i * length:(i + 1) * length + 1].astype(np.int64)
                   for i in (order[k % len(order)] for k in range(first, first + rows))]
        yield {"tokens": np.stack([w[:-1] for w in windows]), "labels": np.stack([w[1:] for w in windows])}


def by_megatron(prefix, length, rows, batches):
    import torch
    import torch.distributed
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 40000))
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

    class Tokenizer:
        unique_identifiers = {}
        vocab_size, pad, eod, eos = 60000, -1, -2, -2

    global start
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        config = GPTDatasetConfig(
            random_seed=1, sequence_length=length, blend=([prefix], None), split="100,0,0", path_to_cache=folder,
            tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
            create_attention_mask=False)
        data = BlendedMegatronDatasetBuilder(
            GPTDataset, [rows * (batches + 1), None, None], lambda: True, config).build()[0]
        yield from torch.utils.data.DataLoader(data, batch_size=rows, num_workers=0)


rival, prefix = sys.argv[1:3]
length, rows, batches = map(int, sys.argv[3:])
start = time.perf_counter()
source = {"numpy": by_numpy, "megatron": by_megatron}[rival](prefix, length, rows, batches)
first = int(np.asarray(next(source)["tokens"]).sum())
ready, cpu, count = time.perf_counter(), time.process_time(), 0
for _ in source:
    count += 1
    if count == batches:
        break
wall, cpu = time.perf_counter() - ready, time.process_time() - cpu
print(json.dumps({"rival": rival, "start_s": ready - start, "us_per_batch": wall / count * 1e6,
                  "cpu_us_per_batch": cpu / count * 1e6, "batches": count, "first_sum": first}))
