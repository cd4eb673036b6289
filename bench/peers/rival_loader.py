#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times other ways to load Megatron's files, for bench/peers/loader. Prints one JSON line.

usage: rival_loader.py WAY PREFIX SEQ_LEN BATCH BATCHES

numpy     random windows of a memmap, converted to int64 and stacked: a loop written by hand
torch     the same windows as a Dataset in torch's DataLoader, without worker processes
megatron  megatron-core's GPTDataset with torch's collation, without worker processes
streaming, litdata, grain  the same windows, written in the format of mosaicml-streaming, of litdata (both before the
          clock starts) or read by grain's MapDataset; shuffled by that library
python, python-source, python-reuse  the Python package of millrace: order instant, torch tensors that the caller may
          keep, as int64 or as stored; or as int64 tensors that are handed out again
"""
import functools
import json
import os
import sys
import tempfile
import time
import warnings

import numpy as np

warnings.filterwarnings("ignore")


class Windows:
    """Sample i is a random window of a memmap: its tokens and labels, as int64."""
    def __init__(self, prefix, length):
        with open(prefix + ".idx", "rb") as idx:
            dtype = {4: np.int32, 5: np.int64, 8: np.uint16}[idx.read(18)[17]]
        self.stream = np.memmap(prefix + ".bin", dtype=dtype, mode="r")
        self.length = length
        self.order = np.random.default_rng(1).permutation((len(self.stream) - 1) // length)

    def __len__(self):
        return len(self.order)

    def __getitem__(self, i):
        start = self.order[i % len(self.order)] * self.length
        window = self.stream[start:start + self.length + 1].astype(np.int64)
        return {"tokens": window[:-1], "labels": window[1:]}


def by_numpy(prefix, length, rows, batches):
    data = Windows(prefix, length)
    for first in range(0, rows * (batches + 1), rows):
        samples = [data[k] for k in range(first, first + rows)]
        yield {key: np.stack([sample[key] for sample in samples]) for key in samples[0]}


def by_torch(prefix, length, rows, batches):
    import torch.utils.data

    global start
    start = time.perf_counter()
    data = Windows(prefix, length)
    order = [k % len(data) for k in range(rows * (batches + 1))]
    yield from torch.utils.data.DataLoader(data, batch_size=rows, sampler=order, num_workers=0)


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


def without_torchvision():
    """streaming imports torchvision for images. It has no build for the torch that is installed."""
    import importlib.machinery
    import types
    for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional", "torchvision.datasets"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules["torchvision.transforms.functional"].to_tensor = None
    sys.modules["torchvision.datasets"].VisionDataset = object


def by_streaming(prefix, length, rows, batches):
    without_torchvision()
    import torch.utils.data
    from streaming import MDSWriter, StreamingDataset

    class Samples(StreamingDataset):
        def __getitem__(self, i):
            window = super().__getitem__(i)["window"].astype(np.int64)
            return {"tokens": window[:-1], "labels": window[1:]}

    global start
    data = Windows(prefix, length)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(prefix)) as folder:
        with MDSWriter(out=folder, columns={"window": f"ndarray:{data.stream.dtype}"}) as out:
            for first in range(0, len(data) * length, length):
                out.write({"window": np.array(data.stream[first:first + length + 1])})
        start = time.perf_counter()
        served = Samples(local=folder, shuffle=True, batch_size=rows)
        loader = torch.utils.data.DataLoader(served, batch_size=rows, num_workers=0, drop_last=True)
        while True:
            yield from loader


def by_litdata(prefix, length, rows, batches):
    import torch
    from litdata import StreamingDataLoader, StreamingDataset, TokensLoader
    from litdata.streaming.writer import BinaryWriter

    global start
    data = Windows(prefix, length)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(prefix)) as folder:
        out = BinaryWriter(folder, chunk_bytes="64MB", item_loader=TokensLoader())
        for i, first in enumerate(range(0, len(data) * length, length)):
            out[i] = torch.from_numpy(data.stream[first:first + length + 1].astype(np.int32))
        out.done()
        out.merge()
        start = time.perf_counter()
        served = StreamingDataset(folder, item_loader=TokensLoader(block_size=length + 1), shuffle=True, drop_last=True)
        loader = StreamingDataLoader(served, batch_size=rows, num_workers=0)
        while True:
            for windows in loader:
                windows = windows.long()
                yield {"tokens": windows[:, :-1], "labels": windows[:, 1:]}


def by_grain(prefix, length, rows, batches):
    import grain

    global start
    start = time.perf_counter()
    data = Windows(prefix, length)
    yield from grain.MapDataset.source(data).shuffle(seed=1).repeat().batch(rows).to_iter_dataset(
        grain.ReadOptions(num_threads=1, prefetch_buffer_size=4))


def by_millrace(prefix, length, rows, batches, **options):
    import millrace
    import torch  # noqa: F401  # imported before the clock starts, as by the others

    global start
    start = time.perf_counter()
    run = millrace.InstantRun(data_path=[prefix], seq_length=length, seed=1)
    yield from millrace.Loader(run, micro_batch_size=rows, output="torch", look_ahead=4, **options)


rival, prefix = sys.argv[1:3]
length, rows, batches = map(int, sys.argv[3:])
start = time.perf_counter()
WAYS = {"numpy": by_numpy, "torch": by_torch, "megatron": by_megatron, "streaming": by_streaming,
        "litdata": by_litdata, "grain": by_grain, "python": by_millrace,
        "python-source": functools.partial(by_millrace, dtype="source"),
        "python-reuse": functools.partial(by_millrace, reuse=True)}
source = WAYS[rival](prefix, length, rows, batches)
first = int(np.asarray(next(source)["tokens"]).sum())
ready, cpu, count = time.perf_counter(), time.process_time(), 0
for _ in source:
    count += 1
    if count == batches:
        break
wall, cpu = time.perf_counter() - ready, time.process_time() - cpu
print(json.dumps({"rival": rival, "start_s": ready - start, "us_per_batch": wall / count * 1e6,
                  "cpu_us_per_batch": cpu / count * 1e6, "batches": count, "first_sum": first}))
