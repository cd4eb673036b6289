#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets three processes write the same output prefix, or the same folder of caches, at the same time.

There are these kinds of races:

  preprocess     preprocess_data on one of two corpora: without a flag, with --resume or --overwrite
  partitions     the same; some of the processes also get --partitions
  tasks          the same on one corpus, with --task; several processes may get the same task
  merge          merge_datasets on one of two folders, in order or shuffled
  prepare-cache  inspect_dataset prepare-cache for one of two sequence lengths

The folder is empty at the start, or has the output of an earlier run, an unfinished run or half a cache.
At any time, at most one process may write a file.

Each process must exit with 0, or print a sentence on stderr. The prepare-cache processes wait for each
other, so each of them must exit with 0. In the end, the folder must hold exactly the files that the
successful processes write when they run alone. `inspect_dataset verify` must find no fault in them. If
all processes were refused, the files must be the same as before.

Exits with 1 if a race ended otherwise, or if no race was tried.
"""

import collections
import itertools
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import concurrent.futures

import attack


class Race:
    """The commands that three processes run at the same time. Each element of `commands` is a pair: a
    command, and the files that it makes."""

    def __init__(self, name, program, begins, commands, *, side_by_side=False, waits=False):
        self.name, self.program, self.begins, self.commands = name, program, begins, commands
        self.side_by_side = side_by_side  # the commands may write different files
        self.waits = waits  # commands wait for each other, so each of them must succeed

    def right(self, begin, done):
        """Returns each set of files that the folder may hold after the race."""
        if not self.side_by_side:
            return done
        left = {name: data for name, data in begin.items()
                if not (attack.is_unfinished(name)
                        and any(name.startswith(task_of(made)) for files in done for made in files))}
        return [dict(collections.ChainMap(*done, left))]


def task_of(name):
    """Returns the prefix of a task's files, such as out_00001-of-00003. Returns any other name
    unchanged."""
    return re.match(r"(out_\d+-of-\d+)?", name).group() or name


class Races:
    def __init__(self, root, programs):
        self.root, self.programs = root, programs
        self.numbers = itertools.count()
        self.lock = threading.Lock()
        self.problems = []
        self.limit_s = 0  # made() sets it, based on the duration of the runs
        self.table = attack.Table(("race", "begins with"), ("one done", "more done", "none done",
                                                            "wrong", "hangs"))
        chance = random.Random(1)
        self.corpora = [attack.Corpus(root / "in" / name, chance, lines, dirty=True)
                        for name, lines in (("one", 64), ("two", 40))]
        self.races = [self.preprocess_race(), self.partition_race(), self.task_race(),
                      self.merge_race(), self.cache_race()]

    def preprocessing(self, corpus, *flags):
        return lambda folder: attack.preprocessing(
            self.programs / "preprocess_data", corpus.inputs, folder / "out",
            *attack.quarantine("text", "title"), "--workers", "1", *flags)

    def with_ways(self, command_of, files):
        """Returns the command without a flag, with --resume and with --overwrite. Each is paired with
        the files that it makes."""
        return [(command_of(*way), files) for way in ((), ("--resume",), ("--overwrite",))]

    def of_corpora(self, *flags):
        """Returns the commands, and the finished and unfinished outputs, for both corpora."""
        commands, whole, half = [], [], []
        for corpus in self.corpora:
            command_of = lambda *way, corpus=corpus: self.preprocessing(corpus, *flags, *way)
            whole.append(self.made(command_of()))
            half.append(self.made(command_of(), "journal:9"))
            commands += self.with_ways(command_of, whole[-1])
        return commands, whole, half

    def preprocess_race(self):
        commands, self.whole, half = self.of_corpora()
        return Race("preprocess", "preprocess_data", {
            "nothing": [{}], "an earlier output": self.whole, "an unfinished run": half}, commands)

    def partition_race(self):
        plain, whole, half = self.of_corpora()
        commands, partitioned, half_partitioned = self.of_corpora("--partitions", "3")
        return Race("partitions", "preprocess_data", {
            "nothing": [{}], "an earlier output": whole + partitioned,
            "an unfinished run": half + half_partitioned}, plain + commands)

    def task_race(self):
        commands, whole, half = [], [], []
        for number in range(3):
            command_of = lambda *way, number=number: self.preprocessing(
                self.corpora[0], "--task", f"{number}/3", *way)
            whole.append(self.made(command_of()))
            half.append(self.made(command_of(), "journal:3"))
            commands += self.with_ways(command_of, whole[-1])
        return Race("tasks", "preprocess_data", {
            "nothing": [{}], "an earlier output": whole, "an unfinished run": half}, commands,
            side_by_side=True)

    def merge_race(self):
        for name, files, parts in (("first", self.whole[0], "ab"), ("second", self.whole[1], "a")):
            stem = "out_text_document"
            attack.fill(self.root / "parts" / name,
                        {part + path[len(stem):]: data for path, data in files.items()
                         for part in parts if path.startswith(stem)})
        commands, whole = [], []
        for name in ("first", "second"):
            for flags in ((), ("--shuffle-documents", "7")):
                command_of = lambda *way, name=name, flags=flags: lambda folder: [
                    self.programs / "merge_datasets", "--input", self.root / "parts" / name,
                    "--output-prefix", folder / "out", *flags, *way]
                whole.append(self.made(command_of()))
                commands += [(command_of(*way), whole[-1])
                             for way in ((), ("--overwrite",), ("--overwrite",))]
        return Race("merge", "merge_datasets", {"nothing": [{}], "an earlier output": whole}, commands)

    def cache_race(self):
        shutil.copy(attack.GOLDEN / "megatron_cache" / "tokenizer.json", self.root / "in")
        commands, whole = [], []
        for length in ("8", "12"):
            command = lambda folder, length=length: [
                self.programs / "inspect_dataset", "prepare-cache", "--data-path", "0.7",
                self.root / "parts/first/a", "0.3", self.root / "parts/second/a", "--seq-length",
                length, *attack.SAMPLES, "--data-cache-path", folder / "cache",
                "--tokenizer-description", self.root / "in/tokenizer.json"]
            whole.append(self.made(command))
            commands.append((command, whole[-1]))
        half = [{name: data for i, (name, data) in enumerate(files.items()) if i % 3 != 0}
                for files in whole]
        return Race("prepare-cache", "inspect_dataset", {
            "nothing": [{}], "a whole cache": whole, "half a cache": half}, commands,
            side_by_side=True, waits=True)

    def made(self, command, kill_at=None):
        files, seconds = attack.made(self.root, command, kill_at)
        self.limit_s = max(self.limit_s, attack.limit_of(3 * seconds))
        return files

    def attempt(self, seed):
        chance = random.Random(seed)
        race = chance.choice(self.races)
        begin = chance.choice(list(race.begins))
        files = chance.choice(race.begins[begin])
        chosen = [chance.choice(race.commands) for _ in range(3)]
        folder = self.root / "races" / str(next(self.numbers))
        attack.fill(folder, files)
        delays = [chance.choice([0, 0, 0.002, 0.005, 0.01, 0.03]) for _ in chosen]

        def one(item):
            (command, _), delay = item
            time.sleep(delay)
            return attack.run(command(folder), attack.HOOKS, self.limit_s)

        with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
            results = list(pool.map(one, zip(chosen, delays)))
        done = [made for (_, made), result in zip(chosen, results) if result.status == 0]
        outcome, problem = self.judge(race, folder, results, files, done)
        with self.lock:
            self.table.add((race.name, begin), outcome)
            if problem:
                told = "\n".join(
                    f"    {subprocess.list2cmdline(map(str, command(folder)))}\n"
                    f"      status {result.status}: {result.err.strip()[-300:]}"
                    for (command, _), result in zip(chosen, results))
                self.problems.append(
                    f"--only {seed}, {race.name}, {begin}: {outcome}: {problem}\n{told}")
        shutil.rmtree(folder)

    def hangs(self, seed, what):
        with self.lock:
            self.table.add(("", ""), "hangs")
            self.problems.append(f"--only {seed} hangs: {what}")

    def judge(self, race, folder, results, begin, done):
        for result in results:
            problem = (attack.crash_of(result) if result.status == 0
                       else attack.refusal_problem(result, race.program))
            if problem:
                return "wrong", problem
            if race.waits and result.status != 0:
                return "wrong", "refused, and was to wait for the others"
        found = attack.contents(folder)
        if not done:
            if found != begin:  # if all commands fail, the existing files must not change
                return "wrong", f"all refused, and {attack.difference(found, begin)}"
            return "none done", None
        right = race.right(begin, done)
        if found not in right:
            return "wrong", "; or ".join(attack.difference(found, files) for files in right)
        for name in found:
            if not name.endswith(".idx"):
                continue
            verified = attack.run([self.programs / "inspect_dataset", "verify",
                                   folder / name[:-len(".idx")]])
            if verified.status != 0:
                return "wrong", f"verify: {verified.out}{verified.err}"
        return ("one done" if len(done) == 1 else "more done"), None


def main():
    parser = attack.arguments(__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, help="run only the race with this number")
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
