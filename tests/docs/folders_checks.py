#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in a small repository and expects folders.py to name each of them.

usage: folders_checks.py
"""
import pathlib
import subprocess
import sys
import tempfile

FOLDERS = """\
formats = formats/include/millrace
loader = loader/include/millrace/loader
loader = loader/src

formats: -
formats/io: formats
loader/io: formats/io
loader: formats loader/io
"""
FILES = {
    "formats/include/millrace/error.hpp": "",
    "formats/include/millrace/io/file.hpp": "#include <millrace/error.hpp>\n",
    "loader/include/millrace/loader/batch.hpp": "",
    "loader/src/io/reader.hpp": "#include <string>\n\n#include <millrace/io/file.hpp>\n",
    "loader/src/batch.cpp": '#include <millrace/error.hpp>\n#include "io/reader.hpp"\n',
    # A private header with the same name in another library.
    "dataset/src/io/reader.hpp": "",
}
checks = 0


def check(files, expected, declared=FOLDERS, flags=()):
    """Runs folders.py on FILES with some of them replaced; it must print `expected`, or pass if that is None."""
    global checks
    checks += 1
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**FILES, "tests/docs/folders.txt": declared, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        command = [sys.executable, pathlib.Path(__file__).with_name("folders.py"), root, *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if (done.returncode == 0) != (expected is None) or (expected or "") not in said:
            sys.exit(f"with {files or declared}\nexpected {expected or 'exit status 0'}\n"
                     f"found exit status {done.returncode}: {said}")
        return (root / "tests/docs/folders.txt").read_text(encoding="utf-8")


check({}, None)
check({"loader/src/io/reader.hpp": "#include <millrace/error.hpp>\n"},
      "loader/src/io/reader.hpp:1: includes formats/include/millrace/error.hpp\n"
      "  loader/io may not include formats.")
check({"formats/include/millrace/io/file.hpp": ""}, "tests/docs/folders.txt:6: formats/io does not include formats")
check({"formats/include/millrace/error.hpp": "#include <millrace/io/file.hpp>\n"},
      "in a cycle: formats -> formats/io -> formats\n"
      "  formats/include/millrace/error.hpp:1: includes formats/include/millrace/io/file.hpp\n"
      "  formats/include/millrace/io/file.hpp:1: includes formats/include/millrace/error.hpp")
# A cycle of more than two folders.
check({"formats/include/millrace/error.hpp": '// why\n#include "batch.cpp"\n',
       "loader/src/batch.cpp": '#include "io/reader.hpp"\n'},
      "in a cycle: formats -> loader -> loader/io -> formats/io -> formats\n"
      "  formats/include/millrace/error.hpp:2: includes loader/src/batch.cpp")
# The headers and the sources of a library count as the same folders.
check({"loader/include/millrace/loader/io/range.hpp": "#include <millrace/loader/batch.hpp>\n"},
      "in a cycle: loader -> loader/io -> loader\n"
      "  loader/src/batch.cpp:2: includes loader/src/io/reader.hpp\n"
      "  loader/include/millrace/loader/io/range.hpp:1: includes loader/include/millrace/loader/batch.hpp")
check({"loader/src/batch.cpp": '#include "io/raeder.hpp"\n'},
      "loader/src/batch.cpp:1: no file of this repository ends with io/raeder.hpp")
check({"loader/src/batch.cpp": '#include "support/fake.hpp"\n', "tests/support/fake.hpp": ""},
      "loader may not include tests/support.")
check({}, "tests/docs/folders.txt:5: loader no longer includes formats/io; remove the exception",
      FOLDERS.replace("\n\n", "\n\nexcept loader -> formats/io: for a while\n", 1))
check({}, "bench is declared, and no folder has that name", FOLDERS + "bench: -\n")
check({}, "formats is not declared", FOLDERS.replace("formats: -\n", ""))
check({}, "tests/docs/folders.txt:8: expected 'NAME = PATH'", FOLDERS.replace("loader: ", "loader "))
check({}, "formats is declared twice", FOLDERS + "formats: -\n")
# An exception allows a cycle; it names only one include of the cycle.
excepted = (FOLDERS.replace("\n\n", "\n\nexcept formats -> formats/io: for a while\n\n")
            .replace("formats: -", "formats: formats/io"))
back = {"formats/include/millrace/error.hpp": "#include <millrace/io/file.hpp>\n"}
check(back, None, excepted)
check({**back, "loader/src/io/reader.hpp": '#include "batch.cpp"\n'}, "in a cycle: loader -> loader/io -> loader", excepted)
# --update declares new includes, but no cycles.
head = FOLDERS[:FOLDERS.index("formats: -")]
written = check({}, None, head, ["--update"])
if check({}, None, written, ["--update"]) != written or not written.startswith(head + "formats: -\n"):
    sys.exit(f"--update wrote\n{written}")
check({}, None, written)
check(back, "in a cycle", head, ["--update"])
print(f"{checks} checks")
