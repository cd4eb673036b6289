# SPDX-License-Identifier: Apache-2.0
import importlib.metadata
import importlib.util
import inspect
import pathlib
import subprocess
import sys

import millrace
import pytest

FOLDER = pathlib.Path(millrace.__file__).parent


def test_import_loads_no_framework():
    code = "import sys, millrace; print(sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(eval(done.stdout))  # noqa: S307  # our own output
    assert "millrace" in loaded
    assert not loaded & {"torch", "jax", "megatron", "grain", "torchdata"}


@pytest.mark.parametrize(("command", "program"), [
    ("millrace-preprocess", "preprocess_data"), ("millrace-inspect", "inspect_dataset"),
    ("millrace-merge", "merge_datasets")])
def test_commands(command, program):
    done = subprocess.run([pathlib.Path(sys.executable).parent / command, "--version"], capture_output=True, text=True,
                          check=True)
    assert done.stdout.startswith(program) and millrace.__version__ in done.stdout
    wrong = subprocess.run([pathlib.Path(sys.executable).parent / command, "--no-such-flag"], capture_output=True)
    assert wrong.returncode == 2


def test_commands_import_only_the_standard_library():
    code = ("import sys; before = set(sys.modules); import millrace_programs; "
            "print(sorted({name.split('.')[0] for name in set(sys.modules) - before}))")
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(FOLDER.parent)})
    assert set(eval(done.stdout)) <= set(sys.stdlib_module_names) | {"millrace_programs"}  # noqa: S307


def test_version():
    assert importlib.metadata.version("millrace") == millrace.__version__


def test_stubs_have_every_name():
    assert (FOLDER / "py.typed").exists()
    stub = (FOLDER / "_core.pyi").read_text()
    for name, value in vars(millrace._core).items():
        if inspect.isclass(value) and not name.startswith("_"):
            assert f"class {name}" in stub
    assert "numpy.ndarray" in stub or "NDArray" in stub


def test_public_names_are_documented():
    for name in millrace.__all__:
        value = getattr(millrace, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__ and len(value.__doc__) > 30, name


HERE = pathlib.Path(__file__).resolve().parents[1]
needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy not installed")


def check_types(*what):
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", HERE / "pyproject.toml", *what],
                          capture_output=True, text=True, cwd=HERE / "tests")
    assert done.returncode == 0, done.stdout + done.stderr


@needs_mypy
def test_types():
    lacks_torch = importlib.util.find_spec("torch") is None
    check_types("-p", "millrace", *(["--ignore-missing-imports", "--allow-subclassing-any"] if lacks_torch else []))


@needs_mypy
def test_every_public_name_has_a_type():
    names = [*millrace.__all__, "IOError"]
    check_types("-c", "import millrace\n" + "".join(f"x{i} = millrace.{name}\n" for i, name in enumerate(names)))


@needs_mypy
@pytest.mark.parametrize(("example", "needs"), [("train_gpt.py", "torch"), ("train_jax.py", "jax"),
                                                ("megatron_side_by_side.py", "megatron")])
def test_types_of_examples(example, needs):
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} not installed")
    check_types(HERE / "examples" / example)
