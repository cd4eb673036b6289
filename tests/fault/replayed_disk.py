# SPDX-License-Identifier: Apache-2.0
"""Replays the system calls that strace recorded, to find out what a folder on disk holds after them."""

import hashlib
import os
import re
import subprocess
import sys

CALLS = ("openat,pwrite64,pwritev2,write,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,"
         "fsync,fdatasync,close")


# --- the record ------------------------------------------------------------------------------------


class Call:
    """A system call that succeeded, and the lines of the trace in which it began and ended."""

    def __init__(self, name, arguments, result, begin, end):
        self.name, self.arguments, self.result = name, arguments, result
        self.begin, self.end = begin, end


def unescape(text):
    return bytes.fromhex(text.replace("\\x", ""))


def split_arguments(text):
    """Splits the arguments of a call. Converts strings to bytes and descriptors to numbers; leaves the
    rest as text."""
    text = re.sub(r'\[\{iov_base=("(?:\\x[0-9a-f]{2})*"), iov_len=\d+\}\], 1', r"\1", text)
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
    """Returns the calls in the trace of one process, in the order in which the calls ended."""
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
    """Runs a program under strace, and returns the calls that the program made."""
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
    """The bytes of a file: the bytes that are safe on disk, and a log of the changes since then."""

    def __init__(self, safe=b""):
        self.safe, self.log = safe, []  # entries of the log: (line, kind, number, bytes)

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
    """A folder while calls are replayed: its contents in memory, and its contents on disk."""

    def __init__(self, folder, names):
        self.prefix = os.fsencode(folder) + b"/"
        self.names = {name: File(data) for name, data in names.items()}
        self.safe_names = dict(self.names)
        self.log = []
        self.open = {}

    def start_process(self):
        self.open = {}
        for file in self.names.values():  # each trace counts its lines from 0
            file.log = [(-1, *op[1:]) for op in file.log]
        self.log = [(-1, *op[1:]) for op in self.log]

    def local(self, path):
        return path[len(self.prefix):] if path.startswith(self.prefix) else None

    def replay(self, call):
        """Replays a call. Returns whether the call changed anything in the folder, or made anything
        safe on disk."""
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
            target.log.append((call.end, "write", at[3], at[1][:call.result]))
        elif name == "pwritev2":
            target.log.append((call.end, "write", at[2], at[1][:call.result]))
        elif name == "ftruncate":
            target.log.append((call.end, "size", at[1], b""))
        elif name == "fallocate":
            return False  # with KEEP_SIZE, the call has no visible effect
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
        """Returns the files that a power loss at this moment leaves: a dictionary from names to
        bytes."""
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
    """Yields each folder that a power loss during `runs` could leave. Leaves out repetitions."""
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
