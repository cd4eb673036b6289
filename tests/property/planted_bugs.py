#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants bugs in copies of libraries and reports which of them are found, for the scripts that check that a test finds
them. Run as a program, it checks its own matcher, and that each bug of those scripts can be planted. It compiles nothing
and needs no reference program, so a pattern that lost its code shows at once.

usage: planted_bugs.py FOLDER      FOLDER: the root of the source tree

A script plants its BUGS in the libraries that it lists in LIBRARIES, or in the dataset library.

A bug is (name, pattern, replacement). A pattern is C++ and is compared token by token: line breaks, spaces, comments and
the file that the code is in do not matter. `$name` stands for one or more tokens with balanced brackets and without a
semicolon, such as a local name or an expression; the same `$name` must be the same tokens each time. The replacement
may use it. A pattern must match exactly once in the libraries; where code is repeated, add the tokens before it.
"""
import argparse
import ast
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMPILER = [os.environ.get("CXX", "c++"), "-std=c++20", "-pthread"]

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<token>R"(?P<raw>[^()\s]*)\(.*?\)(?P=raw)"
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
      | \$\w+
      | [A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|'?[\w.])*
      | <=>|<<=|>>=|->\*|\.\.\.|::|->|\+\+|--|<<|[-+*/%&|^<>=!]=|&&|\|\||\#\#|.)
""", re.VERBOSE | re.DOTALL)
CLOSING = {"(": ")", "[": "]", "{": "}"}


class UnplantedBug(Exception):
    """A pattern does not match exactly once."""


def tokens_of(text):
    """(token, begin, end) of each token."""
    return [(found["token"], found.start(), found.end())
            for found in TOKEN.finditer(text) if found["token"] is not None]


def match_from(tokens, at, pattern, captured):
    """Where the match of `pattern` that begins at token `at` ends, and the range of each $name; or None."""
    if not pattern:
        return at, captured
    wanted, rest = pattern[0], pattern[1:]
    if not wanted.startswith("$"):
        return match_from(tokens, at + 1, rest, captured) if tokens[at:at + 1] == [wanted] else None
    if wanted in captured:
        begin, end = captured[wanted]
        again = at + end - begin
        return match_from(tokens, again, rest, captured) if tokens[at:again] == tokens[begin:end] else None
    expected, end = [], at
    while end < len(tokens) and tokens[end] != ";":
        token = tokens[end]
        end += 1
        if token in CLOSING:
            expected.append(CLOSING[token])
        elif token in CLOSING.values() and (not expected or expected.pop() != token):
            return None
        if not expected:
            found = match_from(tokens, end, rest, {**captured, wanted: (at, end)})
            if found:
                return found  # with the fewest tokens for this $name
    return None


class Library:
    """The sources in which bugs are planted."""

    def __init__(self, texts):
        """texts: by path"""
        self.texts = texts
        self.tokens = {path: tokens_of(text) for path, text in texts.items()}

    @staticmethod
    def read(root, names=None):
        """The libraries with these names below `root`; paths begin with them. Without names: that in `root` itself."""
        root = pathlib.Path(root)
        files = [path for name in names or ["."] for pattern in ("include/**/*.hpp", "src/**/*.[hc]pp")
                 for path in sorted((root / name).glob(pattern))]
        return Library({str(path.relative_to(root)): path.read_text() for path in files})

    def matches(self, pattern):
        for path, tokens in self.tokens.items():
            names = [name for name, _, _ in tokens]
            for at in range(len(names)):
                if names[at] == pattern[0]:
                    found = match_from(names, at, pattern, {})
                    if found:
                        yield path, at, *found

    def plant(self, bug):
        """The path of the file that the bug changes, and the text of that file with the bug."""
        name, pattern, replacement = bug
        wanted = [token for token, _, _ in tokens_of(pattern)]
        if wanted[0].startswith("$") or wanted[-1].startswith("$"):
            raise UnplantedBug(f"{name}: the pattern must neither begin nor end with a $name")
        found = list(self.matches(wanted))
        if len(found) != 1:
            places = [f"{path}:{self.texts[path].count(chr(10), 0, self.tokens[path][at][1]) + 1}"
                      for path, at, _, _ in found]
            raise UnplantedBug(f"{name}: {len(found)} matches, expected one{': ' * bool(places)}{', '.join(places)}")
        path, begin, end, captured = found[0]
        text, tokens = self.texts[path], self.tokens[path]

        def captured_text(variable):
            first, last = captured[variable[0]]
            return text[tokens[first][1]:tokens[last - 1][2]]

        altered = re.sub(r"\$\w+", captured_text, replacement)
        return path, text[:tokens[begin][1]] + altered + text[tokens[end - 1][2]:]


def report(bugs, find, jobs=1):
    """Prints for each bug whether `find(bug)` finds it. Returns the exit status: 1 if a bug is not found. A text that
    `find` returns says how the bug was found. At most `jobs` calls run at a time."""
    count = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for bug, found in zip(bugs, pool.map(find, bugs)):
            how = f" ({found})" if isinstance(found, str) else ""
            print(f"{'found' if found else 'NOT FOUND'}: {bug[0]}{how}", flush=True)
            count += bool(found)
    print(f"{count} of {len(bugs)} bugs found")
    return 0 if count == len(bugs) else 1


def script_parser(usage):
    """A parser for the scripts that compile tests here."""
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("folder", type=lambda folder: pathlib.Path(folder).resolve())
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    return parser


def passes_in_time(program, seconds):
    """Whether a test passes, and within this time."""
    try:
        return subprocess.run([program], capture_output=True, timeout=seconds).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def check_tests(bugs, passes_with, arguments):
    """Checks that tests pass without a bug, and reports which bugs they find. Returns the exit status.

    `passes_with(bug, folder)` compiles and runs the tests with a bug, or without one if it is None, in an empty folder.
    `arguments` are those of `script_parser`.
    """
    def is_found(bug):
        with tempfile.TemporaryDirectory() as folder:
            return not passes_with(bug, pathlib.Path(folder))

    if is_found(None):
        raise SystemExit("a test fails without a bug")
    return report([bug for bug in bugs if arguments.only in bug[0]], is_found, arguments.jobs)


def constant(script, name, default):
    """A constant of a script, without running it."""
    for statement in ast.parse(script.read_text()).body:
        if isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == [name]:
            return ast.literal_eval(statement.value)
    return default


def check_matcher():
    """An AssertionError where the matcher is wrong."""
    def planted(pattern, replacement, text="int f() {\n  return g(a,  // one\n           b[1]) + c;\n}\n"):
        try:
            return Library({"one.cpp": text}).plant(("bug", pattern, replacement))[1]
        except UnplantedBug as problem:
            return str(problem)

    assert planted("g(a, b[1])", "0") == "int f() {\n  return 0 + c;\n}\n", "line breaks or comments matter"
    assert planted("return $x + $y;", "return $y - $x;") == (
        "int f() {\n  return c - g(a,  // one\n           b[1]);\n}\n"), "a $name was not put in its place"
    assert planted("f($x)", "") == "bug: 0 matches, expected one", "a $name matched no tokens or a lone bracket"
    assert planted("{ $x }", "") == "bug: 0 matches, expected one", "a $name matched a semicolon"
    assert planted("h", "") == "bug: 0 matches, expected one"
    assert planted("g", "", "g;\n// g\n\"g\";\ng g2;") == "bug: 2 matches, expected one: one.cpp:1, one.cpp:4"
    assert planted("$x", "").startswith("bug: the pattern must"), "a pattern without an edge was taken"
    assert planted("f($x, $x)", "$x", "f(a, b); f(a.b, a.b);") == "f(a, b); a.b;", "$x was two things"


def main():
    check_matcher()
    libraries = {}
    here = pathlib.Path(__file__).resolve().parent
    seen, problems = 0, []
    for script in sorted(here.glob("*/*.py")):
        names = constant(script, "LIBRARIES", ("dataset",))
        for bug in constant(script, "BUGS", ()):
            seen += 1
            if names not in libraries:
                libraries[names] = Library.read(sys.argv[1], names)
            library = libraries[names]
            try:
                path, text = library.plant(bug)
                if [token for token, _, _ in tokens_of(text)] == [token for token, _, _ in library.tokens[path]]:
                    problems.append(f"{script.name}: {bug[0]}: the replacement is the code itself")
            except UnplantedBug as problem:
                problems.append(f"{script.name}: {problem}")
    print(*problems, f"{seen} bugs, {len(problems)} that cannot be planted", sep="\n")
    sys.exit(1 if problems or seen < 90 else 0)


if __name__ == "__main__":
    main()
