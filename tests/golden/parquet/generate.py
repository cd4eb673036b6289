#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder with pyarrow 26.0.1: rows as JSON lines, and the same rows as Parquet.

    generate.py           writes the files again
    generate.py --check   fails if reading the Parquet files with pyarrow gives other rows than the JSON lines
"""
import json
import pathlib
import sys

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as problem:
    print(f"generate.py: {problem}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ["", "one", "two\nlines", 'a "quote" and a \\', "tab\tand \x01", "Grüße, 世界 🌍", "  spaces  "]
TURN = pa.struct([("role", pa.string()), ("content", pa.string())])


def texts():
    for i in range(40):
        yield {"id": i, "text": f"{TEXTS[i % len(TEXTS)]} {i}", "meta": {"url": f"https://example.org/{i}", "text": TEXTS[-i % 5]}}


def chats():
    for i in range(12):
        yield {"messages": [{"role": role, "content": f"{TEXTS[(i + j) % len(TEXTS)]} {j}"}
                            for j, role in enumerate(["user", "assistant"] * (1 + i % 3))],
               "score": i / 4}


CASES = {
    "texts": (texts, pa.schema([("id", pa.int64()), ("text", pa.string()),
                                ("meta", pa.struct([("url", pa.string()), ("text", pa.large_string())]))]),
              {"row_group_size": 15, "compression": "zstd"}),
    "chats": (chats, pa.schema([("messages", pa.list_(TURN)), ("score", pa.float64())]),
              {"row_group_size": 5, "compression": "zstd", "data_page_version": "2.0"}),
}


def main():
    for name, (rows, schema, options) in CASES.items():
        rows = list(rows())
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        table, text = HERE / f"{name}.parquet", HERE / f"{name}.jsonl"
        if sys.argv[1:] == ["--check"]:
            assert text.read_text() == lines and pq.read_table(table).to_pylist() == rows, name
        else:
            text.write_text(lines)
            pq.write_table(pa.Table.from_pylist(rows, schema), table, **options)


if __name__ == "__main__":
    main()
