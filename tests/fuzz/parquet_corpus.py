#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of parquet_fuzz: small files of every encoding, codec and shape. Needs pyarrow.

    parquet_corpus.py tests/fuzz/corpus/parquet
"""

import datetime
import decimal
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

TEXTS = ["one", None, "two\n\"lines\"", "", "one", "one more", "漢字", "one more time"] * 3
NUMBERS = [1, 2, None, -5, 2**31 - 1, 7, 7, 7] * 3
LISTS = [[1, 2], [], None, [3, None], [4] * 9, [5]]
flat = pa.table({"text": TEXTS})


def write(name, table, **options):
    pq.write_table(table, folder / name, store_schema=False, write_statistics=options.pop("write_statistics", False),
                   **options)


for codec in ("NONE", "ZSTD", "SNAPPY", "GZIP", "BROTLI", "LZ4"):
    for version in ("1.0", "2.0"):
        write(f"codec_{codec.lower()}_{version[0]}", flat, compression=codec, data_page_version=version,
              write_page_checksum=codec in ("ZSTD", "NONE"))
for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
    write(f"text_{encoding.lower()}", flat, use_dictionary=False, column_encoding={"text": encoding},
          compression="NONE", data_page_size=20, write_batch_size=4)
for encoding in ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"):
    for kind in (pa.int32(), pa.int64(), pa.uint8()):
        numbers = [n if n is None else n % 200 for n in NUMBERS] if kind == pa.uint8() else NUMBERS
        write(f"{kind}_{encoding.lower()}", pa.table({"n": pa.array(numbers, kind)}), use_dictionary=False,
              column_encoding={"n": encoding}, compression="NONE")
for encoding in ("PLAIN", "BYTE_STREAM_SPLIT"):
    for kind in (pa.float32(), pa.float64()):
        write(f"{kind}_{encoding.lower()}", pa.table({"x": pa.array([1.5, None, float("nan"), -0.0], kind)}),
              use_dictionary=False, column_encoding={"x": encoding}, compression="NONE")
for encoding in ("PLAIN", "RLE"):
    write(f"bool_{encoding.lower()}", pa.table({"b": [True, False, None, True, True] * 5}), use_dictionary=False,
          column_encoding={"b": encoding}, compression="NONE", data_page_version="2.0")
nested = {
    "list": pa.array(LISTS, pa.list_(pa.int32())),
    "lists": pa.array([[[1], []], None, [None, [2, 3]], [], [[4]], [[], [5]]], pa.list_(pa.list_(pa.int8()))),
    "messages": pa.array([[{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}], [], None,
                          [{"role": "user", "content": "bye"}, None], [], [{"role": None, "content": "x"}]]),
    "struct": pa.array([{"a": "x", "b": {"c": 1}}, None, {"a": None, "b": None}] * 2),
}
for name, values in nested.items():
    for version in ("1.0", "2.0"):
        write(f"nested_{name}_{version[0]}", pa.table({name: values}), compression="NONE", data_page_version=version,
              data_page_size=8, write_batch_size=2, use_dictionary=version == "1.0")
write("nested_all", pa.table(nested), compression="ZSTD", row_group_size=4)
write("nested_legacy", pa.table({"list": nested["list"]}), use_compliant_nested_type=False, compression="NONE")
write("required", pa.table({"n": NUMBERS[:2]}, schema=pa.schema([pa.field("n", pa.int64(), False)])))
write("empty", flat.slice(0, 0))
write("statistics", flat, write_statistics=True, data_page_size=16, write_batch_size=4, use_dictionary=False)
write("many_pages", pa.table({"text": ["some text %d" % i for i in range(60)]}), data_page_size=30,
      write_batch_size=3, use_dictionary=False, row_group_size=40, compression="NONE")
write("refused", pa.table({
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
    "time": [datetime.datetime(2020, 1, 1)],
    "date": [datetime.date(2020, 1, 1)],
    "decimal": [decimal.Decimal("1.5")],
    "fixed": pa.array([b"abcd"], pa.binary(4)),
    "half": pa.array([1.5], pa.float16()),
    "text": ["read"],
}))
write("int96", pa.table({"time": [datetime.datetime(2020, 1, 1)]}), use_deprecated_int96_timestamps=True)
