#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the k-th system call of a program fail, for every k. SQLite has similar tests.

Each scenario is a small run of preprocess_data, merge_datasets, inspect_dataset prepare-cache or
preprocess_data_mpi. A first run with the preloaded library `fail_kth` (fail_kth.cpp) counts the calls
of each kind: open, read, write, sync, rename and so on. Then the run is repeated for each kind, each k
and each fault. A fault is an errno, a short transfer, or SIGKILL before or after the call. It strikes
call k only (`once`), or call k and all later calls of the kind (`on`). A run must have one of these
outcomes:

  complete  The exit status is 0, and the files are exactly those of an undisturbed run. A run must be
            complete if EINTR interrupts a lock, because the program must retry the lock.
  refused   The exit status is not 0, and stderr has a sentence. An index has its final name only if its
            tokens do too. A retry without a fault gives the files of an undisturbed run. The retry
            uses --resume, or --overwrite if the message asks for it.
  killed    The same as `refused`, but without the sentence.

Any other outcome is `wrong`. A run that exceeds its time limit `hangs`. A run is `missed` if it made
fewer than k calls this time, because its threads shared the work differently. A missed run must end
like an undisturbed run.

Each problem is printed with the arguments that replay it, for example:

  fail_kth.py --bin build/bin --library build/tests/libfail_kth.so --only merge --plan rename:3:EIO:once

Exits with 1 if a run was wrong or hung, if there was no case, or if most cases were missed. Exits with
2 for an unknown argument, and with 77 if the system does not preload the library.
"""

import contextlib
import itertools
import mmap
import os
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import threading

import attack

KINDS = ["open", "read", "write", "sync", "rename", "unlink", "truncate", "allocate", "stat", "space",
         "map", "mkdir", "link", "lock", "advise", "list", "close", "copy"]  # as in kth_call.hpp
BOARD_BYTES = 32 * 8 + 8 + 768

FAULTS = {
    "open": ["EIO", "EMFILE", "ENOMEM", "ENOSPC", "EINTR"],
    "read": ["EIO", "EINTR", "EAGAIN", "ENOMEM", "short"],
    "write": ["EIO", "ENOSPC", "EDQUOT", "EINTR", "EAGAIN", "short"],
    "copy": ["EIO", "ENOSPC", "EINTR", "short"],
    "sync": ["EIO", "ENOSPC", "EDQUOT", "EINTR", "kill-before", "kill-after"],
    "rename": ["EIO", "ENOSPC", "EDQUOT", "kill-before", "kill-after"],
    "unlink": ["EIO", "EACCES", "kill-before", "kill-after"],
    "truncate": ["EIO", "EINTR", "kill-before", "kill-after"],
    "allocate": ["EIO", "ENOSPC", "EDQUOT", "EINTR"],
    "stat": ["EIO", "ENOMEM", "ESTALE"],
    "space": ["EIO", "no-size"],
    "map": ["ENOMEM", "EAGAIN"],
    "mkdir": ["EIO", "ENOSPC"],
    "link": ["EIO"],
    "lock": ["EIO", "ENOLCK", "EINTR", "EAGAIN"],
    "advise": ["EIO", "EINTR"],
    "list": ["EIO", "ENOMEM"],
    "close": ["EIO", "EINTR"],
}
# These faults strike only once. A program may retry a call as long as signals interrupt it (EINTR).
# The same holds for a lock that another process holds (EAGAIN).
ONCE_ONLY = {"EINTR", "kill-before", "kill-after"}


def times_of(kind, fault):
    """Returns the ways in which a fault may strike: at call k only, or at call k and all later calls."""
    return ("once",) if fault in ONCE_ONLY or (kind, fault) == ("lock", "EAGAIN") else ("once", "on")


class Scenario:
    """A run, the files that exist at its start, and the files that must exist at its end."""

    def __init__(self, name, program, command, *, begin=None, wanted=None, old=None, parts=None,
                 retries=(), refuses=False, cost=1, hooks=None, ranks=(None,), least_limit_s=attack.LIMIT_S):
        self.name, self.program = name, program
        self.command = command  # function of (folder, additional flags, command prefix)
        self.begin = begin or {}
        self.wanted = wanted
        self.old = old or {}  # output of an earlier run, which may remain if this run fails
        self.parts = parts or {}  # finished datasets that the run makes only for temporary use
        self.retries = retries  # flags of each retry; a retry runs only if the previous one was refused
        self.refuses = refuses  # the run must be refused and must not change existing files
        self.cost = cost  # in a random sample, this scenario gets 1 / cost as many cases
        self.hooks = attack.HOOKS if hooks is None else hooks
        self.ranks = ranks  # MPI ranks to attack, one at a time; (None,) without MPI
        self.limit_s = least_limit_s  # count() raises it if the run takes long


def torn_index(found, scenario):
    """Returns the name of an index, or of a part of a cache, that has a final name but belongs to no
    complete dataset. Returns None if there is no such file."""
    sets = [scenario.wanted, scenario.old, scenario.begin, scenario.parts]
    for name, data in found.items():
        if name.endswith(".idx"):
            stem = name[:-len("idx")]
            mine = {each: of for each, of in found.items()
                    if each.startswith(stem) and not attack.is_unfinished(each)}
            if not any(stem + "bin" in mine and all(files.get(each) == of
                                                    for each, of in mine.items())
                       for files in sets):
                return f"{name} exists without the files that belong to it"
        elif name.endswith((".npy", "-description.txt")) and all(files.get(name) != data
                                                                 for files in sets):
            return f"{name} has other bytes"
    return None


class Attack:
    def __init__(self, library, root, ending):
        self.library, self.root, self.ending = library, root, ending
        self.numbers = itertools.count()
        self.table = attack.Table(("scenario", "fault"),
                                  ("refused", "complete", "killed", "missed", "wrong", "hangs"))
        self.problems = []
        self.lock = threading.Lock()
        (root / "boards").mkdir()

    def preloaded(self, command, plan=None, rank=None, ending=None, hooks=None,
                  limit_s=attack.LIMIT_S):
        """Runs command(before) with the library preloaded. `before` is a prefix for the command line of
        the attacked program. Returns the result, the number of calls of each kind, how often the fault
        struck, and where it struck first."""
        board = self.root / "boards" / str(next(self.numbers))
        board.write_bytes(bytes(BOARD_BYTES))
        env = [f"MILLRACE_FAIL_FOLDER={self.root}", f"MILLRACE_FAIL_BOARD={board}",
               f"LD_PRELOAD={self.library}", "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"]
        if ending:
            env.append(f"MILLRACE_FAIL_NAME={ending}")
        if plan:
            env.append(f"MILLRACE_FAIL_KTH={plan}")
        if rank is not None:
            env.append(f"MILLRACE_FAIL_RANK={rank}")
        result = attack.run(command(["env", *env]), hooks, limit_s)
        with board.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
            numbers = struct.unpack_from("<33Q", data)
            first = data[33 * 8:].split(b"\0")[0].decode(errors="replace")
        board.unlink()
        return result, dict(zip(KINDS, numbers)), numbers[32], first

    def disturbed(self, scenario, folder, plan, rank):
        return self.preloaded(lambda before: scenario.command(folder, (), before), plan, rank,
                              self.ending, scenario.hooks, scenario.limit_s)

    def probe(self, program):
        """Ends the script unless the library can count calls of this program and make a call fail."""
        probe = self.root / "probe"
        probe.mkdir()
        command = lambda before: [*before, program, "info", probe / "absent"]
        result, calls, _, _ = self.preloaded(command)
        if "cannot be preloaded" in result.err:
            print(f"skipped: this system does not preload {self.library}: {result.err.strip()}")
            sys.exit(77)
        kind = max(calls, key=calls.get)
        if calls[kind] == 0:
            sys.exit(f"fail_kth: {self.library} was preloaded into {program}, and saw no call on a "
                     f"file: status {result.status}: {result.err.strip()}")
        _, _, fired, _ = self.preloaded(command, f"{kind}:1:EIO:once")
        if fired != 1:
            sys.exit(f"fail_kth: {self.library} counts the calls of {program}, but the fault "
                     f"{kind}:1:EIO:once struck {fired} times; expected once")

    def new_folder(self, scenario):
        folder = self.root / "cases" / str(next(self.numbers)) / "out"
        attack.fill(folder, scenario.begin)
        return folder

    def count(self, scenario, rank):
        """Counts the calls of each kind in an undisturbed run. Also checks the result of this run."""
        folder = self.new_folder(scenario)
        scenario.limit_s *= attack.PATIENCE
        result, calls, _, _ = self.disturbed(scenario, folder, None, rank)
        scenario.limit_s = attack.limit_of(result.seconds, scenario.limit_s / attack.PATIENCE)
        if scenario.refuses:
            right = result.status != 0 and not attack.refusal_problem(result, scenario.program)
        else:
            right = result.status == 0
        if scenario.wanted is None:
            scenario.wanted = attack.contents(folder)
        wrong = attack.difference(attack.contents(folder), scenario.wanted)
        if not right or wrong:
            sys.exit(f"{scenario.name}, undisturbed: status {result.status}: {wrong}\n{result.err}")
        shutil.rmtree(folder.parent)
        return calls

    def retry(self, scenario, folder):
        """Repeats the run without a fault. Returns what is wrong, or None."""
        if scenario.refuses:
            result = attack.run(scenario.command(folder, (), []), scenario.hooks, scenario.limit_s)
            if result.status == 0:
                return "the retry was to be refused"
            if wrong := attack.difference(attack.contents(folder), scenario.wanted):
                return f"after the retry, {wrong}"
            return attack.refusal_problem(result, scenario.program)
        for more in scenario.retries:
            result = attack.run(scenario.command(folder, more, []), scenario.hooks,
                                scenario.limit_s)
            if problem := attack.crash_of(result):
                return f"the retry {' '.join(more)} {problem}"
            if result.status == 0:
                wrong = attack.difference(attack.contents(folder), scenario.wanted)
                return f"after the retry {' '.join(more)}, {wrong}" if wrong else None
            if "--overwrite" not in result.err:
                return f"the retry {' '.join(more)} fails: {result.err.strip()}"
        return f"no retry helps: {result.err.strip()}"

    def judge(self, scenario, folder, plan, result, fired):
        """Returns the outcome of a run, and what is wrong with the run or None."""
        killed = "kill" in plan and fired and result.status != 0
        if not killed and (problem := attack.crash_of(result)):
            return "wrong", problem
        found = attack.contents(folder)
        if scenario.refuses:
            finished = {name: data for name, data in found.items()
                        if not attack.is_unfinished(name)}
            if wrong := attack.difference(finished, scenario.wanted):
                return "wrong", f"was to be refused, but {wrong}"
            if result.status == 0:
                return "wrong", "was to be refused"
        elif not fired and result.status != 0:
            return "wrong", f"no fault struck, but status {result.status}"
        if result.status == 0:
            if wrong := attack.difference(found, scenario.wanted):
                return "wrong", f"exit 0, but {wrong}"
            return ("complete" if fired else "missed"), None
        if not killed and (problem := attack.refusal_problem(result, scenario.program)):
            return "wrong", problem
        if plan.startswith("lock:") and ":EINTR:" in plan and not scenario.refuses:
            return "wrong", "an interrupted lock was not tried again"
        if problem := torn_index(found, scenario):
            return "wrong", problem
        if problem := self.retry(scenario, folder):
            return "wrong", problem
        if not fired:
            return "missed", None
        return ("killed" if killed else "refused"), None

    @staticmethod
    def told(scenario, result):
        """Returns the end of stderr. For an MPI job, leaves out the lines of mpirun itself."""
        lines = result.err.strip().splitlines()
        own = [line for line in lines if line.startswith(scenario.program)]
        return "\n      ".join((own or lines)[-6:])

    def attempt(self, case):
        scenario, rank, plan = case
        folder = self.new_folder(scenario)
        result, _, fired, first = self.disturbed(scenario, folder, plan, rank)
        outcome, problem = self.judge(scenario, folder, plan, result, fired)
        self.record(case, outcome, problem and (
            f"{problem}\n    struck {fired} times, first in {first}\n"
            f"    status {result.status}: {self.told(scenario, result)}"))
        shutil.rmtree(folder.parent)

    def hangs(self, case, what):
        self.record(case, "hangs", what)

    def record(self, case, outcome, problem):
        scenario, rank, plan = case
        with self.lock:
            self.table.add((scenario.name, plan.split(":")[2]), outcome)
            if problem:
                which = f" --rank {rank}" if rank is not None else ""
                which += f" --name {self.ending}" if self.ending else ""
                self.problems.append(
                    f"--only '{scenario.name}' --plan {plan}{which}: {outcome}: {problem}")

    def cases(self, scenarios, kinds, faults, seed):
        """Yields all cases. They are ordered so that the first cases already cover all scenarios and
        kinds."""
        groups = []
        for scenario in scenarios:
            for rank in scenario.ranks:
                counted = self.count(scenario, rank)
                if not self.ending and not any(counted.values()):
                    sys.exit(f"fail_kth: {scenario.name}: the library saw no call of the program")
                for kind, calls in counted.items():
                    if kinds and kind not in kinds:
                        continue
                    plans = [(scenario, rank, f"{kind}:{k}:{fault}:{when}")
                             for k in range(1, calls + 1) for fault in FAULTS[kind]
                             if not faults or fault in faults
                             for when in times_of(kind, fault)]
                    plans.sort(key=lambda case: attack.chosen_number(
                        seed, scenario.name, rank, case[2]))
                    if plans:
                        order = attack.chosen_number(seed, scenario.name, rank, kind)
                        groups.append((order, scenario.cost, plans))
        groups = [group for _, *group in sorted(groups, key=lambda group: group[0])]
        for turn in itertools.count():
            if not any(plans for _, plans in groups):
                return
            for cost, plans in groups:
                if plans and (turn % cost == cost // 2 or all(c == cost for c, p in groups if p)):
                    yield plans.pop()


def preloadable(library, copy):
    """Returns a path of the library that LD_PRELOAD accepts. LD_PRELOAD splits its value at spaces and
    colons. If the path contains one, the library is copied and the path of the copy is returned."""
    if not library.is_file():
        sys.exit(f"fail_kth: --library: {library} does not exist; build the target fail_kth")
    if not set(str(library)) & set(" :"):
        return library
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        if os.access(folder, os.W_OK):
            made = pathlib.Path(copy.enter_context(
                tempfile.TemporaryDirectory(prefix="millrace-kth-", dir=folder)))
            return pathlib.Path(shutil.copy(library, made))
    print(f"skipped: {library} has a space or a colon in its path, and neither /tmp, /var/tmp nor "
          "/dev/shm takes a copy")
    sys.exit(77)


def scenarios_in(root, programs, chance, mpiexec):
    """Makes the files that exist at the start of the scenarios, and yields the scenarios. If a scenario
    has no expected result, an undisturbed run produces it later."""
    preprocess, merge = programs / "preprocess_data", programs / "merge_datasets"
    inspect = programs / "inspect_dataset"
    good = attack.Corpus(root / "in" / "good", chance, 24, dirty=False)
    dirty = attack.Corpus(root / "in" / "dirty", chance, 32, dirty=True)
    short = attack.Corpus(root / "in" / "short", chance, 8, dirty=False)
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(attack.GOLDEN / "tiny_bpe" / name, root / "in")
    gpt2 = ["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", root / "in/vocab.json",
            "--merge-file", root / "in/merges.txt"]
    keys = attack.quarantine("text", "title")

    def preprocessing(inputs, *flags, program=(preprocess,)):
        def command(folder, more, before):
            return [*program[:-1], *before, *attack.preprocessing(
                program[-1], inputs, folder / "out", "--workers", "2", *flags, *more)]
        return command

    def made(command, kill_at=None):
        return attack.made(root, lambda folder: command(folder, (), []), kill_at)[0]

    resumes = [("--resume",), ("--overwrite",)]
    plain = preprocessing(good.inputs, "--append-eod", "--eod-token", "<|endoftext|>", *gpt2)
    quarantine = preprocessing(dirty.inputs, *keys)
    whole = made(quarantine)
    old = made(preprocessing(short.inputs, *keys))
    half = made(quarantine, "journal:9")
    all_but_done = made(quarantine, "publish:1")
    partitions = preprocessing(dirty.inputs, *keys, "--partitions", "3")
    giant = {**attack.HOOKS, "MILLRACE_TEST_GIANT_BYTES": "70"}

    def with_flag(command, flag):
        # A retry replaces `flag` by a flag of its own.
        return lambda folder, more, before: command(folder, more or (flag,), before)

    yield Scenario("preprocess", "preprocess_data", plain, retries=resumes)

    def cached(folder, more, before):
        return [*plain(folder, more, before), "--tokenizer-cache", folder / "cache"]

    with_cache = made(cached)
    yield Scenario("preprocess, tokenizer cache", "preprocess_data", cached, wanted=with_cache,
                   begin={name: data for name, data in with_cache.items() if "cache" in name},
                   retries=resumes)
    yield Scenario("preprocess, quarantine", "preprocess_data", quarantine, wanted=whole,
                   retries=resumes)
    yield Scenario("preprocess --resume", "preprocess_data", with_flag(quarantine, "--resume"),
                   begin=half, wanted=whole, retries=resumes)
    yield Scenario("preprocess --resume, half published", "preprocess_data",
                   with_flag(quarantine, "--resume"), begin=all_but_done, wanted=whole,
                   retries=resumes)
    yield Scenario("preprocess --resume of a finished run", "preprocess_data",
                   with_flag(quarantine, "--resume"), begin=whole, wanted=whole, retries=resumes)
    yield Scenario("preprocess --overwrite", "preprocess_data",
                   with_flag(quarantine, "--overwrite"), begin=old, old=old, wanted=whole,
                   retries=resumes)
    yield Scenario("preprocess where files exist", "preprocess_data", quarantine, begin=old,
                   wanted=old, refuses=True)
    only = {"out_text_document.bin": b"of somebody else"}
    yield Scenario("preprocess where one file exists", "preprocess_data", quarantine, begin=only,
                   wanted=only, refuses=True)
    yield Scenario("preprocess --partitions", "preprocess_data", partitions, retries=resumes)
    yield Scenario("preprocess, giant lines", "preprocess_data", quarantine, hooks=giant,
                   wanted=whole, retries=resumes)
    task = lambda number: preprocessing(dirty.inputs, *keys, "--task", f"{number}/3")
    yield Scenario("preprocess --task", "preprocess_data", task(1), retries=resumes)

    # The parts of one preprocessing run. Merged, they equal the whole dataset.
    parts = {}
    for number in range(3):
        parts.update(made(task(number)))
    tasks = {name: data for name, data in parts.items() if "_text_document" in name}
    attack.fill(root / "in" / "tasks", tasks)
    one = {f"merged.{name.rsplit('.', 1)[1]}": data for name, data in whole.items()
           if name.startswith("out_text_document.")}
    attack.fill(root / "in" / "parts",
                {f"{of}_document.{name.rsplit('.', 1)[1]}": data for of, files in
                 (("a", whole), ("b", old)) for name, data in files.items()
                 if name.startswith("out_text_document.")})

    def merging(inputs, *flags):
        def command(folder, more, before):
            return [*before, merge, "--input", inputs, "--output-prefix", folder / "merged", *flags,
                    *more]
        return command

    merges = [(), ("--overwrite",)]
    shuffled = merging(root / "in" / "parts", "--shuffle-documents", "7")
    two = merging(root / "in" / "parts")
    yield Scenario("merge of tasks", "merge_datasets", merging(root / "in" / "tasks"), wanted=one,
                   retries=merges)
    yield Scenario("merge", "merge_datasets", two, retries=merges)
    yield Scenario("merge --overwrite", "merge_datasets", with_flag(two, "--overwrite"), begin=one,
                   old=one, retries=[("--overwrite",)])
    yield Scenario("merge where files exist", "merge_datasets", two, begin=one, wanted=one,
                   refuses=True)
    only_merged = {"merged.bin": b"of somebody else"}
    yield Scenario("merge where one file exists", "merge_datasets", two, begin=only_merged,
                   wanted=only_merged, refuses=True)
    yield Scenario("merge --shuffle-documents", "merge_datasets", shuffled, retries=merges)
    yield Scenario("merge --shuffle-documents --overwrite", "merge_datasets",
                   with_flag(shuffled, "--overwrite"), begin=one, old=one,
                   retries=[("--overwrite",)])

    shutil.copy(attack.GOLDEN / "megatron_cache" / "tokenizer.json", root / "in")
    for name in ("a", "b"):
        for end in ("bin", "idx"):
            shutil.copy(root / "in" / "parts" / f"{name}_document.{end}", root / "in")

    def caching(folder, more, before):
        return [*before, inspect, "prepare-cache", "--data-path", "0.7", root / "in/a_document",
                "0.3", root / "in/b_document", "--seq-length", "8", *attack.SAMPLES,
                "--data-cache-path", folder / "cache", "--tokenizer-description",
                root / "in/tokenizer.json", *more]

    yield Scenario("prepare-cache", "inspect_dataset", caching, retries=[()])
    yield Scenario("prepare-cache of half a cache", "inspect_dataset", caching, retries=[()],
                   begin={name: data for i, (name, data) in enumerate(made(caching).items())
                          if i % 3 != 0}, wanted=made(caching))

    mpi = programs / "preprocess_data_mpi"
    if not mpi.exists() or not mpiexec:
        print("preprocess_data_mpi is NOT attacked: this build has no MPI")
        return
    job = preprocessing(dirty.inputs, *keys, program=(mpiexec, "-n", "2", mpi))
    yield Scenario("mpi", "preprocess_data_mpi", job, wanted=whole, parts=parts, retries=resumes,
                   cost=2, ranks=(0, 1), least_limit_s=3 * attack.LIMIT_S, hooks={
                       **attack.HOOKS, "MILLRACE_TEST_TASKS": "3",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
                       "OMPI_MCA_odls_base_sigkill_timeout": "0"})


def main():
    parser = attack.arguments(__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, type=pathlib.Path, help="fail_kth.so")
    parser.add_argument("--mpiexec", default=shutil.which("mpirun"))
    parser.add_argument("--only", nargs="+", help="try only these scenarios")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="try only calls of these kinds")
    parser.add_argument("--faults", nargs="+", choices=sorted(set(sum(FAULTS.values(), []))),
                        help="try only these faults")
    parser.add_argument("--name", help="try only calls on files with this suffix, e.g. .journal")
    parser.add_argument("--plan", help="try only this fault: KIND:K:FAULT:once|on")
    parser.add_argument("--rank", type=int, help="with --plan: the MPI process in which it occurs")
    given = parser.parse_args()
    seed = attack.seed_of(given)
    programs = given.bin.resolve()
    with contextlib.ExitStack() as stack:
        root = pathlib.Path(stack.enter_context(attack.scratch_folder(given, "kth")))
        attacked = Attack(preloadable(given.library.resolve(), stack), root, given.name)
        attacked.probe(programs / "inspect_dataset")
        # The corpus does not depend on --seed, so that --plan replays a case with any seed.
        scenarios = list(scenarios_in(root, programs, random.Random(1), given.mpiexec))
        names = [each.name for each in scenarios]
        if unknown := set(given.only or []) - set(names):
            parser.error(f"--only: there is no scenario {', '.join(map(repr, sorted(unknown)))}; "
                         f"expected one of: {'; '.join(names)}")
        if given.only:
            scenarios = [each for each in scenarios if each.name in given.only]
        if given.plan:
            cases = [(scenario, given.rank, given.plan) for scenario in scenarios]
            for scenario in scenarios:
                attacked.count(scenario, given.rank)
        else:
            cases = list(attacked.cases(scenarios, given.kinds, given.faults, seed))
        tried = attack.work_through(cases[:given.cases], attacked.attempt, attacked.hangs,
                                    given.seconds)
        attacked.table.print()
        print(f"failing calls: {tried} of {len(cases)} cases tried, "
              f"{attacked.table.total('wrong', 'hangs')} wrong")
        if not cases:
            attacked.problems.append("there is no case: --only, --kinds, --faults and --name "
                                     "together match no call of these scenarios")
        elif tried == 0:
            attacked.problems.append("no case was tried: --cases or --seconds leaves none")
        elif 2 * (missed := attacked.table.total("missed")) > tried:
            attacked.problems.append(f"{missed} of {tried} cases were missed: their fault never "
                                     "struck, so they prove nothing")
        attack.report(attacked.problems)
        return 1 if attacked.problems else 0


if __name__ == "__main__":
    sys.exit(attack.guarded(main))
