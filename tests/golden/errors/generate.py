#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes damaged files, one or more per rule of formats/spec, and findings.tsv, the findings that are expected.

    generate.py           writes the files again
    generate.py --check   fails if it would now write other bytes

The name of a file is PAGE_RULE_WHAT, with the number of the rule under "What a reader must check". Everything is made
from Megatron's files and from `sidecar_formats.py`, which follows only the specification. Offsets and values in the
findings come from the pages, not from a run of this project's code. Rule 15 of mmidx cannot be broken by a small file.
"""
import gzip
import hashlib
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sidecars"))
from sidecar_formats import encode_meta, encode_src, encode_sum  # noqa: E402

MEGATRON, SIDECARS, CONVERT = (HERE.parent / name for name in ("megatron", "sidecars", "convert"))
IDX, BIN = ((MEGATRON / f"idx_uint16_3docs{end}").read_bytes() for end in (".idx", ".bin"))
SUM = encode_sum(BIN, IDX)
SRC = (SIDECARS / "preprocess_lines.src").read_bytes()
META = json.loads((SIDECARS / "preprocess_lines.meta").read_bytes())


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
    yield 3, "version", ".src", put(SRC, "<I", 8, 2), 8, "version 1", "found 2"
    yield 4, "group", ".src", put(SRC, "<I", 12, 32), 12, "64 documents", "found 32"
    yield 5, "documents", ".src", put(SRC, "<Q", 16, 1000), 16, "131 bytes", "1000 documents"
    yield 5, "payload", ".src", put(SRC, "<Q", 24, 1000), 24, "131 bytes", "1000 bytes"
    yield 5, "few_bytes", ".src", put(SRC, "<Q", 16, 30), 24, "30 documents", "29 bytes"
    yield 7, "names_size", ".src", put(SRC, "<Q", 40, 25), 40, "rest of the file has 26", "25 bytes"
    yield 8, "inputs", ".src", put(SRC, "<Q", 32, 100), 32, "26 bytes", "100 inputs"
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
    begins = meta_of(inputs__0__begin=5)
    yield 4, "begin", ".meta", begins, begins.index(b'{"path"'), "", "begins in the middle"
    yield meta_case(5, "bin_bytes", meta_of(bin_bytes=563), "bin_bytes", "282 tokens of 2 bytes", "563")
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


def files():
    lines = ["file\tfaulty\toffset\texpected\tfound\n"]
    for page, cases in (("mmidx", index_cases), ("sum", sum_cases), ("src", src_cases), ("meta", meta_cases),
                        ("token_arrays", token_array_cases)):
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
