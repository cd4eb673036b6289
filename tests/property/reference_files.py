# SPDX-License-Identifier: Apache-2.0
"""Imports single modules of packages that the tests cannot import whole, because those need torch, a GPU or many other
packages."""
import importlib
import pathlib
import sys
import types

BRIDGE = "megatron-bridge (scripts/setup --tokenizers)"
MEGATRON = "megatron-core 0.19 (scripts/setup --tokenizers)"


def add_module(name, content):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)


def load_module(folder, name, needs, stand_ins=None):
    """Imports the module `name` from its file below `folder`. No __init__.py of the packages around it runs.

    `stand_ins` has the content of modules that the file imports but does not need here, by their names. Exits with 77
    if there is no such file; `needs` says what has it.
    """
    path = pathlib.Path(folder, *name.split(".")).with_suffix(".py")
    if not path.exists():
        print(f"skipped: needs {needs}, there is no {path}")
        sys.exit(77)
    stand_ins = stand_ins or {}
    for module in (name, *stand_ins):
        packages = module.split(".")[:-1]
        for count in range(1, len(packages) + 1):
            package = ".".join(packages[:count])
            if package not in sys.modules:
                add_module(package, {"__path__": [str(pathlib.Path(folder, *packages[:count]))]})
    for module, content in stand_ins.items():
        add_module(module, content)
    return importlib.import_module(name)
