# SPDX-License-Identifier: Apache-2.0
"""What the scripts share: running programs on given cores, parts of texts, medians, tables."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
RIVALS = ROOT / "build/rivals"
PACKAGES = ["gigatoken", "snaptokens", "quicktok-v1", "tiktoken", "tokenizers", "sentencepiece", "awkward", "numpy", "pyarrow"]
LOADER_PACKAGES = ["mosaicml-streaming==0.13.0", "litdata==0.2.76", "lightning-utilities", "grain==0.2.18"]
LOADER_NEEDS = ["absl-py", "array-record", "boto3", "brotli", "catalogue", "cloudpickle", "etils[epath,epy]", "filelock",
                "numpy", "obstore", "packaging", "pillow", "portpicker", "protobuf", "python-snappy", "requests", "tifffile",
                "tqdm", "transformers", "xxhash", "zstd"]


def rival_python():
    """The Python with the rivals' packages. Creates it and installs them from PyPI if it does not exist."""
    python = RIVALS / "bin/python"
    if not python.exists():
        venv.create(RIVALS, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def loader_rivals_python():
    """The Python with other packages that load training data. They are installed without what they depend on, which
    would bring torch with gigabytes of CUDA."""
    folder = ROOT / "build/loader_rivals"
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch==2.13.0"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *LOADER_NEEDS], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *LOADER_PACKAGES], check=True)
    return python


def cores_of(cores):
    """The cores in taskset's notation ("0", "0-1", "0,2"), each as a string; "" means all cores of this process."""
    if cores == "":
        return [str(core) for core in sorted(os.sched_getaffinity(0))]
    ranges = (r.partition("-") for r in cores.split(","))
    return [str(core) for a, _, b in ranges for core in range(int(a), int(b or a) + 1)]


def core_count(cores):
    """The number of cores in taskset's notation, as in cores_of."""
    return len(cores_of(cores))


def first_cores(count):
    """The first `count` cores that this process may use, in taskset's notation."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < count:
        sys.exit(f"{count} cores are required, but this process may use only {len(usable)}")
    return ",".join(map(str, usable[:count]))


def attempt(command, cores=""):
    """Runs a program on `cores`; returns its exit status, stdout and stderr."""
    pinned = ["taskset", "-c", cores] if cores else []
    return subprocess.run([*pinned, *map(str, command)], capture_output=True, text=True, check=False)


def answer(command, cores=""):
    """The JSON in the last line that a program prints. Exits if the program fails."""
    done = attempt(command, cores)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit status {done.returncode}: {done.stderr.strip()[-1000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def answers_of_all(commands):
    """What answer() returns for each (command, cores), all run at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as threads:
        return list(threads.map(lambda each: answer(*each), commands))


def processor_seconds(who):
    """Processor seconds of the program and of the kernel; `who` as in resource.getrusage."""
    used = resource.getrusage(who)
    return used.ru_utime, used.ru_stime


def settle(folder, size):
    """Writes and deletes `size` bytes, as many as a run will need. On a virtual machine the first touch of a page may
    cost more than the work on it; afterwards the pages are available."""
    path = pathlib.Path(folder) / "settle"
    chunk = b"\0" * (1 << 20)
    with open(path, "wb") as out:
        for _ in range(0, size, len(chunk)):
            out.write(chunk)
    path.unlink()


def part_of(text, megabytes, folder):
    """A file with the first documents of `text`, about `megabytes` MB of text; `text` itself if that is 0."""
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
    """Flags of preprocess_data for the tokenizer.json of a folder."""
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
    """Prints rows (dictionaries with the same keys) as a table or as JSON lines, each as soon as it is measured."""
    columns = None
    for row in rows:
        if as_json:
            print(json.dumps({"measure": title} | row), flush=True)
            continue
        if columns is None:
            columns = list(row)
            print(f"\n{title}\n\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
        print("| " + " | ".join(shown(row[column]) for column in columns) + " |", flush=True)
