#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs random sequences with Megatron-Bridge, converts its files with `inspect_dataset convert`, and compares the dataset
with what Bridge's dataset of packed rows serves.

    packed_rows_against_bridge.py --program build/bin/inspect_dataset --bridge FOLDER [--seed N] [--cases N] [--first N]

  --bridge  where megatron-bridge is: the folder that has `megatron`

Bridge packs the sequences (fill_packing_strategy) and writes them (write_packed_parquet); some files are written by pyarrow
with other codecs, encodings and types instead. Bridge's reader (GPTSFTPackedParquetDataset) and its collate_fn give tokens,
labels, loss mask and boundaries of each row. Each sequence must be a document with the tokens and the last label, and the mask
of token i + 1 must be the loss mask of position i. Exits 1 at the first difference and prints the arguments that repeat it;
exits 77 if numpy, pyarrow, torch or megatron-bridge is not there.
"""

import argparse
import collections
import json
import logging
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import types

import reference_files

EOS = -1  # is no id, because Bridge masks the positions of its eos when it collates, whatever the file says
COLUMNS = ("input_ids", "loss_mask", "seq_start_id")


def load_bridge(folder):
    """Bridge's packing functions, its writer and its dataset, in place of whose base class is a small one."""
    class Base:
        def __init__(self, file_path, tokenizer, max_num_samples=None, **_):
            self.file_path, self.tokenizer, self.max_num_samples = file_path, tokenizer, max_num_samples
            self.virtual_tokens = 0
            self._load_dataset()
            self._build_samples_mapping()

        def _collate_item(self, items, max_length, pad_id):
            return [list(item) + [pad_id] * (max_length - len(item)) for item in items]

    storage = type("MultiStorageClientFeature", (), {"is_enabled": staticmethod(lambda: False)})
    stand_ins = {"megatron.core.msc_utils": {"MultiStorageClientFeature": storage},
                 "megatron.bridge.data.datasets.gpt_sft": {"GPTSFTDataset": Base},
                 "megatron.bridge.training.tokenizers.tokenizer": {"MegatronTokenizer": None},
                 "megatron.bridge.utils.safe_pickle": {"safe_load_npy": None},
                 "tqdm": {"tqdm": lambda items, **_: items}}
    load = lambda name: reference_files.load_module(folder, f"megatron.bridge.data.packing.{name}",
                                                    reference_files.BRIDGE, stand_ins)
    return types.SimpleNamespace(algorithms=load("algorithms"), gpt_sft=load("gpt_sft"), parquet=load("parquet"))


class Case:
    def __init__(self, seed, number):
        rng = random.Random(seed << 40 | number)
        self.number, self.rng = number, rng
        self.seq_len = rng.choice((8, 60, 500, 4000))
        self.top = rng.choice((300, 65_536, 2**31))
        self.dtype = "uint16" if self.top <= 65_536 and rng.random() < 0.5 else "int32"
        self.files = rng.choice((1, 1, 3))
        self.old_masks = rng.random() < 0.3  # Bridge has two kinds; see fill_packing_strategy
        self.by_bridge = rng.random() < 0.6
        self.row_group_size = rng.choice((1, 3, 500))
        self.spec = rng.choice(("folder", "pattern", "files"))

    def item(self):
        """A conversation as Bridge's datasets tokenize it."""
        rng = self.rng
        ids = [rng.randrange(self.top) for _ in range(rng.randint(2, self.seq_len + 1))]
        if self.old_masks:
            return {"input_ids": ids, "answer_start_idx": rng.randrange(len(ids))}
        return {"input_ids": ids, "loss_mask": [rng.random() < 0.6 for _ in ids]}

    def rows(self, bridge, numpy):
        items = [self.item() for _ in range(self.rng.choice((1, 3, 40)))]
        sequences, histogram = bridge.algorithms.create_hist(items, self.seq_len)
        numpy.random.seed(self.rng.randrange(2**32))
        algorithm = self.rng.choice(("first_fit_shuffle", "first_fit_decreasing"))
        assignments, _ = bridge.algorithms.create_packing_strategy(histogram, self.seq_len, algorithm)
        return bridge.algorithms.fill_packing_strategy(assignments, sequences, self.seq_len, 0)

    def write(self, rows, path, bridge, pyarrow, parquet):
        if self.by_bridge:
            bridge.parquet.write_packed_parquet(rows, path, row_group_size=self.row_group_size)
            return
        rng = self.rng
        large = rng.random() < 0.3
        kinds = {"input_ids": rng.choice((pyarrow.int32(), pyarrow.int64(), pyarrow.uint32())),
                 "loss_mask": rng.choice((pyarrow.int8(), pyarrow.uint8(), pyarrow.int64())),
                 "seq_start_id": rng.choice((pyarrow.int32(), pyarrow.int64()))}
        names = list(COLUMNS)
        rng.shuffle(names)
        table = pyarrow.table({name: pyarrow.array(
            [[int(value) for value in row[name]] for row in rows],
            type=(pyarrow.large_list if large else pyarrow.list_)(kinds[name])) for name in names})
        parquet.write_table(table, path, row_group_size=self.row_group_size, use_dictionary=rng.random() < 0.5,
                            compression=rng.choice(("none", "gzip", "zstd")), data_page_size=rng.choice((100, 1 << 20)),
                            data_page_version=rng.choice(("1.0", "2.0")))


def expected(bridge, path, seq_len):
    """Tokens and masks of all sequences, from the batches that Bridge's dataset collates, one row at a time."""
    dataset = bridge.parquet.GPTSFTPackedParquetDataset(path, types.SimpleNamespace(eos_id=EOS))
    dataset.__dict__.update(answer_only_loss=True, pad_to_max_length=True, max_seq_length=seq_len)
    found = []
    for i in range(len(dataset)):
        row = dataset[i]
        batch = dataset.collate_fn([row])
        ends = batch["cu_seqlens_q"][0].tolist()
        for begin, end in zip(ends, ends[1:len(row["seq_boundaries"])]):
            tokens, labels, loss = (batch[key][0, begin:end].tolist() for key in ("tokens", "labels", "loss_mask"))
            if tokens[1:] != labels[:-1]:
                raise ValueError("a sequence of Bridge has other labels than its next tokens")
            found.append((tokens + labels[-1:], [0] + loss))
    dataset.close()
    return found, len(dataset)


def read_dataset(prefix, numpy):
    """The documents and masks of a dataset, read as formats/spec says."""
    idx = (prefix.parent / f"{prefix.name}.idx").read_bytes()
    code, sequences, ends = struct.unpack_from("<BQQ", idx, 17)
    lengths = numpy.frombuffer(idx, numpy.int32, sequences, 34)
    document_index = numpy.frombuffer(idx, numpy.int64, ends, 34 + 12 * sequences).tolist()
    tokens = numpy.fromfile(f"{prefix}.bin", {4: numpy.int32, 8: numpy.uint16}[code])
    mask = pathlib.Path(f"{prefix}.mask").read_bytes()
    bits = numpy.unpackbits(numpy.frombuffer(mask, numpy.uint8, -(-len(tokens) // 8), 32), bitorder="little")
    starts = numpy.concatenate([[0], numpy.cumsum(lengths, dtype=numpy.int64)])[document_index].tolist()
    return [(tokens[a:b].tolist(), bits[a:b].tolist()) for a, b in zip(starts, starts[1:])]


def fault_of(case, program, folder, bridge, numpy, pyarrow, parquet, counts):
    rows_folder = folder / "packed"
    rows_folder.mkdir()
    paths = []
    for i in range(case.files):
        paths.append(rows_folder / f"shard_{i}{case.rng.choice(('.idx.parquet', '.parquet', '.pq'))}")
        case.write(case.rows(bridge, numpy), paths[-1], bridge, pyarrow, parquet)
    pattern = str(rows_folder / "shard_*")
    inputs = {"folder": [rows_folder], "pattern": [pattern], "files": paths}[case.spec]
    wanted, row_count = expected(bridge, pattern, case.seq_len)
    command = [program, "convert", *map(str, inputs), "--output-dtype", case.dtype, "--output-prefix", folder / "out", "--json"]
    if len(wanted) != row_count:
        refused = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if refused.returncode != 1 or f"into which {len(wanted)} sequences are packed" not in refused.stderr:
            return f"without --lossy: {refused.stderr}"
        command.append("--lossy")
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        return done.stderr
    said = json.loads(done.stdout)
    if (said["documents"], said["rows"], said["dtype"]) != (len(wanted), row_count, case.dtype):
        return f"says {said['documents']} documents of {said['rows']} rows of {said['dtype']}"
    found = read_dataset(folder / "out", numpy)
    if len(found) != len(wanted):
        return f"{len(found)} documents, expected {len(wanted)}"
    for i, (ours, theirs) in enumerate(zip(found, wanted)):
        if ours != theirs:
            return f"document {i} is {ours}, expected {theirs}"
    verified = subprocess.run([program, "verify", folder / "out"], capture_output=True, encoding="utf-8", check=False)
    if verified.returncode:
        return f"verify: {verified.stderr}"
    counts["files"] += case.files
    counts["rows"] += row_count
    counts["documents"] += len(wanted)
    counts["tokens"] += sum(len(tokens) for tokens, _ in wanted)
    counts["trained tokens"] += sum(sum(mask) for _, mask in wanted)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="path of inspect_dataset")
    parser.add_argument("--bridge", required=True, help="the folder that has megatron/bridge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    try:
        import numpy
        import pyarrow
        import pyarrow.parquet as parquet
        import torch  # noqa: F401  Bridge's dataset needs it
    except ImportError as error:
        print(f"skipped: needs numpy, pyarrow and torch (scripts/setup --references): {error}")
        return 77
    bridge = load_bridge(options.bridge)
    logging.disable(logging.WARNING)
    print(f"seed {options.seed}, cases {options.first} to {options.first + options.cases - 1}", flush=True)
    counts = collections.Counter()
    for number in range(options.first, options.first + options.cases):
        with tempfile.TemporaryDirectory() as folder:
            fault = fault_of(Case(options.seed, number), options.program, pathlib.Path(folder), bridge, numpy, pyarrow,
                             parquet, counts)
        if fault:
            print(f"case {number}: {fault}")
            print(f"repeat it with: --seed {options.seed} --first {number} --cases 1")
            return 1
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    print("no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
