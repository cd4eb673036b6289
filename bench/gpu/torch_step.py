#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what getting a batch adds to a training step in PyTorch.

usage: torch_step.py PREFIX [--rounds N] [--seconds S] [--milliseconds T [T ...]] [--rows N] [--seq-length N]

PREFIX is the prefix of a dataset of uint16 ids (make_data writes one). A step is a chain of bf16 matrix products of about
T ms that keeps the whole GPU busy, and the sum of the batch's tokens and labels (int64). Ways to get the batch:

resident    it is on the device already
millrace    millrace.Loader(device="cuda")
workers     random windows of a memmap as a Dataset in torch's DataLoader(num_workers=4, pin_memory=True), then
            .to("cuda", non_blocking=True)
inline      the same windows, cut and pinned by the training loop, then .to("cuda", non_blocking=True)

"asynchronous" loops never wait for the GPU; "item" loops call .item() on the result of each step, as one that
prints the loss of each step does. Ways take turns. Prints medians over rounds, in microseconds per step: what the way adds to
the resident step, and how long the training thread is in the call that gets the batch.
Exit status: 77 without torch, millrace with CUDA, or a GPU.
"""
import argparse
import statistics
import sys
import time

import numpy as np

try:
    import millrace
    import torch
except ImportError as e:
    print(f"torch_step: skipped, {e}")
    sys.exit(77)


class Windows(torch.utils.data.Dataset):
    def __init__(self, prefix, length):
        self.stream = np.memmap(prefix + ".bin", dtype=np.uint16, mode="r")
        self.length = length
        self.order = np.random.default_rng(1).permutation((len(self.stream) - 1) // length)

    def __len__(self):
        return 1 << 40

    def __getitem__(self, i):
        start = self.order[i % len(self.order)] * self.length
        window = torch.from_numpy(self.stream[start:start + self.length + 1].astype(np.int64))
        return {"tokens": window[:-1], "labels": window[1:]}


def moved(batch):
    return {name: value.to("cuda", non_blocking=True) for name, value in batch.items()}


def resident(given):
    batch = moved(next(inline_host(given)))
    while True:
        yield batch


def of_millrace(given):
    run = millrace.InstantRun(data_path=[given.prefix], seq_length=given.seq_length, seed=1)
    return iter(millrace.Loader(run, micro_batch_size=given.rows, device="cuda:0", output="torch"))


def of_workers(given):
    data = Windows(given.prefix, given.seq_length)
    loader = torch.utils.data.DataLoader(data, batch_size=given.rows, sampler=range(1 << 40), num_workers=4,
                                         pin_memory=True)
    return map(moved, loader)


def inline_host(given):
    data = Windows(given.prefix, given.seq_length)
    first = 0
    while True:
        rows = [data[i] for i in range(first, first + given.rows)]
        first += given.rows
        yield {name: torch.stack([row[name] for row in rows]).pin_memory() for name in rows[0]}


def of_inline(given):
    return map(moved, inline_host(given))


WAYS = {"resident": resident, "millrace": of_millrace, "workers": of_workers, "inline": of_inline}


class Step:
    """A step of about `milliseconds`."""
    def __init__(self, milliseconds):
        self.a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
        self.b = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64
        self.products = 1
        self.products = max(1, round(milliseconds / self.milliseconds_of_one()))

    def milliseconds_of_one(self):
        for _ in range(20):
            self()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(50):
            self()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 50

    def __call__(self, batch=None):
        x = self.a
        for _ in range(self.products):
            x = x @ self.b
        return x if batch is None else batch["tokens"].sum() + batch["labels"].sum()


def measure(step, batches, seconds, by_item):
    getting, steps = 0.0, 0
    for _ in range(5):
        step(next(batches))
    torch.cuda.synchronize()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(20):
            before = time.perf_counter()
            batch = next(batches)
            getting += time.perf_counter() - before
            result = step(batch)
            if by_item:
                result.item()
            steps += 1
        if not by_item:
            torch.cuda.synchronize()  # once in 20 steps, so that the queue stays short
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - start) / steps, 1e6 * getting / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--milliseconds", type=float, nargs="+", default=[0.5, 5])
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--seq-length", type=int, default=4096)
    given = parser.parse_args()
    if not (millrace.has_cuda and torch.cuda.is_available()):
        print("torch_step: skipped, this millrace has no CUDA, or torch finds no GPU")
        sys.exit(77)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {given.rows} x {given.seq_length}")
    print("| loop | step | way | added to the step | of it in the call | step |\n| --- | --- | --- | --- | --- | --- |")
    batches = {name: way(given) for name, way in WAYS.items()}
    for milliseconds in given.milliseconds:
        step = Step(milliseconds)
        for by_item in (False, True):
            whole, getting = {name: [] for name in WAYS}, {name: [] for name in WAYS}
            for _ in range(given.rounds):
                for name in WAYS:
                    took, got = measure(step, batches[name], given.seconds, by_item)
                    whole[name].append(took)
                    getting[name].append(got)
            for name in WAYS:
                added = statistics.median(a - b for a, b in zip(whole[name], whole["resident"]))
                print(f"| {'item' if by_item else 'asynchronous'} | {milliseconds} ms | {name} | {added:.1f} us | "
                      f"{statistics.median(getting[name]):.1f} us | {statistics.median(whole[name]):.1f} us |", flush=True)


if __name__ == "__main__":
    main()
