#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lost pages must be reported as errors in a Python process, too, even if faulthandler handles SIGBUS.

usage: python_faulthandler.py --module LOST_PAGES_MODULE

LOST_PAGES_MODULE is tests/support/lost_pages_module.cpp as a shared object. If faulthandler is enabled
after millrace has installed its handlers, it restores these handlers at the first SIGBUS and raises the
signal again.

The script also checks that the module can be loaded although it has more thread-local variables than the
CUDA runtime. With objdump, it checks that the handlers of millrace use no thread-local variables:
__tls_get_addr may allocate, but a SIGBUS can arrive while a thread is in malloc.
"""
import argparse
import ctypes
import faulthandler
import os
import re
import shutil
import subprocess
import sys
import tempfile

HANDLERS = ("on_sigbus(", "on_lost_page(")


def functions_of(path):
    """Returns the name and the instructions of each function of a shared object."""
    shown = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", path], text=True,
                           capture_output=True, check=True).stdout
    return re.findall(r"^[0-9a-f]+ <(.*)>:\n((?:.+\n)*)", shown, re.M)


def loaded_objects(module):
    """Returns the paths of the module and of the millrace libraries that it loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps}
    return {module} | {path for path in paths if "libmillrace" in os.path.basename(path)}


def check_thread_locals(module):
    found = set()
    for path in loaded_objects(module):
        for name, code in functions_of(path):
            for handler in HANDLERS:
                if handler not in name or "siginfo" not in name:
                    continue
                found.add(handler)
                if re.search(r"tls_get_addr|tlsdesc", code, re.I):
                    sys.exit(f"{path}: {name} uses a thread-local variable, expected none")
    if missing := set(HANDLERS) - found:
        sys.exit(f"{module}: the handlers {sorted(missing)} are not there, expected both")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", required=True)
    given = parser.parse_args()
    module = ctypes.CDLL(given.module)
    module.thread_local_bytes.restype = ctypes.c_void_p
    if not module.thread_local_bytes():
        sys.exit("the module's thread-local variable has no address")
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        path = os.path.join(folder, "file").encode()
        tries = ["without faulthandler", "with faulthandler", "with faulthandler once more"]
        for when in tries:
            for function in (module.pages_copied, module.losses_noticed):
                if when != tries[0]:
                    faulthandler.disable()
                    faulthandler.enable(file=nowhere)
                if function(path) != 1:
                    sys.exit(f"{function.__name__}, {when}: the lost page was not noticed")
    if shutil.which("objdump") is None:
        print("there is no objdump, so the handlers' instructions were not checked")
    else:
        check_thread_locals(given.module)


if __name__ == "__main__":
    main()
