#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder with numpy itself (made with numpy 2.4.6).

    generate.py           writes them again
    generate.py --check   fails if numpy would now write other bytes

NAME.npy     what numpy.save makes of an array, named by dtype and shape. Element k holds
             (k + 1) * 0x9E3779B97F4A7C15, cut to its width; floats (k - 2) * 1.5; bools k odd.
headers.tsv  header texts, one per line: numpy's verdict on it (descr, order, shape; or refused), ours
             ("same", or "refused" for what is left to numpy, or is not), and the text.
"""
import io
import pathlib
import struct
import sys

import numpy as np
from numpy.lib import format as npy_format

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
SHAPES = [(), (3,), (3, 2)]
# numpy pads the header with 1 to 64 spaces to a multiple of 64. The shapes with 14 sizes leave 2, 1
# and 64 spaces.
MORE_SHAPES = [(0,), (1,), (0, 2), (2, 3, 4), (10**12, 0), (0, 12345678901), (1,) * 32,
               (0,) + (1,) * 13, (0, 10) + (1,) * 12, (0, 100) + (1,) * 12, (0,) + (1,) * 63]
HEADERS = [
    # Headers as numpy writes them, and as other programs do.
    ("same", "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }"),
    ("same", "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2)}"),
    ("same", "{'shape': (3, 2), 'descr': '<i4', 'fortran_order': False}"),
    ("same", '{"descr":"<u8","fortran_order":False,"shape":(7,)}'),
    ("same", "{  'descr'  :  '<u8'  ,'fortran_order':False ,  'shape' : ( 7 , ) }   "),
    ("same", "{'descr': '<f8', 'fortran_order': False, 'shape': ()}"),
    ("same", "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 3,)}"),
    ("same", "{'descr': '|u1', 'fortran_order': False, 'shape': (0,)}"),
    ("same", "{'descr': '<u1', 'fortran_order': False, 'shape': (0,)}"),
    ("same", "{'descr': '>u1', 'fortran_order': False, 'shape': (0,)}"),
    ("same", "{'descr': '=i4', 'fortran_order': False, 'shape': (5,)}"),
    ("same", "{'descr': '|i4', 'fortran_order': False, 'shape': (5,)}"),
    ("same", "{'descr': 'i4', 'fortran_order': False, 'shape': (5,)}"),
    ("same", "{'descr': '|b1', 'fortran_order': False, 'shape': (5,)}"),
    ("same", "{'descr': '<i8', 'fortran_order': True, 'shape': (5,)}"),
    ("same", "{'descr': '<i8', 'fortran_order': True, 'shape': ()}"),
    # Valid, but only numpy reads them.
    ("refused", "{'descr': '<i8', 'fortran_order': True, 'shape': (5, 2)}"),
    ("refused", "{'descr': '>i4', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '|O', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '<c8', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '<f2', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '<f16', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '<U4', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '|S4', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': ('<i4', (2,)), 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': 'int32', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '?', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (5L,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (0x5,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (1_0,)}"),
    ("refused", "{'descr': '<i4', 'descr': '<i8', 'fortran_order': False, 'shape': (5,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (9223372036854775808,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}"),
    # Invalid.
    ("refused", ""),
    ("refused", "{}"),
    ("refused", "{,}"),
    ("refused", "[]"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': [3]}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': 3}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3 2)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (03,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3.0,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,),,}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False 'shape': (3,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape' (3,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': 0, 'shape': (3,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': false, 'shape': (3,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False}"),
    ("refused", "{'descr': '<i4', 'shape': (3,)}"),
    ("refused", "{'fortran_order': False, 'shape': (3,)}"),
    ("refused", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'more': 1}"),
    ("refused", "{'descr': '<i4, 'fortran_order': False, 'shape': (3,)}"),
    ("refused", "{'descr': \"<i4', 'fortran_order': False, 'shape': (3,)}"),
    ("refused", "{'descr': '', 'fortran_order': False, 'shape': (3,)}"),
    ("refused", "{'descr': '<', 'fortran_order': False, 'shape': (3,)}"),
    ("refused", "{'descr': '<i3', 'fortran_order': False, 'shape': (3,)}"),
    ("refused", "{'descr': '<<i4', 'fortran_order': False, 'shape': (3,)}"),
    ("refused", "{'descr': None, 'fortran_order': False, 'shape': (3,)}"),
]


def array(dtype, shape):
    count = int(np.prod(shape, dtype=object))
    if dtype == "b1":
        values = [k % 2 == 1 for k in range(count)]
    elif dtype[0] == "f":
        values = [(k - 2) * 1.5 for k in range(count)]
    else:
        words = b"".join(struct.pack("<Q", (k + 1) * 0x9E3779B97F4A7C15 % 2**64)[: int(dtype[1])]
                         for k in range(count))
        return np.frombuffer(words, "<" + dtype).reshape(shape)
    return np.array(values, "<" + dtype).reshape(shape)


def verdict(text):
    raw = text.encode("latin1")
    try:
        shape, fortran, dtype = npy_format.read_array_header_1_0(
            io.BytesIO(struct.pack("<H", len(raw)) + raw))
    except Exception:  # numpy raises exceptions of several types
        return "refused"
    sizes = ",".join(str(size) for size in shape) or "scalar"
    return f"{dtype.str} {'F' if fortran else 'C'} {sizes}".replace("\t", " ")


def files():
    for dtype, shape in [(d, s) for d in DTYPES for s in SHAPES] + [("i4", s) for s in MORE_SHAPES]:
        out = io.BytesIO()
        np.save(out, array(dtype, shape))
        name = "x".join(str(size) for size in shape) or "scalar"
        if len(shape) > 4:
            name = f"{shape[0]}x{shape[1]}_rank{len(shape)}"
        yield f"{dtype}_{name}.npy", out.getvalue()
    lines = [f"{verdict(text)}\t{ours}\t{text}\n" for ours, text in HEADERS]
    yield "headers.tsv", "".join(lines).encode()


def main():
    different = []
    for name, data in files():
        path = HERE / name
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_bytes() != data:
                different.append(name)
        else:
            path.write_bytes(data)
    if different:
        sys.exit("numpy now writes other bytes: " + " ".join(different))


if __name__ == "__main__":
    main()
