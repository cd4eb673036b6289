#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what our programs find in each file of this folder with findings.tsv.

    check.py BIN    BIN is the folder of the programs

    page                          program
    mmidx, sum, src, meta, mask   inspect_dataset verify
    token_arrays                  inspect_dataset convert
    npy                           inspect_dataset where, which reads a cache of Megatron
    megatron_cache                the same, and from rule 4 on inspect_dataset prepare-cache --verify
    state                         inspect_dataset where --state
    bad                           merge_datasets

A file takes the place of the one with its ending in an undamaged dataset, which must pass. A "-" in the table means
that the message does not name this value. No program reads a table of rows, so the files of that page are left to
tests/golden/dataset/damaged_rows_test.cpp. Fails at fewer than 200 files, so that an empty table is no success.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "sidecars"))
import cache_cases  # noqa: E402
import generate  # noqa: E402
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
    "mask": ("idx_int32", (".mask",)),
    "bad": ("preprocess_lines", (".src", ".meta", ".sum", ".bad")),
    "state": ("idx_uint16_3docs", (".state",)),
    "npy": ("idx_uint16_3docs", ()),
    "megatron_cache": ("idx_uint16_3docs", ()),
}
PAGES = (*BASES, "token_arrays")
CACHE = ("--data-path", "data", *cache_cases.FLAGS, "--data-cache-path", "cache", "--tokenizer-description",
         "tokenizer.json")


def array_of(ending):
    return {".csv.gz": ".npy"}.get(ending, ".ds" if ending.startswith(".ds") else ending)


def path_of(page, ending):
    """Where a file with this ending belongs, in the folder in which the programs run."""
    if page in ("npy", "megatron_cache"):
        return f"cache/{cache_cases.NAME}{ending[1:]}"
    return f"in/data{ending}" if page == "bad" else f"data{ending}"


def undamaged(page, base, folder):
    """Yields ending and bytes of each file of a dataset."""
    bin_file, idx_file = ((GOLDEN / "megatron" / (base + ending)).read_bytes() for ending in (".bin", ".idx"))
    yield ".bin", bin_file
    yield ".idx", idx_file
    made = {".sum": encode_sum(bin_file, idx_file), ".mask": generate.MASK, ".bad": generate.BAD,
            ".state": json.dumps(generate.STATE).encode()}
    if page == "bad":
        made[".meta"] = generate.meta_of(on_bad_record="quarantine", counts__lines=20, inputs__0__lines=20,
                                         counts__bad_records__invalid_json=2)
    for ending in BASES[page][1]:
        yield ending, made[ending] if ending in made else (GOLDEN / "sidecars" / (base + ending)).read_bytes()


def make(folder, page, ending):
    if page == "token_arrays":
        base, endings, _ = TOKEN_ARRAYS[array_of(ending)]
        for each in endings:
            shutil.copyfile(GOLDEN / "convert" / (base + each), folder / f"data{each}")
        return
    for part in ("in", "cache"):
        (folder / part).mkdir()
    place = "in/data" if page == "bad" else "data"
    for each, data in undamaged(page, BASES[page][0], folder):
        (folder / f"{place}{each}").write_bytes(data)
    if page in ("npy", "megatron_cache"):
        (folder / "tokenizer.json").write_text(json.dumps(cache_cases.TOKENIZER), encoding="utf-8")
        for each, data in cache_cases.UNDAMAGED.items():
            (folder / path_of(page, each)).write_bytes(data)


def words_of(page, rule, ending):
    if page == "token_arrays":
        array = array_of(ending)
        return ("inspect_dataset", "convert", f"data{array}", *TOKEN_ARRAYS[array][2], "--output-prefix", "new",
                "--overwrite")
    if page == "bad":
        return "merge_datasets", "--input", "in", "--output-prefix", "merged", "--overwrite"
    if page == "megatron_cache" and rule >= 4:
        return "inspect_dataset", "prepare-cache", *CACHE, "--verify"
    if page in ("npy", "megatron_cache"):
        return "inspect_dataset", "where", *CACHE, "--order", "megatron", "--step", "0"
    if page == "state":
        return ("inspect_dataset", "where", "data", "--order", "instant", "--seq-length", "2", "--train-samples", "6",
                "--state", "data.state", "--step", "0")
    return "inspect_dataset", "verify", "data"


def look(folder, bin_folder, words):
    """The exit code of the program and its answer; a fault of either has a file, an offset, and a sentence."""
    done = subprocess.run([bin_folder / words[0], *words[1:], "--json"], cwd=folder, capture_output=True, check=False,
                          text=True)
    answer = json.loads(done.stdout) if done.stdout else {"error": done.stderr}
    error = answer.get("error")
    if isinstance(error, dict):
        # "FILE: ... (at byte N)"; if a cache cannot be used, there are words around it.
        found = re.search(r"(?:cannot be used: )?([^ ]+): (.*) \(at byte (\d+)\)", error["message"], re.DOTALL)
        if found:
            answer["fault"] = {"file": found[1], "offset_bytes": int(found[3]), "what": found[2]}
        if error["kind"] == "format":
            answer["fault"] |= {"file": error["file"], "offset_bytes": error["offset_bytes"]}
    return done.returncode, answer


passed = set()  # the words that find no fault in an undamaged dataset


def problem_of(bin_folder, row):
    name, faulty, offset, expected, found = row
    page = next(page for page in PAGES if name.startswith(page + "_"))
    rule = int(name[len(page) + 1:].split("_")[0])
    ending = name[name.index("."):]
    words = words_of(page, rule, ending)
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        make(folder, page, ending)
        if (page, words) not in passed:
            code, answer = look(folder, bin_folder, words)
            if code != 0:
                return f"the undamaged dataset is refused: {answer}"
            if any(each["built"] for each in answer.get("datasets", []) if "built" in each):
                return f"the undamaged cache was not used: {answer}"
            passed.add((page, words))
        shutil.copyfile(HERE / name, folder / path_of(page, ending))
        code, answer = look(folder, bin_folder, words)
        fault = answer.get("fault")
        if code != 1 or fault is None:
            return f"exit {code}, expected 1 and a fault: {answer}"
        if fault["file"] != path_of(page, faulty):
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
    bin_folder = pathlib.Path(sys.argv[1]).resolve()
    rows = [line.split("\t") for line in (HERE / "findings.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    rows = [row for row in rows if not row[0].startswith("rows_")]
    problems = [f"{row[0]}: {problem}" for row in rows if (problem := problem_of(bin_folder, row))]
    print("\n".join(problems))
    print(f"{len(rows)} damaged files, {len(problems)} with another finding than expected")
    sys.exit(1 if problems or len(rows) < 200 else 0)


if __name__ == "__main__":
    main()
