#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes lines of random JSON arrays, and compares them with the elements that Python's json finds.

    arrays_against_python.py --driver build/bin/convert_arrays [--seed N] [--cases N] [--first N]

An array that Python reads must become one line per element, with its value. If Python refuses it, the
driver must refuse the array or at least one line. Exits 1 at the first difference and prints the
arguments that repeat it.
"""

import argparse
import collections
import json
import random
import struct
import subprocess
import sys

BATCH = 2000
STEPS = (1, 3, 16, 100, 1 << 20)
STRINGS = ["", "a", "text", "[", "]", "{\"a\":1}", ",", "\"", "\\", "\\\"", "a\nb\r", "\u00e9\u4e2d", "\U0001f600",
           "sixteen letters!", "a longer text, with commas [and] brackets {in} it\\" * 3]
INSERTED = [b"[", b"]", b"{", b"}", b",", b'"', b"\\", b"\n", b"\r", b" ", b"1", b"\x00", b"\xff", b":", b",,", b"[]",
            b"\r\n", b'""']


def value(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < 0.6:
        return rng.choice((rng.choice(STRINGS), rng.choice(STRINGS), rng.randrange(-9, 999), 0.5, True, None))
    if kind < 0.8:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(STRINGS): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def array(rng):
    elements = [value(rng, 3) for _ in range(rng.choice((0, 1, 2, 5)))]
    text = json.dumps(elements, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 0, 2, "\t")),
                      separators=rng.choice(((",", ":"), (", ", ": "), (" ,\n", ":\r\n"), ("\r\n,\r\n", " : "))))
    spaces = lambda: rng.choice(("", "", " ", "\n", "\r\n \t"))
    text = (spaces() + text + spaces()).encode()
    if rng.random() < 0.4:
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(len(text) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                text = text[:at]
            elif kind == 1:
                text = text[:at] + text[at + rng.choice((1, 1, 3)):]
            else:
                text = text[:at] + rng.choice(INSERTED) + text[at + (kind == 2):]
    return text


def read_json(line):
    """A list of the one value, or None."""
    try:
        return [json.loads(line.decode("utf-8"))]
    except (ValueError, RecursionError):
        return None


def fault_of(text, made):
    """What is wrong with the lines of an array, or None."""
    wanted = read_json(text)
    if made is None:
        return "refused" if wanted else None
    if len(made) != len(text):
        return "another length"
    lines = [] if not made.strip(b" \t") else made.split(b"\n")
    elements = [read_json(line) for line in lines]
    if wanted is None:
        return None if None in elements else "taken, and every line of it"
    if b"\r" in made or [one[0] for one in elements if one is not None] != wanted[0] or None in elements:
        return "other elements"
    return None


def run_driver(driver, step, texts):
    records = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    out = subprocess.run([driver, str(step)], input=records, stdout=subprocess.PIPE, check=True).stdout
    made, at = [], 0
    while at < len(out):
        size = struct.unpack_from("<I", out, at)[0]
        at += 4
        if size == 0xFFFFFFFF:
            made.append(None)
        else:
            made.append(out[at:at + size])
            at += size
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--driver", required=True, help="path of convert_arrays")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=30_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    print(f"seed {options.seed}, cases {options.first} to {options.first + options.cases - 1}", flush=True)
    outcomes = collections.Counter()
    for first in range(options.first, options.first + options.cases, BATCH):
        cases = range(first, min(first + BATCH, options.first + options.cases))
        texts = [array(random.Random(options.seed << 40 | case)) for case in cases]
        # A text that does not begin with a bracket is not an array, so this test replaces it.
        texts = [text if text.lstrip(b" \t\r\n").startswith(b"[") else b"[]" for text in texts]
        for step in STEPS:
            for case, text, made in zip(cases, texts, run_driver(options.driver, step, texts), strict=True):
                fault = fault_of(text, made)
                if fault:
                    print(f"case {case}, in steps of {step}: {fault}\n  array  {text!r}\n  lines  {made!r}")
                    print(f"repeat it with: --seed {options.seed} --first {case} --cases 1")
                    return 1
                outcomes["refused" if made is None else "taken" if read_json(text) else "a bad line"] += 1
    for outcome, count in outcomes.most_common():
        print(f"{count:>10} {outcome}")
    print("no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
