#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the data files of two versions of millrace, and resumes interrupted runs of the old one with the new one.

usage: compare_builds.py OLD NEW [--corpora FOLDER] [--tokenizers FOLDER] [--keep FOLDER] [--limit-mb N]

  OLD, NEW      a commit, which is built in a clone of its own; or a source folder whose build/ holds
                the programs and the libraries
  --corpora     folder of .jsonl and .jsonl.gz files, used beside scripts/sample (default: ../shared/corpora)
  --tokenizers  folder of vocabularies (default: ../shared/tokenizers); those that are absent are left out
  --keep        a folder for all files that are made, which stays (default: a temporary one)
  --limit-mb    text per corpus, in MB (default: 4)

Each case is a list of commands. It runs with both versions, and all data files must be equal byte for byte.
Interrupted runs: the old preprocess_data is killed at several moments. The new one resumes, and must write what an
uninterrupted run writes. States: the old library serves batches of a blend and saves its state. The new one
continues from that state, and must serve the batches that the old one serves next.

Prints one line per case, and exits with 1 if anything differs.
"""
import argparse
import gzip
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("preprocess_data", "merge_datasets", "inspect_dataset")
# # Suffixes of files that contain messages, not data.
NOT_DATA = {".log", ".out"}


def data_files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix not in NOT_DATA}


def first_difference(old, new):
    """Returns why two dictionaries of files differ, or an empty text if they are equal."""
    for name in sorted(old.keys() ^ new.keys()):
        return f"only the {'old' if name in old else 'new'} version made {name}"
    for name, data in old.items():
        if data != new[name]:
            at = next((i for i, (a, b) in enumerate(zip(data, new[name])) if a != b), min(len(data), len(new[name])))
            return f"{name}: {len(data)} and {len(new[name])} bytes, first difference at byte {at}"
    return ""


def built(named, work):
    """The source folder of a version, which is built first if it is a commit of this checkout."""
    if pathlib.Path(named).is_dir():
        return pathlib.Path(named).resolve()
    checkout = pathlib.Path(__file__).resolve().parents[2]
    known = subprocess.run(["git", "-C", checkout, "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}"],
                           capture_output=True, text=True, check=False)
    if known.returncode != 0:
        sys.exit(f"compare_builds.py: {named} is neither a folder nor a commit of {checkout}")
    root = work / "sources" / named
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", checkout, root], check=True)
    subprocess.run(["git", "-C", root, "checkout", "--quiet", known.stdout.strip()], check=True)
    subprocess.run([root / "scripts/quickstart"], check=True, stdout=sys.stderr)
    return root


class version:
    def __init__(self, name, root, work):
        self.name, self.root, self.work = name, root, work
        self.bin = root / "build/bin"
        for program in PROGRAMS:
            if not (self.bin / program).exists():
                sys.exit(f"compare_builds.py: {self.bin / program} is missing; build it first")

    def folder(self, case, inputs):
        """Creates the folder of a case, with links to the inputs. Both versions use the same link names."""
        folder = self.work / self.name / case
        folder.mkdir(parents=True)
        for path in inputs:
            (folder / path.name).symlink_to(path)
        return folder

    def run(self, folder, command, expect=0):
        program, *words = command
        with open(folder / "run.log", "ab") as log:
            made = subprocess.run([self.bin / program, *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log, check=False)
        if made.returncode != expect:
            text = (folder / "run.log").read_text(errors="replace")
            raise RuntimeError(f"{self.name}: {' '.join(map(str, command))}: exit {made.returncode}\n{text[-2000:]}")

    def compile_serve(self, source):
        """Compiles the program that serves batches and saves states, with the library of this version."""
        program = self.work / f"serve_{self.name}"
        libraries = [path for name in ("loader", "dataset")
                     for path in [self.root / f"build/{name}/libmillrace_{name}.a"] if path.exists()]
        flags = ["-std=c++20", "-O1", f"-I{self.root}/formats/include", f"-I{self.root}/dataset/include",
                 f"-I{self.root}/loader/include"]
        ring = ["-luring"] if libraries and b"io_uring" in libraries[0].read_bytes() else []
        subprocess.run(["c++", *flags, source, "-o", program, *libraries, *ring, "-lpthread", "-ldl"], check=True)
        return program


def tokenizers(folder):
    """Flags by name, for the vocabularies that exist."""
    found = {"bytes": ["--tokenizer-type", "ByteLevelTokenizer"]}
    known = {
        "gpt2": ["GPT2BPETokenizer", "--vocab-file", "vocab.json", "--merge-file", "merges.txt"],
        "llama3": ["HuggingFaceTokenizer", "--tokenizer-model", "tokenizer.json"],
        "qwen2": ["HuggingFaceTokenizer", "--tokenizer-model", "tokenizer.json"],
        "llama2": ["Llama2Tokenizer", "--tokenizer-model", "tokenizer.model"],
        "nai_t5": ["SentencePieceTokenizer", "--tokenizer-model", "tokenizer.model"],
        "bert_base_cased": ["HuggingFaceTokenizer", "--tokenizer-model", "tokenizer.json"],
    }
    for name, (kind, *flags) in known.items():
        files = [folder / name / word for word in flags if not word.startswith("--")]
        if all(path.exists() for path in files):
            found[name] = ["--tokenizer-type", kind,
                           *(word if word.startswith("--") else folder / name / word for word in flags)]
    return found


def cases(corpora, kinds):
    """(name, commands) of each case. Inputs are in the current folder."""
    byte_level = kinds["bytes"]
    for corpus in corpora:
        stem = corpus.name.split(".")[0]
        for kind, flags in kinds.items():
            eod = [] if "HuggingFaceTokenizer" in flags else ["--append-eod"]  # the file names no eod
            yield f"{stem}-{kind}", [["preprocess_data", "--input", corpus.name, "--output-prefix", "p", *flags, *eod,
                                      "--workers", "2", "--on-bad-record", "quarantine"]]
    a, b = corpora[0].name, corpora[1].name
    both = ["--input", a, b, "--on-bad-record", "skip", *byte_level]
    yield "plain", [["preprocess_data", *both, "--output-prefix", "p", "--no-provenance", "--no-checksums"]]
    yield "sentences", [["preprocess_data", *both, "--output-prefix", "p", "--split-sentences"]]
    for way in ([], ["--keep-sequential-samples"]):
        yield f"partitions{len(way)}", [["preprocess_data", *both, "--output-prefix", "p", "--partitions", "3", *way]]
    tasks = [["preprocess_data", *both, "--output-prefix", "parts/p", "--task", f"{i}/3"] for i in range(3)]
    yield "tasks", [*tasks, ["merge_datasets", "--input", "parts", "--output-prefix", "p_text_document"]]
    two = [["preprocess_data", "--input", name, "--output-prefix", f"parts/{i}", *byte_level, "--on-bad-record",
            "skip"] for i, name in enumerate((a, b))]
    merge = ["merge_datasets", "--input", "parts", "--output-prefix", "m"]
    yield "merge", [*two, merge]
    yield "shuffle", [*two, [*merge, "--shuffle-documents", "7"]]
    prepare = ["inspect_dataset", "prepare-cache", "--data-path", "0.7", "parts/0_text_document", "0.3",
               "parts/1_text_document", "--split", "90,8,2", "--seq-length", "64", "--train-samples", "500",
               "--valid-samples", "20", "--test-samples", "5", "--seed", "1234", "--data-cache-path", "cache",
               "--tokenizer-description", "tokenizer.json"]
    yield "caches", [*two, prepare]
    yield "packed", [*two, ["inspect_dataset", "audit", "--data-path", "1", "parts/0_text_document", "1",
                            "parts/1_text_document", "--order", "instant", "--packing", "best_fit", "--seq-length", "256",
                            "--train-samples", "40"]]


def compare_cases(old, new, corpora, kinds):
    faults = []
    for name, commands in cases(corpora, kinds):
        made = []
        try:
            for each in (old, new):
                folder = each.folder(name, corpora)
                (folder / "parts").mkdir()
                (folder / "tokenizer.json").write_text('{"class": "Bytes"}')
                for command in commands:
                    each.run(folder, command)
                made.append(data_files(folder))
            why = first_difference(*made)
        except RuntimeError as e:
            why = str(e)
        size = sum(map(len, made[0].values())) if made else 0
        print(f"{'DIFFERS' if why else 'equal':8} {name}: " + (why or f"{len(made[0])} files, {size:,} bytes"), flush=True)
        faults += [name] if why else []
    return faults


def compare_resumed(old, new, corpora, kinds):
    """Kills the old version when it has written a share of the tokens, and resumes with the new version."""
    kind = "gpt2" if "gpt2" in kinds else "bytes"
    command = ["--input", *(c.name for c in corpora), "--output-prefix", "p", "--on-bad-record", "quarantine",
               *kinds[kind], "--workers", "2"]
    whole = old.folder("resume-whole", corpora)
    old.run(whole, ["preprocess_data", *command])
    wanted, faults, interrupted = data_files(whole), [], 0
    tokens = len(wanted["p_text_document.bin"])
    for i, share in enumerate((0.05, 0.2, 0.35, 0.5, 0.65, 0.8)):
        name = f"resume-{i}"
        folder = old.folder(name, corpora)
        written = folder / "p_text_document.bin.partial"
        with open(folder / "run.log", "wb") as log:
            run = subprocess.Popen([old.bin / "preprocess_data", *map(str, command)], cwd=folder, stdout=log, stderr=log)
            while run.poll() is None and not (written.exists() and written.stat().st_size > share * tokens):
                time.sleep(0.001)
            (run.terminate if i % 3 == 2 else run.kill)()
            code = run.wait()
        unfinished = code != 0
        interrupted += unfinished
        try:
            if unfinished:
                new.run(folder, ["preprocess_data", *command, "--resume"])
            why = first_difference(wanted, data_files(folder))
        except RuntimeError as e:
            why = str(e)
        print(f"{'DIFFERS' if why else 'equal':8} {name}: exit {code} after {share:.0%} of the tokens, "
              + (why or ("resumed" if unfinished else "had finished")), flush=True)
        faults += [name] if why else []
    if interrupted < 3:
        faults.append("resume: fewer than three runs were interrupted")
    return faults


def compare_states(old, new, corpora, kinds):
    source = pathlib.Path(__file__).parent / "serve.cpp"
    serve = {each: each.compile_serve(source) for each in (old, new)}
    folder = old.folder("states", corpora)
    for i, corpus in enumerate((corpora[0], corpora[-1])):
        old.run(folder, ["preprocess_data", "--input", corpus.name, "--output-prefix", f"d{i}", *kinds["bytes"],
                         "--on-bad-record", "skip"])
    data = ["d0_text_document", "0.7", "d1_text_document", "0.3"]
    faults = []
    for order in ("instant", "stored"):
        def served(each, count, state_in, state_out):
            made = subprocess.run([serve[each], order, str(count), state_in, state_out, *data], cwd=folder, check=True,
                                  capture_output=True, text=True).stdout
            return made, (folder / state_out).read_text()
        started = [served(each, 20, "-", f"{order}-{each.name}.json") for each in (old, new)]
        went_on = [served(each, 20, f"{order}-old.json", f"{order}-{each.name}-2.json") for each in (old, new)]
        why = "batches or states differ" if started[0] != started[1] or went_on[0] != went_on[1] else ""
        lines = went_on[0][0].count("\n")
        if lines != 20 or went_on[0][0] == started[0][0]:
            why = why or f"served {lines} batches after the state, expected 20 others"
        print(f"{'DIFFERS' if why else 'equal':8} state-{order}: {why or '20 batches, state, 20 more'}", flush=True)
        faults += [f"state-{order}"] if why else []
    return faults


def inputs_of(root, corpora, work, limit):
    """Copies the sample and the corpora. Cuts each at the end of a line, after at most `limit` bytes."""
    folder = work / "inputs"
    folder.mkdir(parents=True)
    made = []
    for path in [*sorted(corpora.glob("*.jsonl*")), *sorted((root / "scripts/sample").glob("*.jsonl"))]:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if len(text) > limit:
            text = text[:text.rindex(b"\n", 0, limit) + 1]
        target = folder / path.name
        target.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
        made.append(target)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--corpora", type=pathlib.Path)
    parser.add_argument("--tokenizers", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--limit-mb", type=int, default=4)
    args = parser.parse_args()
    shared = pathlib.Path(__file__).resolve().parents[3] / "shared"
    work = args.keep.resolve() if args.keep else pathlib.Path(tempfile.mkdtemp(prefix="compare_builds-"))
    try:
        old_root, new_root = built(args.old, work), built(args.new, work)
        old, new = version("old", old_root, work), version("new", new_root, work)
        corpora = inputs_of(new_root, args.corpora or shared / "corpora", work, args.limit_mb << 20)
        kinds = tokenizers((args.tokenizers or shared / "tokenizers").resolve())
        print(f"{len(corpora)} corpora, tokenizers: {' '.join(kinds)}", flush=True)
        faults = compare_cases(old, new, corpora, kinds)
        faults += compare_resumed(old, new, corpora, kinds)
        faults += compare_states(old, new, corpora, kinds)
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    print("no difference" if not faults else f"{len(faults)} differ: {', '.join(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
