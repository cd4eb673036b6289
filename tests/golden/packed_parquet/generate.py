#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder from the specification, formats/spec/packed_parquet.md.

    generate.py           writes the files again
    generate.py --check   fails if it would now write other bytes

two_rows.idx.parquet  the example of the specification: one row group with one page per column
groups.idx.parquet    five rows in row groups of two rows, with pages of at least 40 bytes
empty.idx.parquet     no rows

errors/ has files that break the rules for rows in one place each. Their names say where.
"""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
TWO_ROWS = [([5, 6, 7, 2], [0, 1, 1, 0], [0]), ([300, 2, 8, 9, 2], [1, 0, 0, 1, 0], [0, 2])]
# The third row has more than 64 ids, so that its mask has more than one word; the last page of ids is short.
GROUPS = [([1], [1], [0]), ([2**31 - 1, 0, 70000], [1, 0, 1], [0, 0, 2]),
          (list(range(100)), [i % 3 % 2 for i in range(100)], list(range(0, 100, 7))), ([4, 4], [0, 0], [0]),
          ([9, 8, 7, 6, 5, 4, 3, 2], [1] * 8, [0, 7])]
GOOD = ([5, 6, 7], [1, 1, 0], [0, 2])
# A list that is None is null.
BAD_ROWS = {"mask_is_short": ([5, 6, 7], [1, 1], [0, 2]), "mask_is_long": ([5, 6, 7], [1, 1, 0, 1], [0, 2]),
            "starts_at_one": ([5, 6, 7], [1, 1, 0], [1, 2]), "starts_fall": ([5, 6, 7], [1, 1, 0], [0, 2, 1]),
            "starts_after_the_end": ([5, 6, 7], [1, 1, 0], [0, 3]), "negative_id": ([5, -6, 7], [1, 1, 0], [0, 2]),
            "null_ids": (None, [1, 1, 0], [0, 2]), "null_mask": ([5, 6, 7], None, [0, 2]),
            "null_starts": ([5, 6, 7], [1, 1, 0], None)}


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def zigzag(value):
    return varint(2 * value if value >= 0 else -2 * value - 1)


# A value in Thrift's compact protocol: (type, encoded). The fields of a struct are given by their numbers.
def i8(value):
    return 3, struct.pack("b", value)


def i32(value):
    return 5, zigzag(value)


def i64(value):
    return 6, zigzag(value)


def text(value):
    return 8, varint(len(value)) + value.encode()


TRUE = 1, b""


def thrift_list(type_, values):
    head = bytes([len(values) * 16 + type_]) if len(values) < 15 else bytes([0xF0 + type_]) + varint(len(values))
    return 9, head + b"".join(encoded for _, encoded in values)


def thrift_struct(**fields):
    out, last = b"", 0
    for name, (type_, encoded) in fields.items():
        number = int(name[1:])
        out += bytes([(number - last) * 16 + type_]) + encoded
        last = number
    return 12, out + b"\0"


def run(count, level):
    return varint(2 * count) + bytes([level])


def sized(levels):
    return struct.pack("<I", len(levels)) + levels


class Column:
    def __init__(self, name, is_mask):
        self.name, self.is_mask = name, is_mask
        self.lists, self.pages = [], []
        self.elements = self.data_at = 0

    def runs(self):
        return b"".join(run(1, 0) + (run(len(one) - 1, 1) if one and len(one) > 1 else b"") for one in self.lists)

    def definitions(self):
        """One run, unless a list is null."""
        if None not in self.lists:
            return run(sum(map(len, self.lists)), 3)
        return b"".join(run(1, 0) if one is None else run(len(one), 3) for one in self.lists)

    def values(self):
        flat = [value for one in self.lists for value in one or []]
        if not self.is_mask:
            return struct.pack(f"<{len(flat)}i", *flat)
        bits = sum(bit << i for i, bit in enumerate(flat))
        return bits.to_bytes((len(flat) + 7) // 8, "little")

    def is_full(self, page_bytes):
        return len(self.runs()) + len(self.values()) >= page_bytes

    def put(self, kind, field, header, body):
        head = thrift_struct(f1=i32(kind), f2=i32(len(body)), f3=i32(len(body)), **{field: header})
        self.pages.append(head[1] + body)

    def end_page(self):
        if not self.lists:
            return
        if self.is_mask and not self.pages:
            self.put(2, "f7", thrift_struct(f1=i32(2), f2=i32(0)), struct.pack("<2i", 0, 1))
            self.data_at = len(self.pages[0])
        count = sum(1 if one is None else len(one) for one in self.lists)
        body, values = sized(self.runs()) + sized(self.definitions()), self.values()
        body += b"\x01" + varint(2 * len(values) + 1) + values if self.is_mask else values
        header = thrift_struct(f1=i32(count), f2=i32(8 if self.is_mask else 0), f3=i32(3), f4=i32(3))
        self.put(0, "f5", header, body)
        self.elements += count
        self.lists = []

    def chunk(self, begin):
        size = len(b"".join(self.pages))
        encodings = [0, 3, 8] if self.is_mask else [0, 3]
        dictionary = {"f11": i64(begin)} if self.is_mask else {}
        metadata = thrift_struct(
            f1=i32(1), f2=thrift_list(5, [i32(e) for e in encodings]),
            f3=thrift_list(8, [text(self.name), text("list"), text("element")]), f4=i32(0), f5=i64(self.elements),
            f6=i64(size), f7=i64(size), f9=i64(begin + self.data_at), **dictionary)
        return thrift_struct(f2=i64(0), f3=metadata)

    def schema(self):
        element = {"f6": i32(15), "f10": thrift_struct(f10=thrift_struct(f1=i8(8), f2=TRUE))} if self.is_mask else {}
        return [thrift_struct(f3=i32(1), f4=text(self.name), f5=i32(1), f6=i32(3),
                              f10=thrift_struct(f3=thrift_struct())),
                thrift_struct(f3=i32(2), f4=text("list"), f5=i32(1)),
                thrift_struct(f1=i32(1), f3=i32(1), f4=text("element"), **element)]


class FlatColumn(Column):
    """One required integer per row."""

    def end_page(self):
        self.put(0, "f5", thrift_struct(f1=i32(len(self.lists)), f2=i32(0), f3=i32(3), f4=i32(3)),
                 struct.pack(f"<{len(self.lists)}i", *self.lists))
        self.elements = len(self.lists)

    def is_full(self, page_bytes):
        return False

    def chunk(self, begin):
        size = len(self.pages[0])
        return thrift_struct(f2=i64(0), f3=thrift_struct(
            f1=i32(1), f2=thrift_list(5, [i32(0)]), f3=thrift_list(8, [text(self.name)]), f4=i32(0), f5=i64(self.elements),
            f6=i64(size), f7=i64(size), f9=i64(begin)))

    def schema(self):
        return [thrift_struct(f1=i32(1), f3=i32(0), f4=text(self.name))]


def packed_columns():
    return [Column("input_ids", False), Column("loss_mask", True), Column("seq_start_id", False)]


def encode(rows, row_group_rows=500, page_bytes=1 << 20, new_columns=packed_columns):
    out, groups = b"PAR1", []
    for first in range(0, len(rows), row_group_rows):
        group, columns, begin = rows[first:first + row_group_rows], new_columns(), len(out)
        for row in group:
            for column, values in zip(columns, row, strict=True):
                column.lists.append(values)
                if column.is_full(page_bytes):
                    column.end_page()
        chunks = []
        for column in columns:
            column.end_page()
            chunks.append(column.chunk(len(out)))
            out += b"".join(column.pages)
        groups.append(thrift_struct(f1=thrift_list(12, chunks), f2=i64(len(out) - begin), f3=i64(len(group)),
                                    f5=i64(begin), f6=i64(len(out) - begin)))
    schema = [thrift_struct(f4=text("schema"), f5=i32(len(new_columns())))]
    for column in new_columns():
        schema += column.schema()
    footer = thrift_struct(f1=i32(2), f2=thrift_list(12, schema), f3=i64(len(rows)), f4=thrift_list(12, groups),
                           f6=text("millrace"))[1]
    return out + footer + struct.pack("<I", len(footer)) + b"PAR1"


def bad_files():
    for name, row in BAD_ROWS.items():
        yield name, encode([GOOD, row])
    for i, column in enumerate(packed_columns()):
        others = [k for k in range(3) if k != i]
        yield f"no_{column.name}", encode([[GOOD[k] for k in others]],
                                          new_columns=lambda: [packed_columns()[k] for k in others])
    yield "ids_are_no_lists", encode([(5, [1], [0])],
                                     new_columns=lambda: [FlatColumn("input_ids", False), *packed_columns()[1:]])
    yield "more_columns", encode([(*GOOD, 8)], new_columns=lambda: [*packed_columns(), FlatColumn("source", False)])


def main():
    files = {"two_rows": encode(TWO_ROWS), "groups": encode(GROUPS, 2, 40), "empty": encode([])}
    files |= {f"errors/{name}": data for name, data in bad_files()}
    wrong = []
    for name, data in files.items():
        path = HERE / f"{name}.idx.parquet"
        if "--check" not in sys.argv:
            path.write_bytes(data)
        elif path.read_bytes() != data:
            wrong.append(path.name)
    sys.exit(f"other bytes: {' '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
