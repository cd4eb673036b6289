# SPDX-License-Identifier: Apache-2.0
"""Datasets for the tests, written by the format's definition and not by millrace."""
import pathlib
import struct

import numpy as np
import pytest

CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float64": 6, "float32": 7, "uint16": 8}
ROOT = pathlib.Path(__file__).resolve().parents[3]


def write_dataset(prefix, documents, dtype="uint16"):
    """Writes PREFIX.bin and .idx: one sequence per document."""
    stream = np.concatenate([np.asarray(d, dtype) for d in documents]) if documents else np.zeros(0, dtype)
    stream.tofile(f"{prefix}.bin")
    lengths = np.array([len(d) for d in documents], np.int32)
    size = np.dtype(dtype).itemsize
    pointers = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64) * size])[:len(documents)]
    with open(f"{prefix}.idx", "wb") as idx:
        idx.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[dtype], len(documents), len(documents) + 1))
        lengths.astype("<i4").tofile(idx)
        np.asarray(pointers, "<i8").tofile(idx)
        np.arange(len(documents) + 1, dtype="<i8").tofile(idx)
    return str(prefix)


def random_documents(seed, count=60, longest=90, vocabulary=500, dtype="uint16"):
    """Documents of random ids from 1 on; each ends with id 0."""
    random = np.random.default_rng(seed)
    return [np.append(random.integers(1, vocabulary, random.integers(1, longest)), 0).astype(dtype)
            for _ in range(count)]


@pytest.fixture
def documents():
    return random_documents(7)


@pytest.fixture
def prefix(tmp_path, documents):
    return write_dataset(tmp_path / "data", documents)
