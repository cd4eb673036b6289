#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folders of the product include which, against folders.txt, and that no folders form a cycle.

usage: folders.py SOURCE_DIR [--update]

  --update  rewrites the list of folders from the includes; keeps the top of the file and its exceptions

Exits with 1 and names file and line of each include that is not declared.
"""
import collections
import pathlib
import posixpath
import re
import sys
import textwrap

TOP_FOLDERS = ("formats", "preprocess", "dataset", "loader")
ENDINGS = {".h", ".hpp", ".inl", ".ipp", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<(millrace/[^>]+)>)')


class declaration:
    """folders.txt: short names (NAME = PATH), exceptions (except A -> B: reason), folders (A: B C)."""

    def __init__(self, path):
        self.path, self.names, self.exceptions, self.allowed, self.top = path, {}, {}, {}, []
        place, text = None, ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("    "):  # continues the line before
                text += " " + line.strip()
                continue
            if place:
                self.take(text, place)
            place, text = f"tests/docs/{path.name}:{number}", line
        if place:
            self.take(text, place)

    def take(self, line, place):
        if found := re.fullmatch(r"(\S+) = (\S+)", line):
            self.names[found[2]] = found[1]
        elif found := re.fullmatch(r"except (\S+) -> (\S+): \S.*", line):
            self.exceptions[found[1], found[2]] = place
        elif found := re.fullmatch(r"(\S+): (-|\S+(?: \S+)*)", line):
            if found[1] in self.allowed:
                sys.exit(f"{place}: {found[1]} is declared twice")
            self.allowed[found[1]] = {to: place for to in found[2].split() if to != "-"}
            return
        elif line and not line.startswith("#"):
            sys.exit(f"{place}: expected 'NAME = PATH', 'except A -> B: REASON' or 'A: B C', found {line!r}")
        self.top.append(line)

    def folder_of(self, file):
        """The short name of the folder that a file belongs to. Its path is relative to the repository."""
        return self.names.get(file) or self.name(file.rsplit("/", 1)[0])

    def name(self, folder):
        """The short name of a folder, whose path is relative to the repository."""
        for path in sorted(self.names, key=len, reverse=True):
            if folder == path or folder.startswith(path + "/"):
                return self.names[path] + folder[len(path):]
        return folder


class sources:
    """All files of C++ in the repository, and what they include of each other."""

    def __init__(self, root):
        self.root = root
        self.files = sorted(p.relative_to(root).as_posix() for top in (*TOP_FOLDERS, "tests", "bench")
                            for p in (root / top).rglob("*") if p.suffix in ENDINGS)
        self.known = set(self.files)
        self.by_name = collections.defaultdict(list)
        for file in self.files:
            self.by_name[file.rsplit("/", 1)[-1]].append(file)

    def find(self, included, file):
        """The file that `file` includes; None if it is not in this repository."""
        beside = posixpath.normpath(f"{file.rsplit('/', 1)[0]}/{included}")  # it may begin with ../
        if beside in self.known:
            return beside
        found = [f for f in self.by_name[included.rsplit("/", 1)[-1]] if f.endswith("/" + included)]
        # Two libraries may have private headers of the same name. Then the including file means the
        # one of its own library.
        return max(found, key=lambda f: common_parts(f, file), default=None)

    def arrows(self):
        """(file, line, included file) of each include in the product."""
        for file in self.files:
            if not file.startswith(tuple(top + "/" for top in TOP_FOLDERS)):
                continue
            text = (self.root / file).read_text(encoding="utf-8")
            for number, line in enumerate(text.splitlines(), 1):
                if found := INCLUDE.match(line):
                    yield file, number, self.find(found[1] or found[2], file) or found[1] or found[2]


def common_parts(a, b):
    count = 0
    for x, y in zip(a.split("/"), b.split("/")):
        if x != y:
            break
        count += 1
    return count


def cycle_in(graph):
    """The folders of a shortest cycle, the first one again at its end; empty if there is none."""
    shortest = []
    for start in sorted(graph):
        before, level = {}, [start]
        while level and start not in before:
            below = []
            for folder in level:
                for to in sorted(graph.get(folder, ())):
                    if to not in before:
                        before[to] = folder
                        below.append(to)
            level = below
        if start not in before:
            continue
        path = [start, before[start]]
        while path[-1] != start:
            path.append(before[path[-1]])
        if not shortest or len(path) < len(shortest):
            shortest = path[::-1]
    return shortest


def floors(graph):
    """The folders, each after all that it includes. @pre graph has no cycle"""
    order = []
    while left := [folder for folder in sorted(graph) if folder not in order]:
        order += [folder for folder in left if all(to in order for to in graph[folder])]
    return order


def main():
    flags = sys.argv[1:]
    update = "--update" in flags
    flags = [flag for flag in flags if flag != "--update"]
    if len(flags) != 1:
        sys.exit(__doc__)
    root = pathlib.Path(flags[0])
    declared = declaration(root / "tests/docs/folders.txt")
    faults, graph, places = [], collections.defaultdict(set), {}
    for file, number, included in sources(root).arrows():
        if "/" not in included or not (root / included).exists():
            faults.append(f"{file}:{number}: no file of this repository ends with {included}")
            continue
        folder, to = (declared.folder_of(path) for path in (file, included))
        graph[folder] |= {to} - {folder}
        graph[to] |= set()
        places.setdefault((folder, to), []).append(f"{file}:{number}: includes {included}")
    if not places:
        sys.exit(f"folders.py: there is no include in the folders {', '.join(TOP_FOLDERS)} of {root}")
    for folder in graph:
        graph[folder] = sorted(graph[folder])

    for pair, place in declared.exceptions.items():
        if pair not in places:
            faults.append(f"{place}: {pair[0]} no longer includes {pair[1]}; remove the exception")
    without = {folder: [to for to in graph[folder] if (folder, to) not in declared.exceptions] for folder in graph}
    cycle = cycle_in(without)
    if cycle:
        faults.append(f"these folders include each other in a cycle: {' -> '.join(cycle)}")
        faults += ["  " + place for pair in zip(cycle, cycle[1:]) for place in places[pair][:3]]
        faults.append("  Move what the includes of one arrow need to a folder below both.")
    if update:
        if faults:
            sys.exit("\n".join(faults))
        lines = [textwrap.fill(f"{folder}: {' '.join(graph[folder]) or '-'}", 100, subsequent_indent="    ",
                               break_on_hyphens=False) for folder in floors(without)]
        while declared.top and not declared.top[-1]:
            declared.top.pop()
        declared.path.write_text("\n".join([*declared.top, "", *lines]) + "\n", encoding="utf-8")
        return
    for folder in sorted(graph):
        known = declared.allowed.get(folder, {})
        for to in graph[folder]:
            if to not in known:
                faults += places[folder, to][:3]
                faults.append(f"  {folder} may not include {to}. Move what it needs, or declare it: "
                              "tests/docs/folders.py . --update")
    for folder in sorted(set(graph) ^ set(declared.allowed)):
        faults.append(f"{folder} is {'not declared' if folder in graph else 'declared, and no folder has that name'} "
                      "(tests/docs/folders.py . --update)")
    for folder, known in declared.allowed.items():
        for to, place in known.items():
            if (folder, to) not in places:
                faults.append(f"{place}: {folder} does not include {to}; remove it "
                              "(tests/docs/folders.py . --update does)")
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(graph)} folders, {sum(map(len, graph.values()))} arrows, {len(declared.exceptions)} exceptions")


if __name__ == "__main__":
    main()
