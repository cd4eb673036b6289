#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the files of this folder to datasets and back, with inspect_dataset.

    check.py BIN    BIN is the folder of the programs

The datasets must have the documents in documents.json, and the files that are made from them the bytes of these
files. Also refuses what is damaged: each file cut by one byte, and more.
"""
import gzip
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EOD = "7"
CASES = [  # name of the file, its format, flags to read it, flags to write it again
    ("datatrove_2.ds", "nanoset", (), ()),
    ("datatrove_4.ds", "nanoset", (), ()),
    ("dolma_2.npy", "olmo", ("--from", "olmo", "--dtype", "uint16", "--lossy"), ()),
    ("dolma_4.npy", "olmo", ("--from", "olmo", "--dtype", "uint32", "--lossy"), ()),
    ("llm_c_2.bin", "llm.c", ("--eod-id", EOD), ("--eod-id", EOD)),
    ("llm_c_4.bin", "llm.c", ("--eod-id", EOD), ("--eod-id", EOD)),
    ("nanogpt.bin", "nanogpt", ("--from", "nanogpt", "--dtype", "uint16", "--eod-id", EOD), ("--eod-id", EOD)),
]


def read_megatron(prefix):
    """By formats/spec/mmidx.md, with one number at a time."""
    idx, bin_ = pathlib.Path(f"{prefix}.idx").read_bytes(), pathlib.Path(f"{prefix}.bin").read_bytes()
    code, sequences, ends = struct.unpack_from("<BQQ", idx, 17)
    lengths = struct.unpack_from(f"<{sequences}i", idx, 34)
    pointers = struct.unpack_from(f"<{sequences}q", idx, 34 + 4 * sequences)
    index = struct.unpack_from(f"<{ends}q", idx, 34 + 12 * sequences)
    letter = {8: "H", 4: "i"}[code]
    read = [list(struct.unpack_from(f"<{n}{letter}", bin_, at)) for n, at in zip(lengths, pointers)]
    return [[t for sequence in read[a:b] for t in sequence] for a, b in zip(index, index[1:])]


def content(path):
    data = path.read_bytes()
    if path.suffix == ".gz":  # without the columns that a dataset has no place for, and without empty documents
        rows = [line.split(",")[:2] for line in gzip.decompress(data).decode().splitlines()]
        return [row for row in rows if row[0] != row[1]]
    return data


class Checker:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.problems = []
        self.checks = 0

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, check=False, text=True)
        return done.returncode, done.stdout, done.stderr

    def expect(self, holds, what):
        self.checks += 1
        if not holds:
            self.problems.append(what)

    def there_and_back(self, name, form, reading, writing):
        source, made, back = HERE / name, self.folder / "made", self.folder / "back"
        code, _, error = self.run("convert", source, *reading, "--output-prefix", made, "--overwrite")
        self.expect(code == 0, f"{name}: {error}")
        if code:
            return
        wanted = json.loads((HERE / "documents.json").read_text())["4" if "_4" in name else "2"]
        if form in ("llm.c", "nanogpt"):
            wanted = [document for document in wanted if document]  # no mark tells of an empty document
        self.expect(read_megatron(made) == wanted, f"{name}: {read_megatron(made)}, expected {wanted}")
        code, out, error = self.run("verify", made)
        self.expect(code == 0, f"{name}: verify: {out}{error}")
        code, _, error = self.run("convert", made, "--to", form, *writing, "--output-prefix", back, "--lossy",
                                  "--overwrite")
        self.expect(code == 0, f"{name}: back: {error}")
        stem = name.split(".")[0]
        for file in sorted(HERE.glob(f"{stem}.*")):
            again = self.folder / file.name.replace(stem, "back")
            self.expect(again.exists() and content(again) == content(file), f"{file.name}: other bytes after a round trip")
            again.unlink(missing_ok=True)

    def refused(self, name, change, reading, text, side=""):
        """A copy of `name`, and of the files beside it, whose file `name + side` is changed."""
        stem = name.split(".")[0]
        for file in HERE.glob(f"{stem}.*"):
            (self.folder / file.name).write_bytes(file.read_bytes())
        damaged = self.folder / (name + side)
        damaged.write_bytes(change(damaged.read_bytes()))
        before = sorted(self.folder.iterdir())
        code, out, error = self.run("convert", self.folder / name, *reading, "--output-prefix", self.folder / "refused")
        self.expect(code == 1 and not out, f"{name}{side}: exit {code}, expected 1: {error}")
        self.expect(text in error and damaged.name.split(".")[0] in error, f"{name}{side}: expected '{text}': {error}")
        self.expect(sorted(self.folder.iterdir()) == before, f"{name}{side}: left files behind")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        check = Checker(pathlib.Path(sys.argv[1]) / "inspect_dataset", pathlib.Path(folder))
        for case in CASES:
            check.there_and_back(*case)
        cut = lambda data: data[:-1]  # noqa: E731
        number = lambda at, kind, value: lambda data: data[:at] + struct.pack(kind, value) + data[at + struct.calcsize(kind):]  # noqa: E731
        llm_c, olmo = ("--eod-id", EOD), ("--from", "olmo", "--dtype", "uint16", "--lossy")
        rows = lambda *lines: lambda _: gzip.compress("\n".join(lines).encode())  # noqa: E731
        check.refused("datatrove_2.ds", cut, (), "expected a multiple of 2")
        check.refused("datatrove_2.ds", lambda data: data[:-2], (), "it counts 11 tokens, but")
        check.refused("datatrove_2.ds", cut, (), "expected a multiple of 8", ".index")
        check.refused("datatrove_2.ds", number(16, "<Q", 4), (), "the end of a document is token 4, expected 5 to 11", ".index")
        check.refused("datatrove_2.ds", number(16, "<Q", 2**63), (), "token 9223372036854775808, expected 5 to 11", ".index")
        check.refused("datatrove_2.ds", lambda data: data[:-8], (), "the last document ends at token 9, expected 11", ".index")
        check.refused("datatrove_2.ds", lambda _: b"gpt2\n11", (), "expected TOKENIZER|2 or TOKENIZER|4", ".metadata")
        check.refused("datatrove_2.ds", lambda _: b"gpt2|3\n11", (), "'gpt2|3'", ".metadata")
        check.refused("datatrove_2.ds", lambda _: b"gpt2|2\nx", (), "expected the number of tokens", ".metadata")
        check.refused("datatrove_4.ds", number(0, "<I", 2**31), (), "token 0 is 2147483648")
        check.refused("llm_c_2.bin", cut, llm_c, "expected 1046 for a header and 11 tokens")
        check.refused("llm_c_2.bin", lambda data: data[:1000], llm_c, "has 1024 bytes, found only 1000")
        check.refused("llm_c_2.bin", number(4, "<i", 2), llm_c, "expected version 1 of magic 20240520, found 2")
        check.refused("llm_c_2.bin", number(8, "<i", -1), llm_c, "the token count is -1")
        check.refused("llm_c_2.bin", number(0, "<i", 20240522), (*llm_c, "--from", "llm.c"), "its evaluation files")
        check.refused("llm_c_2.bin", lambda data: data, (), "does not say where documents end; pass --eod-id N")
        check.refused("llm_c_2.bin", number(0, "<i", 1), (), "cannot be recognized; pass --from")
        check.refused("dolma_2.npy", cut, olmo, "expected a multiple of 2")
        check.refused("dolma_2.npy", lambda _: b"\x93NUMPY\x01\0", olmo, "has a header of numpy")
        check.refused("dolma_2.npy", lambda data: data, ("--from", "olmo"), "pass --dtype uint16 or uint32")
        check.refused("dolma_2.npy", lambda data: data, (*olmo[:-1],), "ids and sources of documents; pass --lossy")
        for lines, text in ((("0,4", "5,11"), "line 2 begins a document at token 5, expected 4"),
                            (("0,4", "4,12"), "line 2 ends a document at token 12, expected 4 to 11"),
                            (("0,4", "4,3"), "line 2 ends a document at token 3"), (("0,4",), "belong to no document"),
                            (("begin,end",), "line 1 is 'begin,end', expected END or BEGIN,END")):
            broken = rows(*lines)
            for file in ("dolma_2.npy",):
                (check.folder / "dolma_2.csv.gz").unlink(missing_ok=True)
                copy = check.folder / "rows"
                copy.mkdir(exist_ok=True)
                (copy / file).write_bytes((HERE / file).read_bytes())
                (copy / "dolma_2.csv.gz").write_bytes(broken(b""))
                code, out, error = check.run("convert", copy / file, *olmo, "--output-prefix", copy / "refused")
                check.expect(code == 1 and text in error, f"{lines}: exit {code}, expected '{text}': {error}")
        print("\n".join(check.problems))
        print(f"{check.checks} checks, {len(check.problems)} problems")
        sys.exit(1 if check.problems or check.checks < 100 else 0)


if __name__ == "__main__":
    main()
