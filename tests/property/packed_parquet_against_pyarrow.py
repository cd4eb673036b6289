#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random files of packed rows, and compares them with what pyarrow and Megatron-Bridge read.

    packed_parquet_against_pyarrow.py --driver build/bin/packed_parquet_files --bridge FOLDER [--seed N] [--cases N]
                                      [--first N]

  --bridge  where megatron-bridge is: the folder that has `megatron`

A tenth of the rows breaks a rule. These rows, and no others, must be refused. pyarrow must find the schema, the row
groups and every value. Bridge's dataset must serve every row. Exits 1 at the first difference and prints the arguments
that repeat it; exits 77 if pyarrow or megatron-bridge is not there.
"""

import argparse
import collections
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import reference_files

BATCH = 50
COLUMNS = ("input_ids", "loss_mask", "seq_start_id")


class PackedDataset:
    """In place of Bridge's parent class, which needs torch: starts what GPTSFTPackedParquetDataset overrides."""

    def __init__(self, file_path, tokenizer, max_num_samples=None, **_):
        self.file_path, self.tokenizer, self.max_num_samples = file_path, tokenizer, max_num_samples
        self._load_dataset()
        self._build_samples_mapping()


def load_bridge(folder):
    """Bridge's class that reads packed rows."""
    storage = type("MultiStorageClientFeature", (), {"is_enabled": staticmethod(lambda: False)})
    return reference_files.load_module(
        folder, "megatron.bridge.data.packing.parquet", reference_files.BRIDGE,
        {"megatron.core.msc_utils": {"MultiStorageClientFeature": storage},
         "megatron.bridge.data.packing.gpt_sft": {"GPTSFTPackedDataset": PackedDataset}}).GPTSFTPackedParquetDataset


def good_row(rng, most):
    n = rng.choice((1, 2, 7, 8, 9, 63, 64, 65, rng.randint(1, most)))
    top = rng.choice((2, 1000, 2**31))
    ids = [rng.randrange(top) for _ in range(n)]
    if rng.random() < 0.1:
        ids[rng.randrange(n)] = rng.choice((0, 2**31 - 1, -1, -2**31))
    kind = rng.random()
    mask = [rng.randrange(2) for _ in range(n)] if kind < 0.5 else [int(kind < 0.75)] * n
    starts = [0] + sorted(rng.randrange(n) for _ in range(rng.choice((0, 0, 1, 5, rng.randrange(most // 4 + 1)))))
    return ids, mask, starts


def bad_row(rng, most):
    ids, mask, starts = good_row(rng, most)
    kind = rng.randrange(8)
    if kind == 0:
        ids, mask = [], []
    elif kind == 1:
        mask = mask[:-1]
    elif kind == 2:
        mask = mask + [0]
    elif kind == 3:
        mask = mask[:-1] + [rng.choice((2, 127, 255))]
    elif kind == 4:
        starts = starts[1:] if len(starts) == 1 or starts[1] != 0 else []
    elif kind == 5:
        starts = [rng.choice((1, -1))] + starts
    elif kind == 6:
        starts = starts + [len(ids) + rng.choice((0, 1, 1000))]
    else:
        starts = starts + [-1] if starts[-1] == 0 else starts + [starts[-1] - 1]
    return ids, mask, starts


class Case:
    def __init__(self, seed, number, folder):
        rng = random.Random(seed << 40 | number)
        self.number, self.path = number, folder / f"{number}.idx.parquet"
        self.row_group_rows = rng.choice((1, 2, 3, 7, 50, 500))
        self.row_group_elements = rng.choice((1, 100, 1000, 1 << 30, 1 << 30))
        self.page_bytes = rng.choice((1, 50, 1000, 20_000, 1 << 20))
        self.level = rng.choice((0, 0, 3, -5, 19))
        most = rng.choice((10, 100, 100, 3000))
        count = rng.choice((0, 1, 2, rng.randrange(20), rng.randrange(20), rng.randrange(700 if most < 200 else 40)))
        self.rows = [(bad_row if rng.random() < 0.1 else good_row)(rng, most) for _ in range(count)]

    def encoded(self):
        path = str(self.path).encode()
        parts = [struct.pack("<IIIIiI", len(path), self.row_group_rows, self.row_group_elements, self.page_bytes,
                             self.level, len(self.rows)), path]
        for ids, mask, starts in self.rows:
            parts.append(struct.pack(f"<3I{len(ids)}i{len(mask)}B{len(starts)}i", len(ids), len(mask), len(starts), *ids,
                                     *mask, *starts))
        return b"".join(parts)

    def groups(self, rows):
        """Sizes of the row groups, in rows."""
        sizes, elements = [], 0
        for ids, _, starts in rows:
            more = max(len(ids), len(starts))
            if not sizes or sizes[-1] == self.row_group_rows or elements + more > self.row_group_elements:
                sizes.append(0)
                elements = 0
            sizes[-1] += 1
            elements += more
        return sizes


def is_refused(bridge, row):
    ids, mask, starts = row
    try:
        bridge.validate_row(0, ids, mask, starts)
    except ValueError:
        return True
    return any(entry > 1 for entry in mask)  # Bridge does not look at these


def fault_of(case, refused, pq, schema, bridge):
    """What is wrong with the file of a case, or None."""
    wanted = [i for i, row in enumerate(case.rows) if is_refused(bridge, row)]
    if refused != wanted:
        return f"refused the rows {refused}, expected {wanted}"
    rows = [row for i, row in enumerate(case.rows) if i not in set(wanted)]
    with pq.ParquetFile(case.path) as file:
        metadata = file.metadata
        if not file.schema_arrow.equals(schema) or metadata.created_by != "millrace":
            return f"another schema: {file.schema_arrow}, created by {metadata.created_by}"
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if groups != case.groups(rows) or metadata.num_rows != len(rows):
            return f"row groups of {groups} rows, expected {case.groups(rows)}"
        codec = "ZSTD" if case.level else "UNCOMPRESSED"
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            chunks = [group.column(j) for j in range(3)]
            if any(chunk.compression != codec for chunk in chunks):
                return f"another codec in row group {i}, expected {codec}"
            if group.total_byte_size != sum(chunk.total_uncompressed_size for chunk in chunks):
                return f"another size of row group {i}"
        table = file.read()
        table.validate(full=True)
        for j, column in enumerate(COLUMNS):
            if table.column(column).to_pylist() != [row[j] for row in rows]:
                return f"other values in {column}"
    if not rows:
        return None
    dataset = bridge(str(case.path), tokenizer=None)
    if len(dataset) != len(rows):
        return f"Bridge finds {len(dataset)} rows, expected {len(rows)}"
    for i, (ids, mask, starts) in enumerate(rows):
        if dataset[i] != {"input_ids": ids, "seq_boundaries": starts + [len(ids)], "loss_mask": mask}:
            return f"Bridge reads another row {i}: {dataset[i]}"
    dataset.close()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--driver", required=True, help="path of packed_parquet_files")
    parser.add_argument("--bridge", required=True, help="the folder that has megatron/bridge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        print("skipped: needs pyarrow (scripts/setup --tokenizers)")
        return 77
    bridge = load_bridge(options.bridge)
    # Bridge documents these types.
    schema = pa.schema([(name, pa.list_(pa.field("element", pa.int8() if name == "loss_mask" else pa.int32())))
                        for name in COLUMNS])
    print(f"seed {options.seed}, cases {options.first} to {options.first + options.cases - 1}", flush=True)
    counts = collections.Counter()
    last = options.first + options.cases
    for first in range(options.first, last, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            cases = [Case(options.seed, i, pathlib.Path(folder)) for i in range(first, min(first + BATCH, last))]
            lines = subprocess.run([options.driver], input=b"".join(case.encoded() for case in cases),
                                   stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
            for case, line in zip(cases, lines, strict=True):
                refused = [int(word) for word in line.split()]
                try:
                    fault = fault_of(case, refused, pq, schema, bridge)
                except (pa.ArrowException, OSError) as error:
                    fault = f"pyarrow refuses the file: {error}"
                if fault:
                    print(f"case {case.number}: {fault}")
                    print(f"repeat it with: --seed {options.seed} --first {case.number} --cases 1")
                    return 1
                counts["files"] += 1
                counts["rows"] += len(case.rows) - len(refused)
                counts["refused rows"] += len(refused)
                counts["ids"] += sum(len(row[0]) for row in case.rows)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    if options.cases >= 100 and counts["refused rows"] == 0:
        print("no row was refused, so this proves too little")
        return 1
    print("no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
