# SPDX-License-Identifier: Apache-2.0
"""What the scripts that time whole programs share: running them, on which cores, over which part of a text."""
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
RIVALS = ROOT / "build/rivals"
PACKAGES = ["gigatoken", "quicktok-v1", "tiktoken", "tokenizers", "sentencepiece", "awkward", "numpy"]


def rival_python():
    """The Python that has the programs to compare with, installed from PyPI where it is not there."""
    python = RIVALS / "bin/python"
    if not python.exists():
        venv.create(RIVALS, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def core_count(cores):
    """How many cores `cores` names, as taskset takes them ("0", "0-1", "0,2"); "" are those of this process."""
    if cores == "":
        return len(os.sched_getaffinity(0))
    return sum(int(b or a) - int(a) + 1 for a, _, b in (r.partition("-") for r in cores.split(",")))


def first_cores(count):
    """The first `count` cores that this process may use, as taskset takes them."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < count:
        sys.exit(f"{count} cores are asked for, and this process may use {len(usable)}")
    return ",".join(map(str, usable[:count]))


def attempt(command, cores=""):
    """Runs a program on `cores`: its exit status, what it printed, and what it complained of."""
    pinned = ["taskset", "-c", cores] if cores else []
    return subprocess.run([*pinned, *map(str, command)], capture_output=True, text=True, check=False)


def answer(command, cores=""):
    """The JSON of the last line that a program printed; if it failed, that is the end."""
    done = attempt(command, cores)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit status {done.returncode}: {done.stderr.strip()[-1000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def settle(folder, size):
    """Writes and deletes as many bytes as a round will need, so that the machine has the pages at hand: on a virtual
    one the first touch of a page may cost more than the text on it."""
    path = pathlib.Path(folder) / "settle"
    chunk = b"\0" * (1 << 20)
    with open(path, "wb") as out:
        for _ in range(0, size, len(chunk)):
            out.write(chunk)
    path.unlink()


def part_of(text, megabytes, folder):
    """The first documents of `text`, up to so many MB of text, as a file of their own; 0 for all."""
    if not megabytes:
        return pathlib.Path(text)
    part = pathlib.Path(folder) / f"{pathlib.Path(text).stem}.{megabytes:g}MB.jsonl"
    size = 0
    with open(text, encoding="utf-8") as lines, open(part, "w", encoding="utf-8") as out:
        for line in lines:
            out.write(line)
            size += len(json.loads(line)["text"].encode())
            if size > megabytes * 1e6:
                break
    return part


def hugging_face(folder):
    """Our flags for a tokenizer.json."""
    return ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", f"{folder}/tokenizer.json",
            "--tokenizer-hf-no-include-special-tokens"]


def dataset_hashes(prefix):
    """SHA-256 of PREFIX.bin and PREFIX.idx."""
    hashes = []
    for suffix in (".bin", ".idx"):
        with open(f"{prefix}{suffix}", "rb") as file:
            hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    return tuple(hashes)


def median_of(rows, get):
    return statistics.median(map(get, rows))


def shown(value):
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def show(title, rows, as_json):
    """Prints rows, dictionaries with the same keys, as a table or as JSON lines, each as soon as it is there."""
    columns = None
    for row in rows:
        if as_json:
            print(json.dumps({"measure": title} | row), flush=True)
            continue
        if columns is None:
            columns = list(row)
            print(f"\n{title}\n\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
        print("| " + " | ".join(shown(row[column]) for column in columns) + " |", flush=True)
