# SPDX-License-Identifier: Apache-2.0
"""Inputs of any size for preprocess_data, and its peak memory for them."""
import itertools
import json
import random
import shutil
import string
import subprocess
import threading

from programs import first_cores

LIMIT_MB = 512
PIECE = 1 << 20
LINE = 1 << 14
# Maps a random byte to a letter, or with a probability of 1/6 to a space.
LETTERS = bytes(ord(" ") if i % 6 == 0 else ord(string.ascii_lowercase[i % 26]) for i in range(256))


def cycle_of(text):
    """The first lines of a text (64 MB at most), repeated without end."""
    with open(text, "rb") as lines:
        known = list(itertools.takewhile(lambda _: lines.tell() < 64 << 20, iter(lines.readline, b"")))
    known[-1] = known[-1].rstrip(b"\n") + b"\n"
    return itertools.cycle(known)


def random_words(generator, size):
    return generator.randbytes(size).translate(LETTERS)


def lines_of(text, size):
    """About `size` bytes of JSON lines, in pieces: seven pieces of `text`, then one of random words, and so on."""
    known, generator = cycle_of(text), random.Random(1)
    while size > 0:
        for _ in range(7):
            piece = bytearray()
            while len(piece) < min(PIECE, size):
                piece += next(known)
            size -= len(piece)
            yield piece
            if size <= 0:
                return
        piece = b"".join(b'{"text": "%s"}\n' % random_words(generator, LINE)
                         for _ in range(min(PIECE, size) // LINE + 1))
        size -= len(piece)
        yield piece


def short_lines(_, size):
    """Lines of 40 bytes. With so many lines, memory that is kept per document would be visible."""
    for first in range(0, size // 40, PIECE // 40):
        yield b"".join(b'{"text": "%-27d"}\n' % i for i in range(first, min(first + PIECE // 40, size // 40)))


def one_line_of(text, size):
    """The texts of `lines_of`, joined to one JSON line."""
    yield b'{"text": "'
    for piece in lines_of(text, size):
        texts = (json.loads(line)["text"] for line in piece.splitlines())
        yield b" ".join(json.dumps(each, ensure_ascii=False)[1:-1].encode() for each in texts)
    yield b'"}\n'


def write(pieces, out):
    for piece in pieces:
        out.write(piece)


def write_file(pieces, path):
    with open(path, "wb") as out:
        write(pieces, out)


def write_packed(pieces, path):
    with subprocess.Popen(["zstd", "-q", "-f", "-1", "-o", path], stdin=subprocess.PIPE) as packer:
        write(pieces, packer.stdin)


def feed(pieces, pipe):
    try:
        write(pieces, pipe)
        pipe.close()
    except BrokenPipeError:
        pass  # the program ended early and reports why


def measured(command, pieces=None):
    """The program's JSON, or its error. If `pieces` are given, its stdin is a pipe that delivers them."""
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE if pieces else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        feeder = None
        if pieces:
            feeder = threading.Thread(target=feed, args=(pieces, program.stdin))
            feeder.start()
        complaint = []
        # communicate() would close the pipe to which `feed` writes.
        listener = threading.Thread(target=lambda: complaint.append(program.stderr.read()))
        listener.start()
        said = program.stdout.read()
        program.wait()
        listener.join()
        if feeder:
            feeder.join()
    if program.returncode == 0:
        return json.loads(said), None
    words = complaint[0].decode(errors="replace").splitlines()
    reason = next((line for line in words if line.startswith("preprocess_data: ")), "")
    return None, f"exit status {program.returncode} {reason[:200]}".strip()


def inputs(options, folder):
    """Name, pieces, and how the program gets them: as a file, compressed, or through a pipe."""
    text, scaled = options.text[0], lambda size: int(size * options.scale)
    enough = shutil.disk_usage(folder).free > 2.2 * scaled(20_000_000_000)
    large = "file" if enough and not options.pipe else "pipe"
    for name, size, make, kind in (("10 MB", 10_000_000, lines_of, "file"),
                                   ("1 GB", 1_000_000_000, lines_of, "file"),
                                   ("1 GB as .zst", 1_000_000_000, lines_of, "packed"),
                                   ("1 GB of 40-byte lines", 1_000_000_000, short_lines, "file"),
                                   ("one line of 2 GB", 2_000_000_000, one_line_of, "file"),
                                   ("20 GB", 20_000_000_000, lines_of, large)):
        yield name if kind != "pipe" else f"{name}, a pipe", make(text, scaled(size)), kind


def rows(options, models, folder):
    workers = max(options.workers)
    for model, flags in models:
        for name, pieces, kind in inputs(options, folder):
            path = folder / ("input.jsonl.zst" if kind == "packed" else "input.jsonl")
            if kind != "pipe":
                (write_packed if kind == "packed" else write_file)(pieces, path)
            command = ["taskset", "-c", first_cores(workers), options.build / "bin/preprocess_data",
                       "--input", "/dev/stdin" if kind == "pipe" else path, "--output-prefix", folder / "out",
                       "--workers", workers, "--overwrite", "--json", *flags]
            result, complaint = measured(command, pieces if kind == "pipe" else None)
            for left in (path, *folder.glob("out*")):
                left.unlink(missing_ok=True)
            row = {"model": model, "input": name, "workers": workers}
            if result is None:
                yield row | {"GB": None, "lines": None, "MB/s": None, "peak MB": None,
                             "at most": LIMIT_MB, "so": complaint}
                continue
            peak = result["peak_rss_bytes"] * 1e-6
            yield row | {"GB": result["input_bytes"] * 1e-9, "lines": result["lines"],
                         "MB/s": result["input_bytes"] * 1e-6 / result["seconds"], "peak MB": peak,
                         "at most": LIMIT_MB, "so": "within" if peak <= LIMIT_MB else "over"}
