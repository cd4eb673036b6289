#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `inspect_dataset` finds in each file of this folder with findings.tsv: `verify` in a dataset, `convert` in
token files of other programs.

    check.py BIN    BIN is the folder of the programs

A file takes the place of the one with its ending in an undamaged dataset, which must verify. A "-" in the table means
that the message does not name this value. Fails at fewer than 60 files, so that an empty table is no success.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "sidecars"))
from sidecar_formats import encode_sum  # noqa: E402

GOLDEN = HERE.parent
TOKEN_ARRAYS = {  # the ending of a damaged file, the files that belong to it, the flags that read them
    ".ds": ("datatrove_2", (".ds", ".ds.index", ".ds.metadata"), ()),
    ".npy": ("dolma_2", (".npy", ".csv.gz"), ("--from", "olmo", "--dtype", "uint16", "--lossy")),
    ".bin": ("llm_c_2", (".bin",), ("--from", "llm.c", "--eod-id", "7")),
}
BASES = {  # the dataset that files of a page are put into, and its other files
    "mmidx": ("idx_uint16_3docs", ()),
    "sum": ("idx_uint16_3docs", (".sum",)),
    "src": ("preprocess_lines", (".src",)),
    "meta": ("preprocess_lines", (".src", ".meta", ".sum")),
}


def array_of(ending):
    return {".csv.gz": ".npy"}.get(ending, ".ds" if ending.startswith(".ds") else ending)


def make(folder, page, ending):
    prefix = folder / "data"
    if page == "token_arrays":
        base, endings, _ = TOKEN_ARRAYS[array_of(ending)]
        for each in endings:
            shutil.copyfile(GOLDEN / "convert" / (base + each), f"{prefix}{each}")
        return prefix
    base, others = BASES[page]
    for ending in (".bin", ".idx"):
        shutil.copyfile(GOLDEN / "megatron" / (base + ending), f"{prefix}{ending}")
    for ending in others:
        source = GOLDEN / "sidecars" / (base + ending)
        if source.exists():
            shutil.copyfile(source, f"{prefix}{ending}")
        else:
            pathlib.Path(f"{prefix}{ending}").write_bytes(
                encode_sum(*(pathlib.Path(f"{prefix}{each}").read_bytes() for each in (".bin", ".idx"))))
    return prefix


def look(program, page, prefix, ending):
    """The exit code of the program and its answer; a fault of either has a file, an offset, and a sentence."""
    words = ["verify", prefix]
    if page == "token_arrays":
        array = array_of(ending)
        words = ["convert", f"{prefix}{array}", *TOKEN_ARRAYS[array][2], "--output-prefix", f"{prefix}_new", "--overwrite"]
    done = subprocess.run([program, *words, "--json"], capture_output=True, check=False, text=True)
    answer = json.loads(done.stdout) if done.stdout else {"error": done.stderr}
    error = answer.get("error")
    if isinstance(error, dict) and error["kind"] == "format":
        answer["fault"] = {"file": error["file"], "offset_bytes": error["offset_bytes"], "what": error["message"]}
    return done.returncode, answer


def problem_of(program, row):
    name, faulty, offset, expected, found = row
    page = next(page for page in (*BASES, "token_arrays") if name.startswith(page))
    ending = name[name.index("."):]
    with tempfile.TemporaryDirectory() as folder:
        prefix = make(pathlib.Path(folder), page, ending)
        code, answer = look(program, page, prefix, ending)
        if code != 0:
            return f"the undamaged dataset is refused: {answer}"
        shutil.copyfile(HERE / name, f"{prefix}{ending}")
        code, answer = look(program, page, prefix, ending)
        fault = answer.get("fault")
        if code != 1 or fault is None:
            return f"exit {code}, expected 1 and a fault: {answer}"
        if fault["file"] != f"{prefix}{faulty}":
            return f"the fault is in {fault['file']}, expected *{faulty}: {fault['what']}"
        if fault["offset_bytes"] != int(offset):
            return f"the fault is at byte {fault['offset_bytes']}, expected {offset}: {fault['what']}"
        for text in (expected, found):
            if text != "-" and text not in fault["what"]:
                return f"expected a finding with '{text}': {fault['what']}"
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = pathlib.Path(sys.argv[1]) / "inspect_dataset"
    rows = [line.split("\t") for line in (HERE / "findings.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    problems = [f"{row[0]}: {problem}" for row in rows if (problem := problem_of(program, row))]
    print("\n".join(problems))
    print(f"{len(rows)} damaged files, {len(problems)} with another finding than expected")
    sys.exit(1 if problems or len(rows) < 60 else 0)


if __name__ == "__main__":
    main()
