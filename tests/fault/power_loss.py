#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Power loss for preprocess_data, by replay.

A kill leaves the page cache; a power loss does not. So a run is recorded under strace, with all that
it writes, and for each moment between two system calls the folder is built that a loss of power at
that moment could leave. There `preprocess_data --resume` must end with the files of a run that was
never disturbed: equal SHA-256, sidecars included, and nothing beside them.

What POSIX promises is all that is relied on. A file's bytes are safe up to the start of its last
fsync or fdatasync that returned; the names in the folder up to the start of the folder's last fsync.
That a file system keeps more than that, as ext4 does, does not count. Of what is not safe survives:

  least    nothing: neither bytes nor names
  names    all names, no bytes
  sizes    all names, and sizes with zeros where the bytes should be
  bytes    all bytes, no names
  some     by chance, several times: each change of a name or not; each write, half of it or none

Not simulated: a safe sector that a torn write of its neighbour takes along, a disk that lies about
its cache, a rename that leaves both names or none.

Recorded are: a fresh run; one that is killed, and its --resume, with what the first one left unsafe;
one that is killed when it was all but done, and then --overwrite; --overwrite of a finished pair, of
which at each moment one pair or the other must be whole, or no index there. The inputs are dirty: bad
records under quarantine, lines ended by \\r\\n, gzip, zstd in frames and an empty file, in blocks of a
few lines with a checkpoint after each.

Exits 77 where there is no strace, or it may not trace.
"""

import argparse
import concurrent.futures
import gzip
import hashlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

CALLS = ("openat,pwrite64,write,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,"
         "fsync,fdatasync,close")


# --- the record ------------------------------------------------------------------------------------


class Call:
    """A system call that succeeded, with the lines of the trace where it began and ended."""

    def __init__(self, name, arguments, result, begin, end):
        self.name, self.arguments, self.result = name, arguments, result
        self.begin, self.end = begin, end


def unescape(text):
    return bytes.fromhex(text.replace("\\x", ""))


def split_arguments(text):
    """Arguments of a call; strings as bytes, descriptors as numbers, the rest as text."""
    found = []
    for part in re.findall(r'"(?:\\x[0-9a-f]{2})*"|[^",][^,]*', text):
        part = part.strip()
        if part.startswith('"'):
            found.append(unescape(part[1:-1]))
        elif part:
            number = re.match(r"-?\d+", part)
            found.append(int(number.group()) if number else part)
    return found


def parse(trace):
    """The calls of one process, in the order in which they ended."""
    calls, begun = [], {}
    whole = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)")
    start = re.compile(r"^(\d+) +(\w+)\((.*?),? *<unfinished \.\.\.>$")
    rest = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
    for number, line in enumerate(trace.read_text().splitlines()):
        begin = number
        if found := start.match(line):
            begun[found[1]] = (number, f"{found[1]}  {found[2]}({found[3]}")
            continue
        if found := rest.match(line):
            begin, head = begun.pop(found[1])
            tail = found[3]
            line = head + (tail if tail.lstrip().startswith((")", ",")) else "," + tail)
        found = whole.match(line)
        if found and int(found[4]) >= 0:
            calls.append(Call(found[2], split_arguments(found[3]), int(found[4]), begin, number))
    return calls


def record(arguments, folder, environment, statuses):
    """Runs a program under strace; the calls that it made."""
    trace = folder / "trace"
    command = ["strace", "-f", "-xx", "-s", "4000000", "--seccomp-bpf", "-e", f"trace={CALLS}",
               "-e", "signal=none", "-o", str(trace), *arguments]
    done = subprocess.run(command, env={**os.environ, **environment,
                                         "ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True)
    if done.returncode not in statuses:
        sys.exit(f"recorded run ended with {done.returncode}: {done.stderr.decode()}")
    return parse(trace)


# --- the disk --------------------------------------------------------------------------------------


class File:
    """A file's bytes: those that are safe, and what was done to it since."""

    def __init__(self, safe=b""):
        self.safe, self.log = safe, []  # log: (line, kind, number, bytes)

    def sync(self, begin):
        self.safe = apply(self.safe, [op for op in self.log if op[0] < begin])
        self.log = [op for op in self.log if op[0] >= begin]


def apply(content, log):
    content = bytearray(content)
    for _, kind, at, data in log:
        if kind == "size":
            del content[at:]
            content.extend(bytes(at - len(content)))
            continue
        content.extend(bytes(max(0, at + len(data) - len(content))))
        content[at:at + len(data)] = data
    return bytes(content)


def rename_all(names, log):
    names = dict(names)
    for _, kind, name, value in log:
        if kind == "link":
            names[name] = value
        elif name in names:
            file = names.pop(name)
            if kind == "rename":
                names[value] = file
    return names


class Disk:
    """A folder as it is in memory and as it is on disk, while calls are replayed."""

    def __init__(self, folder, names):
        self.prefix = os.fsencode(folder) + b"/"
        self.names = {name: File(data) for name, data in names.items()}
        self.safe_names = dict(self.names)
        self.log = []
        self.open = {}

    def start_process(self):
        self.open = {}
        for file in self.names.values():  # line numbers begin again
            file.log = [(-1, *op[1:]) for op in file.log]
        self.log = [(-1, *op[1:]) for op in self.log]

    def local(self, path):
        return path[len(self.prefix):] if path.startswith(self.prefix) else None

    def replay(self, call):
        """Whether the call changed anything in the folder, or made it safe."""
        name, at = call.name, call.arguments
        if name == "openat":
            return self.replay_open(call)
        if name.startswith(("rename", "unlink")):
            paths = [self.local(each) for each in at if isinstance(each, bytes)]
            if paths[0] is None:
                return False
            kind = "rename" if name.startswith("rename") else "unlink"
            self.log.append((call.end, kind, paths[0], paths[1] if kind == "rename" else None))
            self.names = rename_all(self.names, self.log[-1:])
            return True
        target = self.open.get(at[0])
        if target is None:
            return False
        if name == "close":
            del self.open[at[0]]
            return False
        if name in ("fsync", "fdatasync"):
            if target == "folder":
                self.safe_names = rename_all(self.safe_names,
                                             [op for op in self.log if op[0] < call.begin])
                self.log = [op for op in self.log if op[0] >= call.begin]
            else:
                target.sync(call.begin)
        elif name == "pwrite64":
            target.log.append((call.end, "write", at[-1], at[1][:call.result]))
        elif name == "ftruncate":
            target.log.append((call.end, "size", at[1], b""))
        elif name == "fallocate":
            return False  # KEEP_SIZE: nothing that can be seen
        else:
            sys.exit(f"{name} on an output: not known how to replay it")
        return True

    def replay_open(self, call):
        path = call.arguments[1]
        self.open.pop(call.result, None)
        if path + b"/" == self.prefix:
            self.open[call.result] = "folder"
            return False
        name = self.local(path)
        if name is None:
            return False
        created = name not in self.names
        if created:
            self.names[name] = File()
            self.log.append((call.end, "link", name, self.names[name]))
        self.open[call.result] = self.names[name]
        return created

    def after_loss(self, kind, chance):
        """What a power loss now leaves: bytes by name."""
        all_names = kind in ("names", "sizes")
        log = self.log if all_names else []
        if kind == "some":
            log = [op for op in self.log if chance.random() < 0.5]
        names = rename_all(self.safe_names, log)
        return {name: self.bytes_after_loss(file, kind, chance) for name, file in names.items()}

    @staticmethod
    def bytes_after_loss(file, kind, chance):
        if kind == "bytes":
            return apply(file.safe, file.log)
        if kind == "sizes":
            zeros = [(op[0], op[1], op[2], bytes(len(op[3]))) for op in file.log
                     if op[1] == "size" or op[2] >= len(file.safe)]
            return apply(file.safe, zeros)
        if kind == "some":
            some = []
            for op in file.log:
                if chance.random() < 0.5:
                    whole = chance.random() < 0.5
                    some.append((*op[:3], op[3] if whole else
                                 op[3][:chance.randrange(len(op[3]) + 1)]))
            return apply(file.safe, some)
        return file.safe


KINDS = ("least", "names", "sizes", "bytes", "some", "some", "some")


def losses(disk, runs, chance):
    """Each folder that a loss during `runs` could leave, once."""
    seen = set()
    for calls in runs:
        disk.start_process()
        for number, call in enumerate(calls):
            if not disk.replay(call):
                continue
            for kind in KINDS:
                left = disk.after_loss(kind, chance)
                digest = hashlib.sha256(repr(sorted(left.items())).encode()).digest()
                if digest not in seen:
                    seen.add(digest)
                    yield f"{kind} after call {number} ({call.name})", left


# --- the runs --------------------------------------------------------------------------------------


def contents(folder):
    return {os.fsencode(path.name): path.read_bytes() for path in sorted(folder.iterdir())}


def fill(folder, names):
    folder.mkdir()
    for name, data in names.items():
        (folder / os.fsdecode(name)).write_bytes(data)


def is_finished(name):
    return not name.endswith((b".partial", b".journal"))


class Corpus:
    """Inputs, and the command that reads them."""

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
            packed = folder / "e.jsonl.zst"
            for begin in (30, 33):
                text = b"".join(line(chance, i) for i in range(begin, begin + 3))
                frame = subprocess.run(["zstd", "-q", "-c"], input=text, capture_output=True,
                                       check=True).stdout
                with packed.open("ab") as out:
                    out.write(frame)
            self.inputs.append(str(packed))

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
                "--json-keys", "text", "title", "--on-bad-record", "quarantine", *more]

    hooks = {"MILLRACE_TEST_BLOCK_BYTES": "150", "MILLRACE_TEST_CHECKPOINT_MS": "0"}

    def run(self, folder, *more):
        return subprocess.run(self.command(folder, *more), capture_output=True)


def goes_on(left):
    """Whether there is something done to go on from."""
    return (b"out.journal" in left and
            len(left.get(b"out_text_document.bin.partial", b"")) > 0)


def expect_old_or_new(left, old, new):
    """Under final names: a pair that is whole, or no index."""
    for key in (b"text", b"title"):
        pair = [b"out_" + key + b"_document." + end for end in (b"bin", b"idx")]
        if pair[1] not in left:
            continue
        found = [left.get(name) for name in pair]
        if found not in ([old.get(name) for name in pair], [new[name] for name in pair]):
            return f"an index of {key.decode()} without the tokens that belong to it"
    return None


def try_loss(corpus, number, what, left, old, new):
    """A problem in words, or nothing."""
    if problem := expect_old_or_new(left, old, new):
        return f"{what}: {problem}"
    folder = corpus.root / f"loss{number}"
    fill(folder, left)
    try:
        done = corpus.run(folder, "--resume")
        if done.returncode == 1 and old and b"exists; give --overwrite" in done.stderr:
            # Nothing of the new run was safe, so the old pair is what there is.
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
    """How many losses were tried, and the problems."""
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
    parser.add_argument("--most", type=int, default=400, help="losses tried of each run")
    options = parser.parse_args()
    try:
        may = subprocess.run(["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true"],
                             capture_output=True).returncode == 0
    except FileNotFoundError:
        may = False
    if not may:
        print("power loss is NOT tested: there is no strace here, or it may not trace")
        return 77
    # fsync of a file in memory is for nothing, and so quick.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="millrace-power-", dir=memory) as root:
        corpus = Corpus(str(pathlib.Path(options.program).resolve()), pathlib.Path(root), chance)
        return 1 if scenarios(corpus, chance, options.most) else 0


if __name__ == "__main__":
    sys.exit(main())
