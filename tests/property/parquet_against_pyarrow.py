#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random tables as Parquet files with pyarrow, and compares what parquet_rows reads with the tables.

    parquet_against_pyarrow.py --driver build/bin/parquet_rows [--seed N] [--files N] [--first N]

Schemas, values, encodings, codecs and sizes of pages are random. Each line must give the row of to_pylist, and reading
in pieces must give the same lines. The files are not compared with what pyarrow reads, because pyarrow 26 was seen to
find no rows in one of its own files, for a reason that is not known. Exits 1 at the first difference, keeps the file and
prints the arguments that repeat it; exits 77 if pyarrow is not there.
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import string
import struct
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    print("skipped: this Python has no pyarrow (scripts/setup --references)")
    sys.exit(77)

CODECS = ("NONE", "ZSTD", "SNAPPY", "GZIP", "BROTLI", "LZ4")
INTEGERS = {pa.int8(): (8, True), pa.int16(): (16, True), pa.int32(): (32, True), pa.int64(): (64, True),
            pa.uint8(): (8, False), pa.uint16(): (16, False), pa.uint32(): (32, False), pa.uint64(): (64, False)}
ALPHABETS = (string.ascii_letters + " ", 'ab"\\\n\t\r\b\f\x00\x1f\x7f/', "aé漢🙂 \u2028", "x")


def field_of(name, kind, nullable):
    return pa.field(name, kind, nullable or kind == pa.null())


def random_type(rng, depth):
    kind = rng.random()
    if depth > 0 and kind < 0.15:
        return pa.list_(field_of(rng.choice(("item", "element")), random_type(rng, depth - 1), rng.random() < 0.7))
    if depth > 0 and kind < 0.3:
        return pa.struct([field_of(name, random_type(rng, depth - 1), rng.random() < 0.7)
                          for name in rng.sample(("a", "b", 'k"ey', "naïve", "list", "x"), rng.randint(1, 3))])
    if kind < 0.6:
        return rng.choice((pa.string(), pa.string(), pa.binary(), pa.large_string()))
    if kind < 0.8:
        return rng.choice(list(INTEGERS))
    return rng.choice((pa.float32(), pa.float64(), pa.bool_(), pa.null()))


class value_maker:
    """Random values, some of them frequent, so that dictionaries and runs occur."""

    def __init__(self, rng):
        self.rng = rng
        self.nulls = rng.choice((0, 0.05, 0.5, 0.95, 1))
        self.repeat = rng.choice((0, 0.5, 0.97))
        self.longest = rng.choice((3, 20, 20, 200, 3000))
        self.alphabet = rng.choice(ALPHABETS)
        self.most_elements = rng.choice((1, 3, 3, 40))
        self.known = {}
        self.last_text = ""

    def text(self):
        rng = self.rng
        size = min(rng.randint(0, self.longest), int(rng.expovariate(1 / 30)) if rng.random() < 0.9 else self.longest)
        shared = self.last_text[:rng.randint(0, len(self.last_text))] if rng.random() < 0.3 else ""
        self.last_text = (shared + "".join(rng.choices(self.alphabet, k=size)))[:5000]
        return self.last_text

    def number(self, kind):
        rng = self.rng
        bits, signed = INTEGERS[kind]
        low, high = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        choice = rng.random()
        if choice < 0.1:
            return rng.choice((low, high))
        if choice < 0.5:
            return max(low, min(high, rng.randint(-5, 100)))
        return rng.randint(low, high)

    def floating(self, kind):
        rng = self.rng
        choice = rng.random()
        if choice < 0.15:
            return rng.choice((math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 1e22, 123456789012345680.0, 1e-7, 5e-324))
        if choice < 0.5:
            return rng.choice((rng.uniform(-10, 10), float(rng.randint(-1000, 1000)), rng.randint(0, 99) / 10))
        if kind == pa.float32():
            return struct.unpack("<f", rng.randbytes(4))[0]
        return struct.unpack("<d", rng.randbytes(8))[0]

    def make(self, kind, nullable):
        rng = self.rng
        if kind == pa.null():
            return None
        if nullable and rng.random() < self.nulls:
            return None
        if pa.types.is_struct(kind):
            return {field.name: self.make(field.type, field.nullable) for field in kind}
        if pa.types.is_list(kind):
            size = 0 if rng.random() < 0.3 else rng.randint(0, self.most_elements)
            return [self.make(kind.value_type, kind.value_field.nullable) for _ in range(size)]
        known = self.known.setdefault(kind, [])
        if known and rng.random() < self.repeat:
            return rng.choice(known)
        if pa.types.is_boolean(kind):
            value = rng.random() < 0.5
        elif kind in INTEGERS:
            value = self.number(kind)
        elif pa.types.is_floating(kind):
            value = self.floating(kind)
        elif pa.types.is_binary(kind):
            value = self.text().encode()
        else:
            value = self.text()
        if len(known) < 20:
            known.append(value)
        return value


def leaves(path, kind):
    """Paths of the leaves as pyarrow's column_encoding names them, with their types."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(kind):
        yield from leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def encodings_of(kind):
    if kind in INTEGERS:
        return "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
    if pa.types.is_floating(kind):
        return "PLAIN", "BYTE_STREAM_SPLIT"
    if pa.types.is_boolean(kind):
        return "PLAIN", "RLE"
    if kind == pa.null():
        return ("PLAIN",)
    return "PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"


def write_file(rng, path):
    depth = rng.choice((0, 0, 1, 2, 3))
    fields = [field_of(name, random_type(rng, depth), rng.random() < 0.75)
              for name in rng.sample(("text", "id", "meta", "tags", "score", "été"),
                                     rng.choice((1, 1, 2, 3)))]
    rows = rng.choice((0, 1, 2, 9, rng.randint(0, 60), rng.randint(0, 300), rng.randint(0, 3000)))
    if depth > 1:
        rows = min(rows, 300)
    columns = []
    for field in fields:
        maker = value_maker(rng)
        if maker.longest == 3000:
            rows = min(rows, 400)
        columns.append((field, maker))
    schema = pa.schema(fields)
    arrays = [pa.array([maker.make(field.type, field.nullable) for _ in range(rows)], field.type)
              for field, maker in columns]
    table = pa.Table.from_arrays(arrays, schema=schema)
    all_leaves = [leaf for field in fields for leaf in leaves(field.name, field.type)]
    use_dictionary = rng.random() < 0.5
    encoding = None
    if not use_dictionary and rng.random() < 0.8:
        encoding = {name: rng.choice(encodings_of(kind)) for name, kind in all_leaves}
    options = {
        "compression": rng.choice(CODECS),
        "use_dictionary": use_dictionary,
        "column_encoding": encoding,
        "data_page_version": rng.choice(("1.0", "2.0")),
        "data_page_size": rng.choice((1, 50, 500, 5000, 1 << 20)),
        "dictionary_pagesize_limit": rng.choice((1, 100, 1 << 20)),
        "write_batch_size": rng.choice((1, 3, 17, 1024)),
        "row_group_size": rng.choice((1 + rows // 3, max(1, rows), 1 << 20)),
        "write_page_checksum": rng.random() < 0.5,
        "write_statistics": rng.random() < 0.5,
        "version": rng.choice(("1.0", "2.4", "2.6")),
        "use_compliant_nested_type": rng.random() < 0.8,
    }
    if not options["use_compliant_nested_type"] and encoding:
        options["column_encoding"] = None
    pq.write_table(table, path, **options)
    # Which columns are read: all, or some of the fields.
    chosen = []
    for field in fields:
        names = [] if not pa.types.is_struct(field.type) else [f.name for f in field.type]
        if names and rng.random() < 0.4:
            chosen += [(field.name, name) for name in rng.sample(names, rng.randint(1, len(names)))]
        elif len(fields) == 1 or rng.random() < 0.8:
            chosen.append((field.name,))
    return table, chosen or [(fields[0].name,)], options


def keep(row, chosen):
    """The selected part of a row, with bytes as text."""
    out = {}
    for name, value in row.items():
        fields = {path[1] for path in chosen if path[0] == name and len(path) > 1}
        if (name,) in chosen:
            out[name] = as_json(value)
        elif fields:
            out[name] = None if value is None else {k: as_json(v) for k, v in value.items() if k in fields}
    return out


def as_json(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {k: as_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [as_json(v) for v in value]
    return value


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def read_with(driver, path, chosen):
    driver.stdin.write("\t".join([str(path)] + [".".join(names) for names in chosen]).encode() + b"\n")
    driver.stdin.flush()
    head = driver.stdout.readline().decode()
    if not head or head.startswith("error"):
        return None, head or "the driver ended"
    lines, size = map(int, head.split())
    text = driver.stdout.read(size).decode()
    rows = text.split("\n")
    assert rows.pop() == "" and len(rows) == lines, (len(rows), lines)
    return [json.loads(row) for row in rows], ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    driver = subprocess.Popen([arguments.driver, "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    total_rows = 0
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        path = pathlib.Path(folder) / "file.parquet"
        for number in range(arguments.first, arguments.first + arguments.files):
            rng = random.Random(f"{arguments.seed} {number}")
            table, chosen, options = write_file(rng, path)
            wanted = [keep(row, chosen) for row in table.to_pylist()]
            found, problem = read_with(driver, path, chosen)
            if found is not None and len(found) != len(wanted):
                problem = f"{len(found)} rows, expected {len(wanted)}"
            elif found is not None:
                for row, (a, b) in enumerate(zip(found, wanted)):
                    if not same(a, b):
                        problem = f"row {row}\n  is       {a!r:.500}\n  expected {b!r:.500}"
                        break
            if problem:
                kept = pathlib.Path("failed.parquet").absolute()
                shutil.copy(path, kept)
                print(f"{problem}\n{options}\n{chosen}\n{pq.ParquetFile(path).schema}\nthe file: {kept}\n"
                      f"repeat with: --seed {arguments.seed} --first {number} --files 1")
                sys.exit(1)
            total_rows += len(wanted)
    driver.stdin.close()
    print(f"{arguments.files} files, {total_rows} rows")
    sys.exit(driver.wait())


if __name__ == "__main__":
    main()
