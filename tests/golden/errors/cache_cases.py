# SPDX-License-Identifier: Apache-2.0
"""Damaged index caches of Megatron, and the cache that they are made from, as formats/spec/npy.md and
megatron_cache.md specify them. Only these pages were used to write this code.

The dataset is Megatron's idx_uint16_3docs, whose sequences have 3, 2 and 3 tokens. 4 samples of 2 tokens are requested,
so there are 2 epochs and 7 samples. The last epoch is separate: the 3 samples before it leave it one, fewer than 2.
"""
import hashlib
import json
import struct

L, X, REQUESTED = 2, 1, 4
LENGTHS = (3, 2, 3)
DOCUMENT = [2, 0, 1, 1, 2, 0]  # any order within an epoch: the seed of a shuffle cannot be checked
SHUFFLE = [1, 2, 0, 5, 3, 6, 4]
TOKENIZER = {"class": "some.Tokenizer", "vocab_size": "100"}
FLAGS = ["--split", "1,0,0", "--seq-length", str(L), "--train-samples", str(REQUESTED)]
TEXT = 10  # where the header of an array begins


def rows_of(document):
    """The sample index: for each row j, the entry that holds token j * L, and the place of the token in it."""
    places = [(entry, at) for entry, sequence in enumerate(document) for at in range(LENGTHS[sequence])]
    samples = (len(places) - X) // L
    return [places[j * L] for j in range(samples + 1)]


SAMPLE = rows_of(DOCUMENT)
DESCRIPTION = json.dumps({
    "class": "GPTDataset", "dataset_path": "data", "num_samples": REQUESTED, "index_split": "train",
    "random_seed": 1234, "sequence_length": L, "split": "1,0,0", "split_matrix": [[0, 1.0], None, None],
    "tokenizer": TOKENIZER}, indent=4)
MD5 = hashlib.md5(DESCRIPTION.encode()).hexdigest()
NAME = f"{MD5}-GPTDataset-train-"


def npy(header, elements):
    """An array whose header has this text, with spaces up to a multiple of 64 bytes."""
    spaces = 64 - (TEXT + len(header) + 1) % 64
    text = header.encode() + b" " * spaces + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + elements


def header_of(dtype, shape):
    room = " " * (21 - len(str(shape[0])))
    return f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}{room}"


def array(dtype, numbers, shape=None):
    kind = {"<i4": "i", "<u4": "I", "<i8": "q"}[dtype]
    return npy(header_of(dtype, shape or (len(numbers),)), struct.pack(f"<{len(numbers)}{kind}", *numbers))


def samples(rows, dtype="<i4"):
    return array(dtype, [number for row in rows for number in row], (len(rows), 2))


ELEMENTS = struct.pack("<7I", *SHUFFLE)
HEADER = header_of("<u4", (7,))
UNDAMAGED = {".description.txt": DESCRIPTION.encode(), ".document_index.npy": array("<i4", DOCUMENT),
             ".sample_index.npy": samples(SAMPLE), ".shuffle_index.npy": npy(HEADER, ELEMENTS)}


def npy_cases():
    """Yields rule, what, ending, bytes, byte of the fault, expected, found. The elements are at 128; 156 bytes in all.
    """
    ending = ".shuffle_index.npy"
    whole = UNDAMAGED[ending]

    def changed(old, new, expected, found, at=None):
        """The header with another text, and a fault at it. `at`: where in the new text the fault is."""
        begin = HEADER.index(old)
        text = HEADER[:begin] + new + HEADER[begin + len(old):]
        return ending, npy(text, ELEMENTS), TEXT + begin + (new.index(at) if at else 0), expected, found

    yield 1, "magic", ending, whole[:5] + b"X" + whole[6:], 5, "\\x93NUMPY", ""
    yield 1, "cut", ending, whole[:3], 0, "6 bytes", "only 3"
    yield 2, "version", ending, whole[:6] + b"\2" + whole[7:], 6, "version 1.0", "found 2.0"
    yield 2, "minor", ending, whole[:7] + b"\1" + whole[8:], 6, "version 1.0", "found 1.1"
    yield 3, "cut", ending, whole[:100], TEXT, "118 bytes", "only 90"
    yield 4, "list", *changed("{", "[", "'{'", "found '['")
    yield 4, "key", *changed("'descr'", "descr", "where a string starts", "found 'd'")
    yield 4, "string", ending, npy("{'descr", ELEMENTS), TEXT + 2, "a string that ends", "the end of the header"
    yield 4, "colon", *changed(":", ";", "':'", "found ';'")
    yield 4, "word", *changed("False", "false", "True or False", "found 'f'")
    yield 4, "comma", *changed(",", ";", "','", "found ';'")
    yield 4, "after", *changed(", }", ", }x", "nothing but space", "found 'x'", "x")
    yield 5, "missing", ending, npy(HEADER.replace("'shape': (7,), ", ""), ELEMENTS), TEXT, \
        "descr, fortran_order and shape", "no shape"
    yield 5, "twice", *changed("'fortran_order': False", "'descr': '<i4', 'fortran_order': False", "once", "descr")
    yield 5, "unknown", *changed("'shape'", "'order'", "descr, fortran_order or shape", "found 'order'")
    yield 6, "big_endian", *changed("'<u4'", "'>u4'", "little-endian", "found dtype '>u4'")
    yield 6, "object", *changed("'<u4'", "'|O'", "u1 to u8", "found dtype '|O'")
    yield 6, "complex", *changed("'<u4'", "'<c8'", "u1 to u8", "found dtype '<c8'")
    yield 6, "structure", *changed("'<u4'", "[('a', '<u4')]", "plain numbers", "structures")
    yield 7, "sign", *changed("(7,)", "(-7,)", "0 or more", "found '-'", "-")
    yield 7, "leading_0", *changed("(7,)", "(07,)", "without a leading 0", "found '07'", "0")
    yield 7, "large", *changed("(7,)", f"({1 << 63},)", "at most 2^63 - 1", f"found '{1 << 63}'", "9")
    yield 7, "sizes", *changed("(7,)", f"({'1,' * 64}7)", "at most 64 sizes", "65th", "7")
    pairs = header_of("<i4", (8, 2)).replace("False", "True")
    yield 8, "columns", ".sample_index.npy", npy(pairs, UNDAMAGED[".sample_index.npy"][128:]), \
        TEXT + pairs.index("True"), "row-major", "column-major"
    yield 9, "wraps", *changed("(7,)", f"({1 << 62},)", "at most 2^63 - 1 bytes", f"({1 << 62},) of dtype <u4")
    yield 9, "zero", *changed("(7,)", f"(0, {1 << 62})", "at most 2^63 - 1 bytes", f"(0, {1 << 62}) of dtype <u4")
    yield 10, "short", ending, whole[:-4], 152, "takes 28 bytes", "found 24"
    yield 10, "long", ending, whole + b"\0", 156, "takes 28 bytes", "found 29"


def changed_list(numbers, at, value):
    return numbers[:at] + [value] + numbers[at + 1:]


def document(at, value):
    return ".document_index.npy", array("<i4", changed_list(DOCUMENT, at, value))


def row(at, value):
    return ".sample_index.npy", samples(changed_list(SAMPLE, at, value))


def shuffle(at, value):
    return ".shuffle_index.npy", array("<u4", changed_list(SHUFFLE, at, value))


def cache_cases():
    """The numbers of each array begin at 128. Row j of the sample index is at 128 + 8 j."""
    other = DESCRIPTION.replace("1234", "1235")
    md5 = hashlib.md5(other.encode()).hexdigest()
    yield 1, "seed", ".description.txt", other.encode(), other.index("1235") + 3, MD5, md5
    cut = DESCRIPTION[:-1].encode()
    yield 1, "cut", ".description.txt", cut, len(cut), MD5, hashlib.md5(cut).hexdigest()
    yield 2, "dtype", ".document_index.npy", array("<i8", DOCUMENT), TEXT, "expected <i4 and (6,)", "<i8 and shape (6,)"
    yield 2, "dtype", ".sample_index.npy", samples(SAMPLE, "<u4"), TEXT, "<i8 and (8, 2)", "<u4 and shape (8, 2)"
    yield 2, "dtype", ".shuffle_index.npy", array("<i4", SHUFFLE), TEXT, "<i8 and (7,)", "<i4 and shape (7,)"
    yield 2, "shape", ".document_index.npy", array("<i4", DOCUMENT[:-1]), TEXT, "(6,)", "shape (5,)"
    yield 2, "shape", ".sample_index.npy", samples(SAMPLE[:-1]), TEXT, "(8, 2)", "shape (7, 2)"
    yield 2, "shape", ".shuffle_index.npy", array("<u4", SHUFFLE[:-1]), TEXT, "(7,)", "shape (6,)"
    yield 3, "sequence", *document(1, 3), 128 + 4, "0 to 2", "sequence 3"
    yield 3, "negative", *document(1, -1), 128 + 4, "0 to 2", "sequence -1"
    yield 3, "entry", *row(7, (6, 0)), 128 + 8 * 6, "3 tokens", "(4, 2) to (6, 0)"
    yield 3, "entry_negative", *row(0, (-1, 0)), 128, "3 tokens", "(-1, 0) to (0, 2)"
    yield 3, "offset", *row(1, (0, 3)), 128, "3 tokens", "(0, 0) to (0, 3)"
    yield 3, "tokens", *row(1, (0, 1)), 128, "3 tokens", "(0, 0) to (0, 1)"
    yield 3, "sample", *shuffle(0, 7), 128, "0 to 6", "number 7"
    # Sequences 0 and 2 have the same length, so each sample has its tokens.
    yield 4, "twice", *document(1, 2), 128 + 4, "once per epoch", "sequence 2"
    both = changed_list(changed_list(DOCUMENT, 1, 2), 4, 0)
    yield 4, "epoch", ".document_index.npy", array("<i4", both), 128 + 4, "once per epoch", "sequence 2"
    later = [(entry, at) for entry, sequence in enumerate(DOCUMENT) for at in range(LENGTHS[sequence])][1::L]
    yield 5, "later", ".sample_index.npy", samples(later), 128, "expected (0, 0)", "row 0 is (0, 1)"
    yield 6, "twice", *shuffle(1, 1), 128 + 4, "0 to 2 once", "sample 1"
    swapped = changed_list(changed_list(SHUFFLE, 0, 5), 3, 1)
    yield 6, "epoch", ".shuffle_index.npy", array("<u4", swapped), 128, "0 to 2 once", "sample 5"
