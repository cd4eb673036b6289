# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the scripts in this folder: megatron-core's module, and a reader and a writer that use it."""

import hashlib
import os
import sys
import warnings

SKIPPED = 77  # the exit code that ctest takes for "skipped"


def load():
    """megatron.core.datasets.indexed_dataset, or exit 77 if megatron-core is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from megatron.core.datasets import indexed_dataset
    except ImportError as error:
        print(f"skipped: megatron-core is not installed ({error})", file=sys.stderr)
        sys.exit(SKIPPED)
    return indexed_dataset


def write_dataset(prefix, documents, dtype, multimodal=False):
    """Writes `documents` through IndexedDatasetBuilder and returns what a reader must find.

    A document is a list of sequences, a sequence a list of tokens or, with `multimodal`, a pair
    (tokens, mode). `dtype` is the name of a NumPy type.
    """
    import numpy

    builder = load().IndexedDatasetBuilder(prefix + ".bin", getattr(numpy, dtype), multimodal)
    tokens, lengths, ends, modes = [], [], [0], []
    for document in documents:
        sequences = [s[0] for s in document] if multimodal else document
        document_modes = [s[1] for s in document] if multimodal else None
        flat = [token for sequence in sequences for token in sequence]
        builder.add_document(flat, [len(s) for s in sequences], document_modes)
        tokens += flat
        lengths += [len(s) for s in sequences]
        ends.append(len(lengths))
        modes += document_modes or []
    builder.finalize(prefix + ".idx")
    return facts(dtype, lengths, ends, tokens_md5([tokens]), modes if multimodal else None)


def read_dataset(prefix, multimodal=False):
    """Opens `prefix` with IndexedDataset, reads every sequence and returns what was found."""
    # NumPy cannot map an empty .bin, but Megatron's file reader can read it.
    mmap = os.path.getsize(prefix + ".bin") > 0
    dataset = load().IndexedDataset(prefix, multimodal=multimodal, mmap=mmap)
    # Does not use the property of the dataset, because it asserts the truth value of an array,
    # which NumPy refuses.
    modes = dataset.index.sequence_modes.tolist() if multimodal else None
    sequences = (dataset.get(i) for i in range(len(dataset)))
    return facts(
        dataset.index.dtype.__name__,
        dataset.sequence_lengths.tolist(),
        dataset.document_indices.tolist(),
        tokens_md5(s[0] if multimodal else s for s in sequences),
        modes,
    )


def facts(dtype, lengths, document_indices, md5, modes=None):
    """The record by which two readers are compared."""
    record = {
        "dtype": dtype,
        "lengths": lengths,
        "document_indices": document_indices,
        "tokens_md5": md5,
    }
    if modes is not None:
        record["modes"] = modes
    return record


def tokens_md5(sequences):
    """MD5 over all tokens in order, each as a little-endian int64 (floats are cut to integers)."""
    import numpy

    md5 = hashlib.md5()
    for sequence in sequences:
        md5.update(numpy.asarray(sequence).astype("<i8").tobytes())
    return md5.hexdigest()
