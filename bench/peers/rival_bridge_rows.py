#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs conversations with Megatron-Bridge's own functions, for bench/peers/bridge_rows. Prints one line of JSON.

usage: rival_bridge_rows.py FOLDER PREFIX SEQUENCE_LENGTH OUT OURS...

  FOLDER  where megatron-bridge is: the folder that has `megatron`
  PREFIX  a dataset with a mask, one sequence per document
  OUT     the Parquet file to write
  OURS    Parquet files whose rows must be equal

The clock starts when the documents are Python lists, as Bridge has them after tokenizing. "pack" ends when the rows are
lists, "seconds" when the file is written; the CPU seconds end there too. The peak memory includes the documents. The rows
are compared after that.
"""
import json
import logging
import mmap
import multiprocessing
import pathlib
import resource
import struct
import sys
import time
import types

import numpy as np
import pyarrow.compute
import pyarrow.parquet

NEW_BYTES = 56  # of memory that Bridge takes per token while the clock runs


def bridge_modules(folder):
    """Bridge's packing algorithms and its writer. Their packages are left out, because these would import torch and
    Megatron; so are modules that the two files do not need here."""
    def add(name, **content):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(content)

    for name in ("megatron", "megatron.core", "megatron.bridge", "megatron.bridge.data", "megatron.bridge.data.packing",
                 "megatron.bridge.utils"):
        add(name, __path__=[str(pathlib.Path(folder, *name.split(".")))])
    add("megatron.core.msc_utils", MultiStorageClientFeature=types.SimpleNamespace(is_enabled=lambda: False))
    add("megatron.bridge.data.packing.gpt_sft", GPTSFTPackedDataset=object)
    from megatron.bridge.data.packing import algorithms, parquet
    return algorithms, parquet


def documents_of(prefix):
    """The documents, with the keys that Bridge expects."""
    index = pathlib.Path(f"{prefix}.idx").read_bytes()
    code, sequences = struct.unpack_from("<BQ", index, 17)
    ends = np.cumsum(np.frombuffer(index, "<i4", sequences, 34))
    ids = np.fromfile(f"{prefix}.bin", {4: "<i4", 8: "<u2"}[code])
    mask = np.unpackbits(np.fromfile(f"{prefix}.mask", np.uint8, offset=32), bitorder="little")
    return [{"input_ids": ids[begin:end].tolist(), "loss_mask": mask[begin:end].tolist()}
            for begin, end in zip([0, *ends], ends)]


def touch(size):
    """Touches new memory. On a virtual machine the first touch of a page may cost more than the work on it."""
    chunk = bytes(1 << 20)
    with mmap.mmap(-1, size) as memory:
        for at in range(0, size - len(chunk), len(chunk)):
            memory[at:at + len(chunk)] = chunk


def measure(folder, prefix, length, out):
    algorithms, parquet = bridge_modules(folder)
    documents = documents_of(prefix)
    tokens = sum(len(each["input_ids"]) for each in documents)
    touching = multiprocessing.Process(target=touch, args=(NEW_BYTES * tokens,))
    touching.start()
    touching.join()
    begin, cpu = time.perf_counter(), time.process_time()
    sequences, histogram = algorithms.create_hist(documents, length)
    np.random.seed(0)
    assignments, _ = algorithms.create_packing_strategy(histogram, length, "first_fit_shuffle")
    rows = algorithms.fill_packing_strategy(assignments, sequences, length, 0)
    packed, cpu_packed = time.perf_counter(), time.process_time()
    parquet.write_packed_parquet(rows, out)
    return {"pack": packed - begin, "seconds": time.perf_counter() - begin, "pack_cpu": cpu_packed - cpu,
            "cpu": time.process_time() - cpu, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024e-6}


def same_rows(one, other):
    """Whether two files have the same rows; their numbers may have different types."""
    for name in ("seq_start_id", "loss_mask", "input_ids"):
        a, b = (pyarrow.parquet.read_table(path, columns=[name]).column(name) for path in (one, other))
        if not pyarrow.compute.list_value_length(a).equals(pyarrow.compute.list_value_length(b)):
            return False
        a, b = (pyarrow.compute.list_flatten(column).cast("int64") for column in (a, b))
        if not a.equals(b):
            return False
    return True


def main():
    folder, prefix, length, out, *ours = sys.argv[1:]
    logging.disable(logging.WARNING)
    measured = measure(folder, prefix, int(length), out)
    print(json.dumps(measured | {"equal": [same_rows(path, out) for path in ours]}))


if __name__ == "__main__":
    main()
