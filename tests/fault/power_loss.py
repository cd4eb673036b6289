#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests preprocess_data against power losses, by replaying its system calls.

A kill preserves the page cache; a power loss does not. So the script records a run under strace, with
all bytes that the run writes. For each moment between two system calls, it builds the folders that a
power loss at that moment could leave. In each of these folders, `preprocess_data --resume` must end with
exactly the files of an undisturbed run, including the sidecars.

The script relies only on what POSIX guarantees. The bytes of a file are safe up to the start of the
file's last completed fsync or fdatasync. The names in a folder are safe up to the start of the folder's
last completed fsync. Some file systems, such as ext4, keep more; the script does not rely on that. Each
simulated power loss keeps one of these parts of the unsafe data:

  least    nothing: neither bytes nor names
  names    all names, but no bytes
  sizes    all names and sizes, with zeros in place of the bytes
  bytes    all bytes, but no names
  some     a random part, tried several times: each change of a name is kept or lost; each write is
           kept, cut off or lost

These losses are not simulated: a torn write that damages a safe neighboring sector, a disk that
misreports its cache, and a rename after which both names exist or neither does.

The script records these runs:

- a fresh run;
- a killed run and its --resume, which starts with the data that the killed run left unsafe;
- a run that is killed when it is almost done, followed by a run with --overwrite;
- a run with --overwrite that replaces a finished pair of .bin and .idx. At each moment, the old or the
  new pair must be complete, or there must be no index.

The inputs have bad records (under quarantine), lines that end in \\r\\n, a gzip file, a zstd file of
several frames, and an empty file. A block has a few lines, and a checkpoint follows each block.

Exits with 77 if there is no strace, or if strace is not allowed to trace.
"""

import argparse
import concurrent.futures
import gzip
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from replayed_disk import Disk, losses, record


def contents(folder):
    return {os.fsencode(path.name): path.read_bytes() for path in sorted(folder.iterdir())}


def fill(folder, names):
    folder.mkdir()
    for name, data in names.items():
        (folder / os.fsdecode(name)).write_bytes(data)


def is_finished(name):
    return not name.endswith((b".partial", b".journal"))


class Corpus:
    """Input files, and the command that reads them."""

    def __init__(self, program, root, chance):
        self.program, self.root = program, root
        folder = root / "in"
        folder.mkdir()
        line = self.line
        (folder / "a.jsonl").write_bytes(b"".join(line(chance, i) for i in range(14)))
        (folder / "b.jsonl.gz").write_bytes(
            gzip.compress(b"".join(line(chance, i) for i in range(14, 22))))
        (folder / "c.jsonl").write_bytes(b"")
        (folder / "d.jsonl").write_bytes(b"".join(line(chance, i) for i in range(22, 30)) + b"bad")
        self.inputs = [str(path) for path in sorted(folder.iterdir())]
        if shutil.which("zstd"):
            compressed = folder / "e.jsonl.zst"
            for begin in (30, 33):
                text = b"".join(line(chance, i) for i in range(begin, begin + 3))
                frame = subprocess.run(["zstd", "-q", "-c"], input=text, capture_output=True,
                                       check=True).stdout
                with compressed.open("ab") as out:
                    out.write(frame)
            self.inputs.append(str(compressed))

    @staticmethod
    def line(chance, number):
        end = chance.choice([b"\n", b"\r\n"])
        if number % 5 == 3:
            return chance.choice([b"{broken", b"[1]", b'{"text": 3, "title": "x"}', b""]) + end
        words = " ".join(chance.choice(["river", "stone", "\u00e9t\u00e9"])
                         for _ in range(chance.randrange(12)))
        return f'{{"text": "{words} {number}", "title": "t{number}"}}'.encode() + end

    def command(self, folder, *more):
        return [self.program, "--input", *self.inputs, "--output-prefix", str(folder / "out"),
                "--tokenizer-type", "ByteLevelTokenizer", "--json-keys", "text", "title",
                "--on-bad-record", "quarantine", *more]

    hooks = {"MILLRACE_TEST_BLOCK_BYTES": "150", "MILLRACE_TEST_CHECKPOINT_MS": "0"}

    def run(self, folder, *more):
        return subprocess.run(self.command(folder, *more), capture_output=True)


def goes_on(left):
    """Returns whether a folder has finished work with which a run can resume."""
    return (b"out.journal" in left and
            len(left.get(b"out_text_document.bin.partial", b"")) > 0)


def expect_old_or_new(left, old, new):
    """Checks that each index with a final name belongs to a complete pair of .bin and .idx. Returns the
    problem in words, or None."""
    for key in (b"text", b"title"):
        pair = [b"out_" + key + b"_document." + end for end in (b"bin", b"idx")]
        if pair[1] not in left:
            continue
        found = [left.get(name) for name in pair]
        if found not in ([old.get(name) for name in pair], [new[name] for name in pair]):
            return f"an index of {key.decode()} without the tokens that belong to it"
    return None


def try_loss(corpus, number, what, left, old, new):
    """Resumes a run in the folder that a power loss left. Returns the problem in words, or None."""
    if problem := expect_old_or_new(left, old, new):
        return f"{what}: {problem}"
    folder = corpus.root / f"loss{number}"
    fill(folder, left)
    try:
        done = corpus.run(folder, "--resume")
        if done.returncode == 1 and old and b"exists; pass --overwrite" in done.stderr:
            # The new run had no safe data, so the old pair of files must be complete.
            now = contents(folder)
            if any(now.get(name) != data for name, data in old.items() if name.endswith(
                    (b".bin", b".idx"))):
                if any(name.endswith(b".idx") for name in now):
                    return f"{what}: refused, but the old files are not whole"
            done = corpus.run(folder, "--overwrite")
        if done.returncode != 0:
            return f"{what}: status {done.returncode}: {done.stderr.decode()}"
        now = contents(folder)
        if now != new:
            wrong = sorted(name.decode() for name in now.keys() | new.keys()
                           if now.get(name) != new.get(name))
            return f"{what}: other files than those of a whole run: {' '.join(wrong)}"
        return None
    finally:
        shutil.rmtree(folder)


def check(corpus, title, disk, runs, old, new, chance, most):
    """Tests all power losses during the recorded runs. Returns the number of problems."""
    found = list(losses(disk, runs, chance))
    tried = found if len(found) <= most else sorted(chance.sample(range(len(found)), most))
    if tried is not found:
        tried = [found[i] for i in tried]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        problems = [each for each in pool.map(
            lambda item: try_loss(corpus, item[0], item[1][0], item[1][1], old, new),
            enumerate(tried)) if each]
    calls = sum(len(run) for run in runs)
    print(f"{title}: {calls} calls, {len(found)} different folders, {len(tried)} tried, "
          f"{len(problems)} wrong")
    if not any(what.startswith("least") and goes_on(left) for what, left in found):
        problems.append("nothing that was made safe is there to go on from")
    for problem in problems[:5]:
        print("  " + problem.strip())
    return len(problems)


def scenarios(corpus, chance, most):
    root = corpus.root
    clean = root / "clean"
    clean.mkdir()
    corpus.run(clean)
    new = contents(clean)
    if not new or not all(map(is_finished, new)):
        sys.exit("the undisturbed run did not finish")

    folder = root / "traced"
    folder.mkdir()
    fresh = record(corpus.command(folder), root, corpus.hooks, {0})
    problems = check(corpus, "a fresh run", Disk(folder, {}), [fresh], {}, new, chance, most)
    shutil.rmtree(folder)

    folder.mkdir()
    killed = {**corpus.hooks, "MILLRACE_TEST_KILL_AT": "journal:9"}
    first = record(corpus.command(folder), root, killed, {137, -9})
    second = record(corpus.command(folder, "--resume"), root, corpus.hooks, {0})
    problems += check(corpus, "a killed run and its resumption", Disk(folder, {}), [first, second],
                      {}, new, chance, most)
    shutil.rmtree(folder)

    folder.mkdir()
    killed["MILLRACE_TEST_KILL_AT"] = "publish:1"
    first = record(corpus.command(folder), root, killed, {137, -9})
    second = record(corpus.command(folder, "--overwrite"), root, corpus.hooks, {0})
    problems += check(corpus, "an unfinished run started again", Disk(folder, {}), [first, second],
                      {}, new, chance, most)
    shutil.rmtree(folder)

    folder.mkdir()
    shorter = Corpus.__new__(Corpus)
    shorter.program, shorter.inputs = corpus.program, corpus.inputs[:1]
    shorter.run(folder)
    old = contents(folder)
    if not old or not all(map(is_finished, old)):
        sys.exit("the old run did not finish")
    over = record(corpus.command(folder, "--overwrite"), root, corpus.hooks, {0})
    problems += check(corpus, "an overwritten pair", Disk(folder, old), [over], old, new, chance,
                      most)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="preprocess_data")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="folder for the runs (default: in memory, where syncing is fast)")
    parser.add_argument("--most", type=int, default=400, help="number of losses to try per run")
    options = parser.parse_args()
    try:
        may = subprocess.run(["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true"],
                             capture_output=True).returncode == 0
    except FileNotFoundError:
        may = False
    if not may:
        print("power loss is NOT tested: strace is missing or may not trace")
        return 77
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="millrace-power-", dir=options.folder or memory) as root:
        corpus = Corpus(str(pathlib.Path(options.program).resolve()), pathlib.Path(root), chance)
        return 1 if scenarios(corpus, chance, options.most) else 0


if __name__ == "__main__":
    sys.exit(main())
