#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes damaged files, one or more per rule of formats/spec, and findings.tsv, the findings that are expected.

    generate.py           writes the files again
    generate.py --check   fails if it would now write other bytes

The name of a file is PAGE_RULE_WHAT, with the number of the rule under "What a reader must check". Everything is made
from Megatron's files and from `sidecar_formats.py`, which follows only the specification. Offsets and values in the
findings come from the pages, not from a run of this project's code.

Not here: rule 15 of mmidx, which no small file can break; a file that is missing (rule 1 of megatron_cache);
packed_parquet, whose files no program of this project reads; instant_order, which is no file.
"""
import gzip
import hashlib
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sidecars"))
from cache_cases import cache_cases, npy_cases  # noqa: E402
from sidecar_formats import crc32c, encode_mask, encode_meta, encode_rows, encode_src, encode_sum  # noqa: E402

MEGATRON, SIDECARS, CONVERT = (HERE.parent / name for name in ("megatron", "sidecars", "convert"))
IDX, BIN = ((MEGATRON / f"idx_uint16_3docs{end}").read_bytes() for end in (".idx", ".bin"))
SUM = encode_sum(BIN, IDX)
SRC = (SIDECARS / "preprocess_lines.src").read_bytes()
META = json.loads((SIDECARS / "preprocess_lines.meta").read_bytes())
MASK = encode_mask([False, True, True])  # for the 3 tokens of Megatron's idx_int32
ROWS = encode_rows(BIN, IDX, 4, 1, 0, 3, SUM)
BAD = b"".join(
    b'{"file": "preprocess_lines.jsonl", "line": %d, "byte": %d, "bytes": 7, "fault": "invalid_json", "fault_byte": 0, '
    b'"reason": "expected a value", "raw": "no JSON"}\n' % (line, byte) for line, byte in ((2, 14), (9, 200)))
STATE = {"millrace_state": 1, "order": "instant", "seed": 1234, "seq_len": 2, "consumed_samples": 1, "global_batch": 1,
         "samples": [6, 0, 0], "surplus": 0.005,
         "data": [{"prefix": "data", "weight": 1.0, "tokens": 8, "sequences": 3, "documents": 3, "bin_bytes": 16,
                   "idx_bytes": 102, "root": "", "name": "data"}],
         "schedule": [{"first_step": 0, "sources": [0], "weights": [1.0]}],
         "edits": [{"skip_samples": [2, 3], "since": 1, "why": "spike"},
                   {"replay_steps": [0, 1], "at_step": 4, "why": "again"},
                   {"block_documents": [1, 2], "source": "data", "why": "leaked"}]}


def put(data, kind, at, value):
    """The data with a number of another value at a byte."""
    number = struct.pack(kind, value)
    return data[:at] + number + data[at + len(number):]


def signed(data):
    """A `.sum` whose root is right."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def index_cases():
    """Yields rule, what, ending, bytes, byte of the fault, expected, found. S is at 18, D at 26, the lengths 3, 2, 3 are
    at 34, the pointers 0, 6, 10 at 46, the document index 0, 1, 1, 3 at 70; 102 bytes in all."""
    yield 1, "magic", ".idx", IDX[:3] + b"X" + IDX[4:], 3, 'MMIDIDX\\0\\0', ""
    yield 1, "empty", ".idx", b"", 0, "9 bytes", "only 0"
    yield 2, "cut", ".idx", IDX[:20], 18, "8 bytes", "only 2"
    yield 3, "version", ".idx", put(IDX, "<Q", 9, 2), 9, "version 1", "found 2"
    yield 4, "dtype_0", ".idx", put(IDX, "<B", 17, 0), 17, "1 to 8", "found 0"
    yield 4, "dtype_9", ".idx", put(IDX, "<B", 17, 9), 17, "1 to 8", "found 9"
    yield 5, "sequences", ".idx", put(IDX, "<Q", 18, 6), 18, "102 bytes", "6 sequences"
    yield 5, "wraps", ".idx", put(IDX, "<Q", 18, 1 << 62), 18, "102 bytes", f"{1 << 62} sequences"
    yield 6, "no_documents", ".idx", put(IDX, "<Q", 26, 0), 26, "its leading 0", "is empty"
    yield 7, "documents", ".idx", put(IDX, "<Q", 26, 5), 26, "102 bytes", "5 document index entries"
    yield 8, "trailing", ".idx", IDX + b"\0", 102, "expected 0, or 3", "1 bytes follow"
    yield 9, "first_document", ".idx", put(IDX, "<q", 70, 1), 70, "expected 0", "starts with 1"
    yield 10, "last_document", ".idx", put(IDX, "<q", 94, 2), 94, "expected 3", "ends with 2"
    yield 11, "first_pointer", ".idx", put(IDX, "<q", 46, 2), 46, "expected 0", "byte 2"
    yield 12, "last_length", ".idx", put(IDX, "<i", 42, -1), 42, "0 or more", "is -1"
    yield 12, "last_pointer", ".idx", put(IDX, "<q", 62, -2), 62, "0 or more", "is -2"
    yield 12, "short", ".bin", BIN[:-1], 15, "expected 16", "15 bytes"
    yield 13, "length", ".idx", put(IDX, "<i", 38, -1), 38, "0 or more", "is -1"
    yield 14, "pointer", ".idx", put(IDX, "<q", 54, 4), 54, "expected 6", "is 4"
    yield 16, "falls", ".idx", put(IDX, "<q", 78, 2), 86, "expected 2 to 3", "sequence 1"
    yield 16, "beyond", ".idx", put(IDX, "<q", 78, 4), 78, "expected 0 to 3", "sequence 4"
    yield 17, "long", ".bin", BIN + b"\0\0", 16, "expected 16", "18 bytes"


def sum_cases():
    """The CRC of the .bin is at 32, that of the .idx at 36, the root at 40; 72 bytes in all."""
    crc = SUM[32:36][::-1].hex()
    yield 1, "magic", ".sum", SUM[:7] + b"2" + SUM[8:], 7, 'MILLSUM\\0', ""
    yield 2, "cut", ".sum", SUM[:20], 16, "8 bytes", "only 4"
    yield 3, "version", ".sum", signed(put(SUM, "<I", 8, 3)), 8, "version 1 or 2", "found 3"
    yield 4, "block", ".sum", signed(put(SUM, "<I", 12, 4096)), 12, "1048576", "found 4096"
    yield 5, "long", ".sum", SUM + b"\0", 72, "expected 72", "73 bytes"
    yield 5, "short", ".sum", SUM[:-1], 71, "expected 72", "71 bytes"
    yield 5, "wraps", ".sum", signed(put(SUM, "<Q", 16, (1 << 64) - 1)), 72, f"{(1 << 64) - 1}", "72 bytes"
    other = SUM[:40] + bytes(31) + b"\1"
    yield 6, "root", ".sum", other, 40, SUM[40:].hex(), other[40:].hex()
    yield 7, "bin_size", ".sum", signed(put(SUM, "<Q", 16, 17)), (".bin", 16), "expected 17", "16 bytes"
    yield 7, "idx_size", ".sum", signed(put(SUM, "<Q", 24, 101)), (".idx", 101), "expected 101", "102 bytes"
    yield 8, "token", ".bin", b"\2" + BIN[1:], 0, crc, encode_sum(b"\2" + BIN[1:], IDX)[32:36][::-1].hex()
    yield 8, "idx_crc", ".sum", signed(put(SUM, "<I", 36, 7)), (".idx", 0), "00000007", SUM[36:40][::-1].hex()


def src_cases():
    """The payload is at 48, its third document at 0x32, the directory at 77, the names at 105; 131 bytes in all."""
    yield 1, "magic", ".src", SRC[:6] + b"X" + SRC[7:], 6, 'MILLSRC\\0', ""
    yield 2, "cut", ".src", SRC[:30], 24, "8 bytes", "only 6"
    yield 3, "version", ".src", put(SRC, "<I", 8, 3), 8, "version 1 or 2", "found 3"
    yield 4, "group", ".src", put(SRC, "<I", 12, 32), 12, "64 documents", "found 32"
    yield 5, "documents", ".src", put(SRC, "<Q", 16, 1000), 16, "131 bytes", "1000 documents"
    yield 5, "payload", ".src", put(SRC, "<Q", 24, 1000), 24, "131 bytes", "1000 bytes"
    yield 5, "few_bytes", ".src", put(SRC, "<Q", 16, 30), 24, "30 documents", "29 bytes"
    yield 7, "names_size", ".src", put(SRC, "<Q", 40, 25), 40, "rest of the file has 26", "25 bytes"
    yield 8, "inputs", ".src", put(SRC, "<Q", 32, 100), 32, "26 bytes", "100 inputs"
    with_unit = put(put(SRC[:105] + b"\x02" + SRC[105:], "<I", 8, 2), "<Q", 40, 27)
    yield 9, "unit", ".src", with_unit, 105, "0 (bytes) or 1 (rows)", "is 2"
    yield 9, "no_rows", ".src", put(with_unit, "<B", 105, 0), 8, "version 1", "found 2"
    yield 9, "short_name", ".src", put(SRC, "<I", 105, 21), 130, "expected none", "1 bytes follow"
    yield 9, "long_name", ".src", put(SRC, "<I", 105, 23), 109, "23 bytes", "only 22"
    yield 10, "input", ".src", put(SRC, "<I", 77, 1), 77, "below 1", "input 1"
    yield 10, "line", ".src", put(SRC, "<q", 81, 0), 81, "1 or more", "line 0"
    yield 10, "payload_offset", ".src", put(SRC, "<Q", 97, 1), 97, "must begin at 0", "byte 1"
    yield 11, "long_varint", ".src", put(SRC, "<H", 48, 0x00b0), 48, "", ""
    yield 13, "begin", ".src", put(SRC, "<Q", 89, 1 << 63), 48, "2^63 - 1", f"{1 << 63}"
    yield 14, "documents", ".src", put(SRC, "<Q", 16, 17), 16, "18", "17 documents"
    yield 12, "first_odd", ".src", put(SRC, "<B", 48, 0x31), 48, "", "refers to a previous document"
    yield 12, "flags_0", ".src", put(SRC, "<B", 51, 0), 51, "1 to 7", "found 0"
    yield 12, "flags_8", ".src", put(SRC, "<B", 51, 8), 51, "1 to 7", "found 8"
    yield 12, "no_difference", ".src", put(SRC, "<B", 52, 0), 52, "as expected", ""


def meta_of(**changes):
    meta = json.loads(json.dumps(META))
    del meta["millrace_meta"]
    for path, value in changes.items():
        *folders, name = path.split("__")
        place = meta
        for each in folders:
            place = place[int(each)] if isinstance(place, list) else place[each]
        place[name] = value
    return encode_meta(meta)


def meta_case(rule, what, data, key, expected, found, last=False):
    """A fault that is found at the first or the last key of this name."""
    at = (data.rindex if last else data.index)(f'"{key}"'.encode())
    return rule, what, ".meta", data, at, expected, found


def meta_cases():
    text = encode_meta({k: v for k, v in META.items() if k != "millrace_meta"})
    yield 1, "empty", ".meta", b"", 0, "a JSON object", "empty"
    yield 1, "list", ".meta", b"[]\n", 0, "object", ""
    yield meta_case(1, "version", text.replace(b'"millrace_meta": 1', b'"millrace_meta": 2'), "millrace_meta",
                    "version 1", "found 2")
    yield 2, "missing", ".meta", text.replace(b'"append_eod": false, ', b""), 0, "append_eod", "no entry"
    yield meta_case(2, "twice", text.replace(b'"level"', b'"level": "document", "level"', 1), "level", "each name once",
                    "", last=True)
    yield meta_case(2, "unknown", text.replace(b'"level"', b'"depth": 1, "level"', 1), "depth", "", "depth")
    yield meta_case(2, "type", text.replace(b'"append_eod": false', b'"append_eod": "no"'), "append_eod",
                    "true nor false", "")
    yield meta_case(2, "negative", meta_of(counts__lines=-1), "lines", f"0..{(1 << 63) - 1}", "", last=True)
    yield meta_case(3, "tasks", meta_of(tasks={"first": 2, "last": 1, "of": 3}), "tasks", "first <= last < of",
                    "2 to 1 of 3")
    yield meta_case(3, "all_tasks", meta_of(tasks={"first": 0, "last": 2, "of": 3}), "tasks", "expected null",
                    "all tasks")
    share = {"begin_input": 0, "begin_byte": 5, "end_input": 0, "end_byte": 4, "names_crc32c": "00000000"}
    yield meta_case(3, "share", meta_of(tasks={"first": 0, "last": 0, "of": 2, "share": share}), "share",
                    "begins at byte 5", "ends at byte 4")
    far = meta_of(tasks={"first": 1, "last": 1, "of": 3}, inputs__0__begin=1, inputs__0__text_bytes=(1 << 63) - 1)
    yield meta_case(4, "end", far, "text_bytes", "at most 2^63 - 1", f"byte {1 << 63}")
    begins = meta_of(inputs__0__begin=5)
    yield 4, "begin", ".meta", begins, begins.index(b'{"path"'), "", "begins in the middle"
    yield meta_case(5, "bin_bytes", meta_of(bin_bytes=563), "bin_bytes", "282 tokens of 2 bytes", "563")
    mask = b', "mask": {"version": 1, "trained": 283, "root": "%s"}}\n' % (b"0" * 64)
    yield meta_case(6, "trained", text[:-2] + mask, "trained", "282 tokens", "283")
    yield 6, "root", ".meta", meta_of(sum=None), 0, 'both "sum" and "sum_root"', ""
    yield 6, "other_root", ".meta", meta_of(sum_root="0" * 64), 0, META["sum_root"], "0" * 64
    yield 6, "tokens", ".meta", meta_of(counts__tokens=281, bin_bytes=562), 0, "282", "281"
    yield 6, "documents", ".meta", meta_of(counts__documents=17), 0, "18", "17"
    yield 6, "sequences", ".meta", meta_of(counts__sequences=17), 0, "has 18", "are 17"
    yield 6, "empty_documents", ".meta", meta_of(counts__empty_documents=2), 0, "has 3", "are 2"
    yield 6, "dtype", ".meta", meta_of(dtype="int16"), 0, "uint16", "int16"
    yield 7, "name", ".meta", meta_of(inputs__0__path="other.jsonl"), 0, "preprocess_lines.jsonl", "other.jsonl"
    yield 7, "inputs", ".meta", meta_of(inputs=[META["inputs"][0] | {"lines": 18}, META["inputs"][0] | {"lines": 0}]), \
        (".src", 32), "has 2", "1 inputs"
    yield 8, "bytes", ".meta", meta_of(inputs__0__text_bytes=740), (".src", 77), "bytes 0 to 740", "to 741"
    yield 9, "order", ".src", encode_src([(0, 18 - i, 40 * (17 - i), 40 * (17 - i) + 9) for i in range(18)],
                                         [b"preprocess_lines.jsonl"]), 48 + 69, "line 18", "line 17"
    yield 10, "used", ".meta", meta_of(counts__blank_lines=1), 0, "19", "18"
    yield 10, "read", ".meta", meta_of(inputs__0__lines=17), 0, "17", "18"


def rows_of(*rows):
    """A `.csv.gz` with these rows, the same bytes each time."""
    return gzip.compress("".join(f"{begin},{end}\n" for begin, end in rows).encode(), mtime=0)


def token_array_cases():
    """The dataset has 11 tokens of 2 bytes in documents that end at 4, 5, 5, 9 and 11; a file of llm.c has 1024 bytes of
    header before them."""
    tokens, ends, about = ((CONVERT / f"datatrove_2.ds{end}").read_bytes() for end in ("", ".index", ".metadata"))
    shard = (CONVERT / "llm_c_2.bin").read_bytes()
    wide = (CONVERT / "llm_c_4.bin").read_bytes()
    yield 1, "half", ".ds", tokens + b"x", 22, "multiple of 2", "23 bytes"
    yield 1, "half", ".npy", tokens[:-1], 20, "multiple of 2", "21 bytes"
    yield 2, "size", ".ds.metadata", about.replace(b"|2", b"|3"), 5, "TOKENIZER|2 or TOKENIZER|4", "gpt2|3"
    yield 2, "no_size", ".ds.metadata", about.replace(b"|2", b""), 0, "TOKENIZER|2 or TOKENIZER|4", "gpt2"
    yield 2, "tokens", ".ds.metadata", about.replace(b"\n11\n", b"\n12\n"), 7, "12", "11"
    yield 3, "half", ".ds.index", ends[:-1], 32, "multiple of 8", "39 bytes"
    yield 3, "falls", ".ds.index", put(ends, "<Q", 16, 4), 16, "expected 5 to 11", "token 4"
    yield 3, "short", ".ds.index", ends[:-8], 32, "11", "9"
    yield 3, "long", ".ds.index", put(ends, "<Q", 32, 12), 32, "11", "12"
    yield 4, "gap", ".csv.gz", rows_of((0, 4), (5, 11)), 4, "4", "5"
    yield 4, "short", ".csv.gz", rows_of((0, 4), (4, 9)), 8, "11", "9"
    yield 4, "words", ".csv.gz", rows_of((0, 4), ("x", 11)), 4, "BEGIN,END", ""
    yield 5, "magic", ".bin", put(shard, "<i", 0, 7), 0, "20240520", "7"
    yield 5, "version", ".bin", put(shard, "<i", 4, 2), 4, "1", "2"
    yield 5, "count", ".bin", put(shard, "<i", 8, 12), 1046, "expected 1048", "1046 bytes"
    yield 5, "negative", ".bin", put(shard, "<i", 8, -1), 8, "", "-1"
    yield 5, "cut", ".bin", shard[:1000], 1000, "1024", "1000"
    yield 7, "short", ".ds.loss", bytes(10), 10, "expected 11", "10 bytes"
    yield 7, "value", ".ds.loss", bytes(5) + b"\2" + bytes(5), 5, "expected 1", "is 2"
    yield 6, "large", ".bin", put(wide, "<I", 1028, 1 << 31), 1028, f"{(1 << 31) - 1}", f"{1 << 31}"


def sealed_mask(data):
    """A `.mask` of 1 byte of bits whose root is right."""
    return data[:37] + hashlib.sha256(data[:32] + data[33:37]).digest() + data[69:]


def mask_cases():
    """The bits of tokens 0, 1 and 2 are 0, 1 and 1, at 32; their CRC is at 33, the root at 37; 69 bytes in all."""
    two, one = (f"{crc32c(bytes([bits])):08x}" for bits in (6, 2))
    yield 1, "magic", ".mask", MASK[:5] + b"X" + MASK[6:], 5, "MILLMSK\\0", ""
    yield 1, "empty", ".mask", b"", 0, "8 bytes", "only 0"
    yield 2, "cut", ".mask", MASK[:30], 24, "8 bytes", "only 6"
    yield 3, "version", ".mask", sealed_mask(put(MASK, "<I", 8, 2)), 8, "version 1", "found 2"
    yield 4, "block", ".mask", sealed_mask(put(MASK, "<I", 12, 4096)), 12, "1048576", "found 4096"
    yield 5, "tokens", ".mask", sealed_mask(put(MASK, "<Q", 16, (1 << 62) + 1)), 16, f"at most {1 << 62}", \
        f"is {(1 << 62) + 1}"
    yield 5, "trained", ".mask", sealed_mask(put(MASK, "<Q", 24, 4)), 24, "at most 3", "is 4"
    yield 6, "long", ".mask", MASK + b"\0", 69, "expected 69", "70 bytes"
    yield 6, "short", ".mask", MASK[:-1], 68, "expected 69", "68 bytes"
    yield 6, "bits", ".mask", sealed_mask(put(MASK, "<Q", 16, 9)), 69, "expected 70", "69 bytes"
    yield 7, "root", ".mask", MASK[:37] + bytes(31) + b"\1", 37, MASK[37:].hex(), f"{1:064x}"
    yield 8, "other", ".mask", encode_mask([False, True, True, True]), 16, "has 3", "for 4 tokens"
    yield 9, "bit", ".mask", MASK[:32] + b"\2" + MASK[33:], 32, f"expected {two}", f"checksum is {one}"
    unused = struct.pack("<BI", 14, crc32c(b"\x0e"))
    yield 10, "unused", ".mask", sealed_mask(MASK[:32] + unused + MASK[37:]), 32, "expected 0", "is 1"
    yield 11, "trained", ".mask", sealed_mask(put(MASK, "<Q", 24, 1)), 24, "2 bits are 1", "trained tokens is 1"


def sealed_rows(data):
    """A table whose checksum is right."""
    return data[:-4] + struct.pack("<I", crc32c(data[:-4]))


def rows_cases():
    """The number of rows is at 112, the checksum at 120; 124 bytes in all. No program reads tables of rows, but the
    library does (`open_row_table`). It makes a table again that breaks one of the rules 1 to 7."""
    def other(rule, what, kind, at, value, expected, found):
        return rule, what, ".rows-4", sealed_rows(put(ROWS, kind, at, value)), at, expected, found

    yield 1, "magic", ".rows-4", ROWS[:7] + b"X" + ROWS[8:], 7, "MILLROWS", ""
    yield 2, "cut", ".rows-4", ROWS[:60], 56, "8 bytes", "only 4"
    yield other(2, "version", "<I", 8, 2, "expected 1", "is 2")
    yield other(2, "block", "<I", 12, 4095, "expected 4096", "is 4095")
    yield other(2, "seq_len", "<q", 16, 0, "1 or more", "is 0")
    yield other(2, "multiple", "<q", 24, 3, "a divisor of the 4 tokens", "is 3")
    yield other(2, "multiple_0", "<q", 24, 0, "a divisor of the 4 tokens", "is 0")
    yield other(2, "first", "<q", 32, -1, "0 or more", "is -1")
    yield 2, "last", ".rows-4", sealed_rows(put(put(ROWS, "<q", 32, 2), "<q", 40, 1)), 40, "2 or more", "is 1"
    yield other(2, "tokens", "<q", 48, -1, "0 or more", "is -1")
    yield other(2, "has_root", "<I", 76, 2, "0 or 1", "is 2")
    yield 3, "long", ".rows-4", ROWS + b"\0", 124, "expected 124", "125 bytes"
    yield 3, "short", ".rows-4", ROWS[:-1], 123, "expected 124", "123 bytes"
    blocks = sealed_rows(put(ROWS, "<q", 40, 4097))
    yield 3, "blocks", ".rows-4", blocks, 124, "expected 132", "124 bytes"
    wrong = put(ROWS, "<q", 112, 3)
    yield 4, "checksum", ".rows-4", wrong, 120, f"expected {crc32c(wrong[:-4]):08x}", f"found {ROWS[:-5:-1].hex()}"
    yield other(5, "negative", "<q", 112, -1, "at least the 0", "is -1")
    falls = blocks[:112] + struct.pack("<qqI", 2, 1, 0)
    yield 5, "falls", ".rows-4", sealed_rows(falls), 120, "at least the 2", "is 1"
    yield other(6, "seq_len", "<q", 16, 8, "expected 4", "is 8")
    yield other(6, "multiple", "<q", 24, 2, "expected 1", "is 2")
    yield other(6, "first", "<q", 32, 1, "expected 0", "is 1")
    yield other(6, "last", "<q", 40, 2, "expected 3", "is 2")
    yield other(6, "idx_size", "<q", 56, 103, "expected 102", "is 103")
    yield other(6, "bin_size", "<q", 64, 18, "expected 16", "is 18")
    yield other(7, "root", "<I", 80, 0, f"expected {SUM[-32:].hex()}", f"is {bytes(4).hex() + SUM[-28:].hex()}")
    no_root = put(ROWS[:80] + bytes(32) + ROWS[112:], "<I", 76, 0)
    yield 7, "lengths", ".rows-4", sealed_rows(put(no_root, "<I", 72, 7)), 72, f"expected {ROWS[75:71:-1].hex()}", \
        "is 00000007"
    # The documents make 2 rows. The document index begins at byte 70 of the .idx.
    yield 8, "rows", ".rows-4", sealed_rows(wrong), (".idx", 70), "expected the 3", "make 2 rows"


def bad_cases():
    """The `.meta` has 2 bad records; the line of the second begins at SECOND."""
    second = BAD.index(b"\n") + 1
    yield 1, "key", ".bad", BAD[:second] + b'{"name' + BAD[second + 6:], second, '{"file": TEXT, "line"', '{"name'
    yield 1, "line", ".bad", BAD.replace(b'"line": 9', b'"line": 0'), second, '"line": 1 or more', '{"file": "prep'
    yield 1, "blank", ".bad", BAD[:second] + b"\n" + BAD[second:], second, '{"file": TEXT', "found ''"
    yield 1, "brace", ".bad", BAD[:-2] + b"\n", second, "...}", '{"file": "prep'
    yield 1, "cut", ".bad", BAD[:-1], len(BAD) - 1, "a line end", "the end of the file"
    yield 2, "few", ".bad", BAD[:second], second, "expected the 2", "found 1"
    yield 2, "many", ".bad", BAD + BAD[:second], len(BAD), "expected the 2", "found another"
    number = BAD.index(b', "byte"', second)
    yield 3, "from_byte", ".bad", BAD[:number] + b', "from_byte": 7' + BAD[number:], number + 2, "expected 0", "is 7"


def state_of(**changes):
    """The state with other values at paths such as `data__0__tokens`; None removes an entry."""
    state = json.loads(json.dumps(STATE))
    for path, value in changes.items():
        *folders, name = path.split("__")
        place = state
        for each in folders:
            place = place[int(each)] if isinstance(place, list) else place[each]
        if value is None:
            del place[name]
        elif isinstance(place, list):
            place[int(name)] = value
        else:
            place[name] = value
    return json.dumps(state).encode()


def state_case(rule, what, data, at, expected, found, last=False):
    """A fault at the first or last place of a text."""
    return rule, what, ".state", data, (data.rindex if last else data.index)(at.encode()), expected, found


def state_cases():
    """The fault is at the name of the option; of an element of a list, at the element."""
    text = json.dumps(STATE).encode()
    yield 1, "cut", ".state", text[:-1], len(text) - 1, "a closing brace", "the end of the text"
    yield state_case(1, "twice", text.replace(b'"seed"', b'"order": "stored", "seed"'), '"order"', "each name once", "",
                     last=True)
    yield 1, "empty", ".state", b"", 0, "a value", "the end of the text"
    yield 2, "list", ".state", b"[1]\n", 0, "expected 1", 'no "millrace_state"'
    yield 2, "no_version", ".state", state_of(millrace_state=None), 0, "expected 1", 'no "millrace_state"'
    yield state_case(2, "version", state_of(millrace_state=2), '"millrace_state"', "expected 1", "version 2")
    yield state_case(3, "text", state_of(seed="5"), '"seed"', "a whole number", "a string")
    yield state_case(3, "fraction", state_of(seq_len=2.5), '"seq_len"', "a whole number below 2^63", "2.5")
    yield state_case(3, "large", state_of(consumed_samples=1 << 63), '"consumed_samples"', "a whole number below 2^63",
                     f"{1 << 63}")
    yield state_case(3, "seed", state_of(seed=-5), '"seed"', "0 to 2^64 - 1", "-5")
    yield state_case(3, "null", state_of(surplus=None).replace(b'"data"', b'"surplus": null, "data"', 1), '"surplus"',
                     "a number", "null")
    yield state_case(3, "flag", state_of(extra_token=1), '"extra_token"', "true or false", "a whole number, 1")
    yield state_case(3, "word", state_of(order=1), '"order"', "a string", "a whole number, 1")
    yield state_case(3, "no_list", state_of(edits={}), '"edits"', "a list", "an object")
    yield state_case(3, "element", state_of(samples=[6, "0", 0]), '"0"', "a whole number", "a string")
    yield state_case(3, "object", state_of(data=[7]), "7", "an object", "a whole number, 7")
    yield state_case(4, "option", state_of(sead=5), '"sead"', "", '"sead"')
    yield state_case(4, "source", state_of(data__0__size=5), '"size"', "", '"data[0].size"')
    yield state_case(4, "edit", state_of(edits__0__at_step=5), '"at_step"', "", '"edits[0].at_step"')
    yield state_case(4, "two_edits", state_of(edits__0__skip_steps=[0, 1]), '"skip_steps"', "", '"edits[0].skip_steps"')
    for name, word, expected in (("order", "megatorn", "instant, megatron or stored"),
                                 ("packing", "best", "none, best_fit"), ("split_part", "dev", "train, valid or test"),
                                 ("blend_rounding", "up", "twice or fused"),
                                 ("sampler", "none", "single, cyclic, full_validation or hybrid")):
        yield state_case(5, name, state_of(**{name: word}), f'"{name}"', expected, f'is "{word}"')
    for name, least in (("seq_len", 0), ("global_batch", 0), ("micro_batch", 0), ("ranks", 0), ("sampled", 0),
                        ("consumed_samples", 0), ("pad_documents_to", 1)):
        yield state_case(6, name, state_of(**{name: least - 1}), f'"{name}"', f"expected {least} to 2^62",
                         f"is {least - 1}")
    yield state_case(6, "most", state_of(consumed_samples=(1 << 62) + 1), '"consumed_samples"', "0 to 2^62",
                     f"{(1 << 62) + 1}")
    yield state_case(6, "surplus", state_of(surplus=-0.5), '"surplus"', "0 or more", "-0.5")
    yield state_case(7, "samples", state_of(samples=[6, 0, 0, 0]), '"samples"', "train, valid and test", "a list of 4")
    yield state_case(7, "sample", state_of(samples=[6, -2, 0]), '"samples"', "-1 to 2^62", "is -2")
    yield state_case(7, "rampup", state_of(rampup_batch=[1, 1]), '"rampup_batch"', "start, increment and samples",
                     "a list of 2")
    yield state_case(7, "rampup_number", state_of(rampup_batch=[1, -1, 4]), '"rampup_batch"', "0 to 2^62", "is -1")
    for name in ("tokens", "sequences", "documents", "bin_bytes", "idx_bytes"):
        yield state_case(8, name, state_of(**{f"data__0__{name}": -1}), f'"{name}"', "0 to 2^62",
                         f"data[0].{name} of the state is -1")
    yield state_case(8, "weight", state_of(data__0__weight=-0.5), '"weight"', "0 or more", "-0.5")
    yield state_case(9, "first_step", state_of(schedule__0__first_step=-1), '"first_step"', "0 to 2^40", "is -1")
    yield state_case(9, "late", state_of(schedule__0__first_step=(1 << 40) + 1), '"first_step"', "0 to 2^40",
                     f"{(1 << 40) + 1}")
    yield state_case(9, "weights", state_of(schedule__0__weights=[1.0, 1.0]), '"sources"', "one for each",
                     "weights has 2")
    yield state_case(9, "sources", state_of(schedule__0__sources=[1]), '"sources"', "data has 1", "names 1")
    yield state_case(9, "weight", state_of(schedule__0__weights=[0]), '"weights"', "above zero", "is 0")
    yield state_case(10, "range", state_of(edits__0__skip_samples=[2]), '"skip_samples"', "two numbers", "a list of 1")
    yield state_case(10, "none", state_of(edits__0__skip_samples=None), '{"since"', "skip_, replay_ or block_", "")
    yield state_case(10, "order", state_of(edits__0__skip_samples=[3, 2]), '{"skip_samples"', "0 to 2^62", "[3, 2]")
    yield state_case(10, "steps", state_of(edits__1__replay_steps=[0, (1 << 40) + 1]), '{"replay_steps"', "0 to 2^40",
                     f"[0, {(1 << 40) + 1}]")
    yield state_case(10, "since", state_of(edits__0__since=-1), '{"skip_samples"', "0 to 2^62", "since is -1")
    yield state_case(10, "documents", text.replace(b"skip_samples", b"skip_documents"), '{"skip_documents"',
                     "only documents can be blocked", "skip_documents")
    yield state_case(10, "at", state_of(edits__1__at_step=0), '{"replay_steps"', "1 or later", "at is 0")
    yield state_case(10, "source", state_of(edits__2__source=""), '{"block_documents"', "the prefix", "source is empty")
    yield state_case(10, "why", state_of(edits__0__why=None), '{"skip_samples"', "a reason", "why is empty")


def files():
    lines = ["file\tfaulty\toffset\texpected\tfound\n"]
    for page, cases in (("mmidx", index_cases), ("sum", sum_cases), ("src", src_cases), ("meta", meta_cases),
                        ("token_arrays", token_array_cases), ("mask", mask_cases), ("rows", rows_cases),
                        ("bad", bad_cases), ("npy", npy_cases), ("megatron_cache", cache_cases),
                        ("state", state_cases)):
        for rule, what, ending, data, at, expected, found in cases():
            faulty, offset = at if isinstance(at, tuple) else (ending, at)
            name = f"{page}_{rule}_{what}{ending}"
            yield name, data
            lines.append(f"{name}\t{faulty}\t{offset}\t{expected or '-'}\t{found or '-'}\n")
    yield "findings.tsv", "".join(lines).encode()


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    made = dict(files())
    wrong = [path.name for path in HERE.iterdir() if path.suffix != ".py" and path.name not in made and path.is_file()]
    for name, data in made.items():
        path = HERE / name
        if not check:
            path.write_bytes(data)
        elif not path.exists() or path.read_bytes() != data:
            wrong.append(name)
    if wrong:
        sys.exit("other bytes now: " + ", ".join(sorted(wrong)))


if __name__ == "__main__":
    main()
