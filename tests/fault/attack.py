# SPDX-License-Identifier: Apache-2.0
"""Shared code of the attacks on the programs: a corpus, runs with a time limit, and a check of refusals.

fail_kth.py, racing_writers.py and mutated_files.py use it.
"""

import argparse
import bz2
import collections
import concurrent.futures
import gzip
import hashlib
import lzma
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# A run counts as hung if it exceeds its limit twice. The first limit is that of limit_of(). Later,
# the run is repeated alone, with ten times that limit.
LIMIT_S = 20
UNDISTURBED_RUNS = 100
PATIENCE = 10
MOST_BYTES = 6 << 30  # limit of the address space; without it, a damaged size could request too much
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
# Each block has only a few lines and is followed by a checkpoint. So even a small corpus has many
# blocks and checkpoints.
HOOKS = {"MILLRACE_TEST_BLOCK_BYTES": "150", "MILLRACE_TEST_CHECKPOINT_MS": "0"}
# Flags for prepare-cache: a split, and numbers of samples for a few documents.
SAMPLES = ["--split", "8,1,1", "--train-samples", "30", "--valid-samples", "2", "--test-samples", "2"]
CRASH = re.compile(r"terminate called|what\(\):|Assertion|Sanitizer|runtime error:|core dumped"
                   r"|Segmentation fault|Aborted|std::")

Result = collections.namedtuple("Result", "status out err seconds")

_begin = time.monotonic()
_patience = 1
_end = None  # time at which this script must end; None: no limit


class Hung(Exception):
    """A run took longer than its limit and was killed."""


def is_sanitized(program):
    """Returns whether a program was built with AddressSanitizer. Such a program reserves more address
    space than any limit allows."""
    return b"__asan_init" in pathlib.Path(program).read_bytes()


def limit_of(undisturbed_s, least_s=LIMIT_S):
    """Returns the time limit of a run. Takes the duration of an undisturbed run."""
    return max(least_s, UNDISTURBED_RUNS * undisturbed_s)


def run(command, more=None, limit_s=LIMIT_S, limit_memory=False):
    """Runs a program in a session of its own. If the run exceeds its limit, kills all processes of the
    session and raises Hung."""
    # Do not check for leaks here: other tests do that, and MPI itself leaks.
    environment = {**os.environ, "LC_ALL": "C", "ASAN_OPTIONS": "detect_leaks=0", **(more or {})}
    command = [str(part) for part in command]
    if limit_memory:
        command = ["prlimit", f"--as={MOST_BYTES}", *command]
    limit_s *= _patience
    if _end is not None:
        limit_s = min(limit_s, max(1, _end - time.monotonic()))
    begin = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        kill_session(process)
        raise Hung(f"took longer than {limit_s:.0f} s: {subprocess.list2cmdline(command)}") from None
    return Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"),
                  time.monotonic() - begin)


def kill_session(process):
    """Kills all processes of the session that `process` leads. The session is needed because MPI ranks
    have their own process groups; a surviving rank would keep the pipes of mpirun open."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
            if session == process.pid:
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass  # the process has ended
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.stdout.close()  # another process still has the other end open
        process.stderr.close()
        process.poll()


def crash_of(result):
    """Returns in what way a program crashed. Returns None if it did not crash."""
    if result.status < 0 or result.status >= 128:
        return f"died of a signal (status {result.status})"
    if found := CRASH.search(result.err):
        return f"'{found.group()}' on stderr"
    return None


def refusal_problem(result, program):
    """Returns what is wrong with a refusal, or None. A correct refusal prints a sentence on stderr."""
    if problem := crash_of(result):
        return problem
    if not re.search(rf"^{program}: .*[a-z]{{2,}}.* .*[a-z]{{2,}}", result.err, re.MULTILINE):
        return f"status {result.status} without a sentence on stderr"
    return None


def contents(folder):
    """Returns all files below a folder: a dictionary from relative paths to bytes."""
    folder = pathlib.Path(folder)
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def fill(folder, files):
    folder.mkdir(parents=True)
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def preprocessing(program, inputs, prefix, *flags):
    typed = [] if "--tokenizer-type" in flags else ["--tokenizer-type", "ByteLevelTokenizer"]
    return [program, "--input", *inputs, "--output-prefix", prefix, *typed, *flags]


def quarantine(*keys):
    return ["--json-keys", *keys, "--on-bad-record", "quarantine"]


def made(root, command, kill_at=None):
    """Runs command(folder) in a new folder. Returns the files that the command leaves, and the duration
    in seconds. With `kill_at`, the program kills itself at that step."""
    folder = root / "made"
    folder.mkdir()
    killed = {"MILLRACE_TEST_KILL_AT": kill_at} if kill_at else {}
    result = run(command(folder), {**HOOKS, **killed}, PATIENCE * LIMIT_S)
    if result.status != (-signal.SIGKILL if kill_at else 0):
        sys.exit(f"{subprocess.list2cmdline(map(str, command(folder)))}: this run prepares the "
                 f"attack, but ends with status {result.status}: {result.err}")
    files = contents(folder)
    shutil.rmtree(folder)
    return files, result.seconds


def is_unfinished(name):
    return name.endswith((".partial", ".journal"))


def difference(found, wanted):
    """Returns the names of the files that differ, or an empty text if none differ."""
    wrong = []
    for name in sorted(found.keys() | wanted.keys()):
        if name not in wanted:
            wrong.append(f"{name} is left over")
        elif name not in found:
            wrong.append(f"{name} is missing")
        elif found[name] != wanted[name]:
            wrong.append(f"{name} has other bytes")
    return ", ".join(wrong)


class Corpus:
    """Input files in a folder, plain and compressed. If `dirty`, some records are bad."""

    def __init__(self, folder, chance, lines, dirty):
        folder.mkdir(parents=True)
        self.dirty = dirty
        quarter = lines // 4
        parts = [b"".join(self._line(chance, quarter * part + i) for i in range(quarter))
                 for part in range(4)]
        (folder / "a.jsonl").write_bytes(parts[0])
        (folder / "b.jsonl.gz").write_bytes(gzip.compress(parts[1], mtime=0))
        (folder / "c.jsonl").write_bytes(b"")
        (folder / "d.jsonl").write_bytes(parts[2] + (b"bad" if dirty else b""))
        half = parts[3].find(b"\n", len(parts[3]) // 2) + 1
        if shutil.which("zstd"):
            frames = [subprocess.run(["zstd", "-q", "-c"], input=text, capture_output=True,
                                     check=True).stdout for text in (parts[3][:half],
                                                                     parts[3][half:])]
            (folder / "e.jsonl.zst").write_bytes(b"".join(frames))
        self.inputs = [str(path) for path in sorted(folder.iterdir())]

    def add_archives(self, chance, folder):
        """Adds a bzip2 file and an xz file. Some builds cannot read these formats."""
        text = b"".join(self._line(chance, i) for i in range(6))
        for name, data in (("f.jsonl.bz2", bz2.compress(text)), ("g.jsonl.xz", lzma.compress(text))):
            (folder / name).write_bytes(data)
            self.inputs.append(str(folder / name))

    def _line(self, chance, number):
        end = chance.choice([b"\n", b"\r\n"])
        if self.dirty and number % 5 == 3:
            return chance.choice([b"{broken", b'"a string"', b'{"text": 3, "title": "x"}', b""]) + end
        words = " ".join(chance.choice(["river", "stone", "\u00e9t\u00e9"])
                         for _ in range(chance.randrange(12)))
        return f'{{"text": "{words} {number}", "title": "t{number}"}}'.encode() + end


class Table:
    """A table that counts the outcomes of each row. The name of a row has two parts."""

    def __init__(self, titles, outcomes):
        self.titles, self.outcomes = titles, outcomes
        self.counts = collections.defaultdict(collections.Counter)

    def add(self, row, outcome):
        self.counts[row][outcome] += 1

    def total(self, *outcomes):
        return sum(count[outcome] for count in self.counts.values() for outcome in outcomes)

    def print(self):
        rows = [(*row, str(sum(count.values())), *(str(count[each]) for each in self.outcomes))
                for row, count in sorted(self.counts.items())]
        every = [str(self.total(each)) for each in self.outcomes]
        rows.append(("all", *[""] * (len(self.titles) - 1), str(sum(map(int, every))), *every))
        head = (*self.titles, "runs", *self.outcomes)
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        for row in [head, *rows]:
            cells = [cell.ljust(width) if i < len(self.titles) else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(row, widths))]
            print("  ".join(cells).rstrip())


def work_through(cases, attempt, hangs, seconds):
    """Tries cases on all processors until all cases are tried or the time is over. Returns the number of
    tried cases.

    If attempt(case) raises Hung, the case is repeated alone after all other cases, with a longer limit.
    If it hangs again, hangs(case, what) is called. The repetitions take at most twice the given time.
    """
    global _patience, _end
    stop = None
    if seconds:
        stop, _end = _begin + seconds, _begin + 3 * seconds
    hung = []

    def one(case):
        if stop is not None and time.monotonic() > stop:
            return False
        try:
            attempt(case)
        except Hung as error:
            hung.append((case, error))
        return True

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tried = sum(pool.map(one, cases))
    _patience = PATIENCE
    for case, first in hung:
        if _end is not None and time.monotonic() > _end - LIMIT_S:
            hangs(case, f"{first}\n    no time was left to repeat it alone")
            continue
        try:
            attempt(case)
        except Hung as error:
            hangs(case, error)
    _patience = 1
    return tried


def guarded(main):
    """Returns the exit status of a driver. If an undisturbed run hangs, returns a message instead."""
    try:
        return main()
    except Hung as error:
        return f"an undisturbed run {error}"


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--seed", type=int, help="seed (default: $MILLRACE_SEED, or random)")
    parser.add_argument("--usual-seed", type=int, help="where neither of these is given")
    parser.add_argument("--cases", type=int, help="largest number of cases (default: all)")
    parser.add_argument("--seconds", type=int, help="start no case after this time, and stop after "
                        "three times as long (default: never)")
    parser.add_argument("--folder", help="folder for the runs (default: in memory, where syncing is fast)")
    return parser


def seed_of(given):
    seed = given.seed
    if seed is None:
        text = os.environ.get("MILLRACE_SEED")
        usual = random.randrange(1 << 32) if given.usual_seed is None else given.usual_seed
        seed = int(text, 0) if text else usual
    print(f"MILLRACE_SEED={seed}", flush=True)
    return seed


def chosen_number(seed, *words):
    """Returns a random number below 2^64 that depends only on `seed` and `words`. So adding or removing
    a case does not change the choices for the other cases."""
    text = "\0".join(map(str, (seed, *words)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def scratch_folder(given, name):
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix=f"millrace-{name}-", dir=given.folder or memory)


def report(problems, most=40):
    for problem in problems[:most]:
        print(problem, file=sys.stderr)
    if len(problems) > most:
        print(f"and {len(problems) - most} more", file=sys.stderr)
