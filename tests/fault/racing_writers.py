#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three processes at once that write the same output prefix.

Each is preprocess_data, plain, with --resume or with --overwrite, on one of two corpora; or
merge_datasets, in order or shuffled, of one of two folders. They begin in an empty folder, beside
the output of an earlier run, or beside an unfinished run. At most one of them writes at a time.

Each must end with exit 0, or with a sentence on stderr. If any ended with exit 0, the output is one
of those that a single process writes, without any other file beside it, and `inspect_dataset verify`
finds nothing. In any case no index lies there without the tokens that belong to it.

Exits 1 if a race ended otherwise.
"""

import itertools
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time
import concurrent.futures

import attack


class Races:
    def __init__(self, root, programs):
        self.root, self.programs = root, programs
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.problems = []
        self.limit_s = 0  # made() finds out how long the runs take
        self.table = attack.Table(("race", "begins with"), ("one done", "more done", "none done",
                                                            "wrong", "hangs"))
        chance = random.Random(1)
        self.corpora = [attack.Corpus(root / "in" / name, chance, lines, dirty=True)
                        for name, lines in (("one", 64), ("two", 40))]
        self.whole = [self.made(self.preprocessing(corpus)) for corpus in self.corpora]
        self.half = [self.made(self.preprocessing(corpus), {"MILLRACE_TEST_KILL_AT": "journal:9"},
                               -9) for corpus in self.corpora]
        for name, files, parts in (("first", self.whole[0], "ab"), ("second", self.whole[1], "a")):
            stem = "out_text_document"
            attack.fill(root / "parts" / name,
                        {part + path[len(stem):]: data for path, data in files.items()
                         for part in parts if path.startswith(stem)})
        self.merged = {name + " ".join(flags): self.made(self.merging(name, *flags))
                       for name in ("first", "second")
                       for flags in ((), ("--shuffle-documents", "7"))}

    def preprocessing(self, corpus, *flags):
        return lambda folder: [
            self.programs / "preprocess_data", "--input", *corpus.inputs, "--output-prefix",
            folder / "out", "--json-keys", "text", "title", "--on-bad-record", "quarantine",
            "--workers", "1", *flags]

    def merging(self, name, *flags):
        return lambda folder: [
            self.programs / "merge_datasets", "--input", self.root / "parts" / name,
            "--output-prefix", folder / "out", *flags]

    def made(self, command, hooks=None, status=0):
        folder = self.root / "made"
        folder.mkdir()
        result = attack.run(command(folder), {**attack.HOOKS, **(hooks or {})},
                            attack.PATIENCE * attack.LIMIT_S)
        self.limit_s = max(self.limit_s, attack.limit_of(3 * result.seconds))
        if result.status != status:
            sys.exit(f"a race cannot be prepared: status {result.status}: {result.err}")
        files = attack.contents(folder)
        shutil.rmtree(folder)
        return files

    def attempt(self, seed):
        chance = random.Random(seed)
        merges = chance.random() < 0.4
        if merges:
            right = list(self.merged.values())
            begins = {"nothing": {}, "an earlier output": chance.choice(right)}
            commands = [self.merging(chance.choice(("first", "second")),
                                     *chance.choice(((), ("--shuffle-documents", "7"))),
                                     *chance.choice(((), ("--overwrite",), ("--overwrite",))))
                        for _ in range(3)]
        else:
            right = self.whole
            begins = {"nothing": {}, "an earlier output": chance.choice(right),
                      "an unfinished run": chance.choice(self.half)}
            commands = [self.preprocessing(chance.choice(self.corpora),
                                           *chance.choice(((), ("--resume",), ("--overwrite",))))
                        for _ in range(3)]
        begin = chance.choice(list(begins))
        folder = self.root / "races" / str(next(self.numbers))
        attack.fill(folder, begins[begin])
        delays = [chance.choice([0, 0, 0.002, 0.005, 0.01, 0.03]) for _ in commands]

        def one(item):
            time.sleep(item[1])
            return attack.run(item[0](folder), attack.HOOKS, self.limit_s)

        with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
            results = list(pool.map(one, zip(commands, delays)))
        program = "merge_datasets" if merges else "preprocess_data"
        outcome, problem = self.judge(folder, results, right, begins[begin], program)
        with self.lock:
            self.table.add((program, begin), outcome)
            if problem:
                told = "\n".join(
                    f"    {subprocess.list2cmdline(map(str, command(folder)))}\n"
                    f"      status {result.status}: {result.err.strip()[-300:]}"
                    for command, result in zip(commands, results))
                self.problems.append(f"race {seed}, {program}, {begin}: {outcome}: {problem}\n{told}")
        shutil.rmtree(folder)

    def hangs(self, seed, what):
        with self.lock:
            self.table.add(("", ""), "hangs")
            self.problems.append(f"race {seed} hangs: {what}")

    def judge(self, folder, results, right, begin, program):
        for result in results:
            problem = (attack.crash_of(result) if result.status == 0
                       else attack.refusal_problem(result, program))
            if problem:
                return "wrong", problem
        found = attack.contents(folder)
        done = sum(result.status == 0 for result in results)
        if done == 0:
            if found != begin:  # a race for locks may stop all, but not harm what there was
                return "wrong", f"all refused, and {attack.difference(found, begin)}"
            return "none done", None
        if found not in right:
            return "wrong", "; or ".join(attack.difference(found, files) for files in right)
        for name in found:
            if not name.endswith(".idx"):
                continue
            verified = attack.run([self.programs / "inspect_dataset", "verify",
                                   folder / name[:-len(".idx")]])
            if verified.status != 0:
                return "wrong", f"verify: {verified.out}{verified.err}"
        return ("one done" if done == 1 else "more done"), None


def main():
    parser = attack.arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, help="the race of this number alone")
    given = parser.parse_args()
    chance = random.Random(attack.seed_of(given))
    if given.cases is None:
        given.cases = 2000
    with attack.scratch_folder(given, "race") as name:
        races = Races(pathlib.Path(name), given.bin.resolve())
        seeds = [given.only] if given.only is not None else [
            chance.randrange(1 << 32) for _ in range(given.cases)]
        tried = attack.work_through(seeds, races.attempt, races.hangs, given.seconds)
        if tried == 0:
            races.problems.append("no race was tried: --cases or --seconds leaves none")
        races.table.print()
        print(f"racing writers: {tried} of {len(seeds)} races tried, "
              f"{races.table.total('wrong', 'hangs')} wrong")
        attack.report(races.problems)
        return 1 if races.problems else 0


if __name__ == "__main__":
    sys.exit(attack.guarded(main))
