#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the lines in which the scripts here and in ../loader plant bugs are there, each once: needs none of what those compare with, so that
a source that changed shows at once.

usage: planted_lines.py FOLDER      the folder of the dataset library
"""
import ast
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def bugs_of(script):
    """(name, file, line, altered line) of each, without running the script."""
    for statement in ast.parse(script.read_text()).body:
        if isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == ["BUGS"]:
            yield from ast.literal_eval(statement.value)


def main():
    below = pathlib.Path(sys.argv[1])
    seen = wrong = 0
    for script in sorted([*HERE.glob("*.py"), *HERE.parent.glob("loader/*.py")]):
        for name, file, line, _ in bugs_of(script):
            seen += 1
            source = below / file
            count = source.read_text().count(line) if source.exists() else 0
            if count != 1:
                wrong += 1
                print(f"{script.name}: {name}: {count} times in {file}, expected once: {line!r}")
    print(f"{seen} bugs to plant, {wrong} without their line")
    sys.exit(1 if wrong or seen < 30 else 0)


if __name__ == "__main__":
    main()
