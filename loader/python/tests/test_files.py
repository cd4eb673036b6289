# SPDX-License-Identifier: Apache-2.0
import gc
import os
import pickle

import millrace
import numpy as np
import pytest
from conftest import CODES, write_dataset


def test_sequences_are_those_of_the_file(prefix, documents):
    data = millrace.IndexedDataset(prefix)
    assert len(data) == len(documents) == data.document_count
    assert data.token_count == sum(map(len, documents))
    assert data.dtype == np.uint16
    for i, expected in enumerate(documents):
        np.testing.assert_array_equal(data[i], expected)
        np.testing.assert_array_equal(data.document(i), expected)
    np.testing.assert_array_equal(data[-1], documents[-1])
    for mine, expected in zip(data[3:20:4], documents[3:20:4], strict=True):
        np.testing.assert_array_equal(mine, expected)
    for mine, expected in zip(data[::-7], documents[::-7], strict=True):
        np.testing.assert_array_equal(mine, expected)
    np.testing.assert_array_equal(data.sequence_lengths, list(map(len, documents)))
    np.testing.assert_array_equal(data.document_indices, np.arange(len(documents) + 1))


@pytest.mark.parametrize("dtype", CODES)
def test_every_dtype(tmp_path, dtype):
    documents = [[1, 2, 3], [], [100]]
    data = millrace.IndexedDataset(write_dataset(tmp_path / "d", documents, dtype))
    assert data.dtype == np.dtype(dtype)
    for i, expected in enumerate(documents):
        assert data[i].dtype == np.dtype(dtype)
        np.testing.assert_array_equal(data[i], np.asarray(expected, dtype))


def test_part_of_a_sequence(prefix, documents):
    data = millrace.IndexedDataset(prefix)
    i = max(range(len(documents)), key=lambda i: len(documents[i]))
    np.testing.assert_array_equal(data.get(i, 3), documents[i][3:])
    np.testing.assert_array_equal(data.get(i, offset=2, length=5), documents[i][2:7])
    assert len(data.get(i, len(documents[i]))) == 0
    with pytest.raises(millrace.ConfigError, match="offset is -1, expected 0 to"):
        data.get(i, -1)
    with pytest.raises(millrace.ConfigError, match="length is 1000, expected 0 to"):
        data.get(i, 0, 1000)


def test_mask(tmp_path):
    documents = [[1, 2, 3], [], [4], [5, 6, 7, 9, 10, 11, 13], [8]]
    prefix = write_dataset(tmp_path / "d", documents)
    assert millrace.IndexedDataset(prefix).document_mask(0) is None
    odd = [token % 2 for document in documents for token in document]
    with open(f"{prefix}.ds", "wb") as ids, open(f"{prefix}.ds.loss", "wb") as mask:
        ids.write(np.concatenate(documents).astype(np.uint16).tobytes())
        mask.write(bytes(odd))
    np.cumsum([len(document) for document in documents], dtype=np.uint64).tofile(f"{prefix}.ds.index")
    done = millrace.convert(f"{prefix}.ds", tmp_path / "new", dtype="uint16")
    data = millrace.IndexedDataset(done.details["files"][0][:-len(".bin")])
    for d, document in enumerate(documents):
        mask = data.document_mask(d)
        assert mask.dtype == bool
        np.testing.assert_array_equal(mask, [token % 2 == 1 for token in document])
    np.testing.assert_array_equal(data.document_mask(-2), data.document_mask(3))
    with pytest.raises(IndexError):
        data.document_mask(5)


def test_views_are_read_only_and_keep_the_files(prefix, documents):
    data = millrace.IndexedDataset(prefix)
    view = data[5]
    copy = data.get(5, copy=True)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    copy[0] = 1
    del data
    gc.collect()
    np.testing.assert_array_equal(view, documents[5])


def test_index_out_of_range(prefix, documents):
    data = millrace.IndexedDataset(prefix)
    for i in (len(documents), -len(documents) - 1):
        with pytest.raises(IndexError, match=f"sequence {i} of a dataset with {len(documents)}"):
            data[i]
    with pytest.raises(IndexError):
        data.document(len(documents))


def test_a_dataset_can_be_pickled(prefix):
    data = millrace.IndexedDataset(prefix)
    again = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(again[1], data[1])


def test_paths_need_not_be_utf8(tmp_path, documents):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/n\xff")
    os.mkdir(folder)
    prefix = write_dataset(f"{folder}/data", documents)
    data = millrace.IndexedDataset(prefix)
    assert data.prefix == prefix and prefix in repr(data)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(data))[1], data[1])
    run = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=16, train_samples=5,
                               data_cache_path=f"{folder}/cache")
    assert run.prefixes == [prefix] and len(os.listdir(f"{folder}/cache")) == 4
    assert millrace.verify(prefix).sequences == len(documents)
    with pytest.raises(millrace.IOError) as raised:
        millrace.MegatronRun(data_path=[f"{folder}/none"], seq_length=16)
    assert raised.value.filename == f"{folder}/none.idx"
    os.truncate(f"{prefix}.idx", 20)
    with pytest.raises(millrace.FormatError) as raised:
        millrace.IndexedDataset(prefix)
    assert folder in str(raised.value)


def test_errors_name_the_file(tmp_path, prefix):
    with pytest.raises(millrace.IOError) as raised:
        millrace.IndexedDataset(tmp_path / "none")
    assert raised.value.errno == 2
    assert str(raised.value.filename) == str(tmp_path / "none.idx")
    assert isinstance(raised.value, OSError) and isinstance(raised.value, millrace.Error)
    with open(f"{prefix}.idx", "r+b") as idx:
        idx.write(b"XXXX")
    with pytest.raises(millrace.FormatError, match="at byte 0"):
        millrace.IndexedDataset(prefix)
    with pytest.raises(millrace.ConfigError, match=r"\.bin"):
        millrace.IndexedDataset(f"{prefix}.bin")


def test_damaged_indices_never_crash(tmp_path, documents):
    prefix = write_dataset(tmp_path / "d", documents[:5])
    with open(f"{prefix}.idx", "rb") as idx:
        whole = idx.read()
    random = np.random.default_rng(3)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            damaged[random.integers(len(damaged))] = random.integers(256)
        with open(f"{prefix}.idx", "wb") as idx:
            idx.write(damaged[:random.integers(len(damaged))] if random.integers(3) == 0 else damaged)
        try:
            data = millrace.IndexedDataset(prefix)
            for i in range(len(data)):
                data[i].sum()
        except millrace.Error:
            refused += 1
    assert refused > 100
