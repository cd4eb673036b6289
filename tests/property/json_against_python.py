#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feeds unusual lines to our record parser and to Python's json, and compares the results.

    json_against_python.py --driver build/bin/parse_lines [--seed N] [--cases N] [--first N]

All modes of the parser read every line: the usual one (simdjson, and the exact one if simdjson is not
sure), `--exact`, and `--giant`, which reads the line through a small window and must print the same as
`--exact`. Exits 1 at the first difference and prints the arguments that repeat it.
"""

import argparse
import collections
import json
import random
import re
import struct
import subprocess
import sys

# Each key is a path: a key of the record, or a key inside another key.
KEY_SETS = [[["text"]], [["text"], ["caf\u00e9 \U0001f600"]], [[""], ["text"], ["a\\b\"c"]],
            [["meta", "text"]], [["a", "b", "c"], ["a", "d"], ["text"]],
            [["x", "x", "x"], ["x", "y"], ["caf\u00e9 \U0001f600", "text"]]]
BATCH = 2000
LIMIT = 995  # max_nesting in json_scanner.hpp
SURROGATES = re.compile("[\ud800-\udfff]")

SPACES = ["", "", "", "", " ", "  ", "\t", "\r", "\n", " \t\r\n "]
PLAIN = ["", "a", "text", "A longer run of letters, with more than a few blocks of bytes in it. " * 2,
         "\u00e9", "\u4e2d\u6587", "\U0001f600", "\x7f", "\u2028", "/", "\ufffd", "\uffff", "\u0080",
         "sixteen bytes !!", "fifteen bytes !", "'", "{}[],:", "\U0010ffff", "//", "/**/"]
ESCAPES = [r"\"", r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u0000", r"\u0041", r"\u00e9",
           r"\u4E2D", r"\uFFFD", r"\uffff", r"\ud83d\ude00", r"\uD83D\uDE00", r"\uD83d\uDe00",
           r"\u0022", r"\u005c", r"\ud7ff", r"\ue000"]
LONE = [r"\ud83d", r"\ude00", r"\uDBFF", r"\uDFFF", r"\ud83d\u0041", r"\ud83d\ud83d\ude00",
        r"\udc00\ud800", r"\ud83d\n", r"\ud83d\\ude00", r"\ud800\ue000", r"\ud800\udbff", r"\ud83d ",
        r"\ud83d\ude00\ude00"]
BAD_STRINGS = ["\x00", "\x1f", "\n", "\t", "\\", r"\x41", r"\u12", r"\u12g4", r"\U00e9", r"\'", r"\0",
               r"\ud83d\u", r"\ud83d\ude0", r"\ud83d\udeag", r"\u+123", r"\u 123", r"\u0x41", '"',
               "\ud800", "\udfff"]
NUMBERS = ["0", "-0", "1", "-1", "12", "0.5", "-0.5e1", "1E5", "1e+5", "1e-5", "1e400", "-1e400",
           "1e-400", "18446744073709551615", "18446744073709551616", "9223372036854775808",
           "-9223372036854775808", "-9223372036854775809", "1.7976931348623159e308", "5e-324",
           "0.1234567890123456789012345678901234567890", "123456789012345678901234567890", "0e0",
           "0.0", "1" * 300 + ".5", "0." + "0" * 400 + "1", "NaN", "Infinity", "-Infinity"]
BAD_SCALARS = ["01", "-01", "00", "1.", ".5", "-", "+1", "1e", "1e+", "1.e5", "-.5", "0x10", "1_0", "--1",
               "-NaN", "+Infinity", "nan", "infinity", "Inf", "-Inf", "Infinit", "True", "nul", "nulll",
               "tru", "truefalse", "undefined", "'a'", "1 2", "\u0661", "\uff11", "1a", "None", "-I",
               "\u00a0", "\ufeff", "\u2028", "\x0b", "\x0c", "\x1a", "\x00", "/", "1//", "", "b''"]
BAD_BYTES = [b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe0\x80\x80", b"\xe0\x9f\xbf",
             b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xe4\xb8", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf",
             b"\xf4\x90\x80\x80", b"\xf0\x9f\x98", b"\xf5\x80\x80\x80", b"\xff", b"\xfe", b"\xe4\xb8\x41",
             b"\xf0\x9f\x41\x80", b"\xc3\xc3\xa9", b"\xf8\x88\x80\x80\x80"]
INSERTED = [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"0", b"-", b"\x00", b"\x1f", b"\t",
            b"\n", b"\r", b"\x0b", b"\x0c", b"\x85", b"\xc2\xa0", b"\xef\xbb\xbf", b"\\u", b"\\ud83d",
            b"//", b"e", b".", b"\xe2\x80\xa8", b"\x1a", b"\x7f", b"'", b"\\\"", b",,", b"}}", b"\"\""]


class Lines:
    """Lines of JSON, nearly JSON, and not JSON."""

    def __init__(self, rng, keys):
        self.rng = rng
        self.paths = keys
        self.keys = sorted({key for path in keys for key in path})

    def space(self):
        return self.rng.choice(SPACES)

    def string_body(self):
        rng, pieces = self.rng, []
        for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
            kind = rng.random()
            if kind < 0.5:
                pieces.append(rng.choice(PLAIN))
            elif kind < 0.8:
                pieces.append(rng.choice(ESCAPES))
            elif kind < 0.95:
                pieces.append(rng.choice(LONE))
            elif kind < 0.99:
                pieces.append("\\u%04x" % rng.randrange(65536))
            else:
                pieces.append(rng.choice(BAD_STRINGS))
        return "".join(pieces)

    def string(self):
        return '"' + self.string_body() + '"'

    def wanted_key(self):
        """One of our keys, often with escapes that mean the same."""
        key, out = self.rng.choice(self.keys), []
        plain = self.rng.random() < 0.6
        for c in key:
            if c in '"\\' and (plain or self.rng.random() < 0.5):
                out.append("\\" + c)
            elif plain or self.rng.random() < 0.5:
                out.append(c)
            else:
                escape = json.dumps(c) if ord(c) > 126 else '"\\u%04x"' % ord(c)
                out.append(escape[1:-1].upper().replace("\\U", "\\u")
                           if self.rng.random() < 0.5 else escape[1:-1])
        if self.rng.random() < 0.03:
            out.append(self.rng.choice(LONE + BAD_STRINGS))
        return '"' + "".join(out) + '"'

    def number(self):
        rng = self.rng
        if rng.random() < 0.99:
            return rng.choice(NUMBERS)
        digits = rng.choice((4299, 4300, 4301, 5000))
        return rng.choice(("", "-")) + "7" * digits + rng.choice(("", "", "", ".5", "e3", "."))

    def scalar(self):
        kind = self.rng.random()
        if kind < 0.45:
            return self.string()
        if kind < 0.8:
            return self.number()
        return self.rng.choice(("true", "false", "null")) if kind < 0.99 else self.rng.choice(BAD_SCALARS)

    def array(self, depth, element):
        parts = [self.space() + element(depth - 1) + self.space()
                 for _ in range(self.rng.choice((0, 1, 2, 3)))]
        return "[" + (",".join(parts) if parts else self.space()) + "]"

    def object(self, depth):
        rng, parts = self.rng, []
        for _ in range(rng.choice((0, 1, 2, 4))):
            key = self.wanted_key() if rng.random() < 0.2 else self.string()
            parts.append(self.space() + key + self.space() + ":" + self.space() +
                         self.value(depth - 1) + self.space())
        return "{" + (",".join(parts) if parts else self.space()) + "}"

    def value(self, depth):
        kind = self.rng.random()
        if depth <= 0 or kind < 0.6:
            return self.scalar()
        return self.array(depth, self.value) if kind < 0.8 else self.object(depth)

    def wanted_value(self):
        kind = self.rng.random()
        if kind < 0.6:
            return self.string()
        if kind < 0.9:
            return self.array(1, lambda _: self.string())
        return self.value(2)

    def member(self, path):
        """The member of an object with a text at the end of `path`, perhaps with other members."""
        rng, value = self.rng, self.wanted_value
        if len(path) > 1 and rng.random() < 0.97:
            def value():
                parts = [self.member(path[1:])]
                for other in self.paths:  # a key on the same path, or a key on another's path
                    if other[0] == path[0] and other != path and len(other) > 1 and rng.random() < 0.9:
                        parts.append(self.member(other[1:]))
                for _ in range(rng.choice((0, 0, 0, 1, 2))):
                    key = self.wanted_key() if rng.random() < 0.5 else self.string()
                    parts.append(key + self.space() + ":" + self.space() +
                                 (self.wanted_value() if rng.random() < 0.5 else self.value(2)))
                if rng.random() < 0.3:
                    rng.shuffle(parts)
                else:  # the last value counts
                    parts.reverse()
                return "{" + ",".join(self.space() + part + self.space() for part in parts) + "}"
        return (json.dumps(path[0], ensure_ascii=rng.random() < 0.5) + self.space() + ":" +
                self.space() + value())

    def record(self):
        rng, parts = self.rng, []
        for path in self.paths:
            if rng.random() < 0.95:
                parts.append(self.member(path))
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            wanted = rng.random() < 0.4
            parts.append((self.wanted_key() if wanted else self.string()) + self.space() + ":" +
                         self.space() + (self.wanted_value() if wanted else self.value(3)))
        rng.shuffle(parts)
        return "{" + ",".join(self.space() + part + self.space() for part in parts) + "}"

    def deep(self, deepest):
        """Nested to about the limit, in a record or not."""
        rng = self.rng
        levels = min(rng.choice((10, 100, 500, 980, LIMIT - 2, LIMIT - 1, LIMIT, LIMIT + 1, 1200)), deepest)
        core = rng.choice(("", "1", '"a"', "{}", "[]"))
        record = rng.random() < 0.8
        levels -= (core in ("{}", "[]")) + record
        style = rng.random()
        opened = ["[" if style < 0.4 or (style < 0.6 and rng.random() < 0.5) else '{"a":' for _ in range(levels)]
        if opened and opened[-1] != "[" and not core:
            core = "0"
        nest = "".join(opened) + core + "".join("]" if o == "[" else "}" for o in reversed(opened))
        if not record:
            return nest
        fields = []
        for path in self.paths:
            text = '"x"'
            for key in reversed(path):
                text = '"%s":%s' % (key.replace("\\", "\\\\").replace('"', '\\"'), text)
                text = "{" + text + "}"
            fields.append(text[1:-1])
        fields.insert(rng.randrange(len(fields) + 1), '"nest":' + (nest or "0"))
        return "{" + ",".join(fields) + "}"

    def mutate(self, line):
        rng = self.rng
        at = rng.randrange(len(line) + 1)
        kind = rng.randrange(8)
        if kind == 0 and at < len(line):
            return line[:at] + bytes([line[at] ^ (1 << rng.randrange(8))]) + line[at + 1:]
        if kind == 1:
            return line[:at] + line[at + rng.choice((1, 1, 2, 5)):]
        if kind == 2:
            return line[:at] + rng.choice(INSERTED) + line[at:]
        if kind == 3:
            return line[:at]
        if kind == 4:
            return line[:at] + line[at:at + rng.randrange(1, 20)] + line[at:]
        if kind == 5:
            return line[:at] + rng.choice(BAD_BYTES) + line[at:]
        if kind == 6:
            return line + rng.choice(INSERTED)
        if kind == 7 and at < len(line):
            return line[:at] + rng.choice(INSERTED) + line[at + 1:]
        return rng.choice((b"\xef\xbb\xbf", b" ", b"\xc2\xa0", b"[", b"")) + line

    def line(self, deepest):
        rng = self.rng
        kind = rng.random()
        if kind < 0.93:
            text = self.record()
        elif kind < 0.97:
            text = self.value(3)
        elif kind < 0.98:
            text = self.deep(deepest)
        elif kind < 0.9998:
            text = self.space() + self.record() + self.space()
        else:  # too long for simdjson
            text = self.record()[:-1] + ', "long": "' + "\\n0123456789" * 100_000 + '"}'
        line = text.encode("utf-8", "surrogatepass")
        if rng.random() < 0.4:
            for _ in range(rng.choice((1, 1, 2, 3))):
                line = self.mutate(line)
        return line


def expected(line, keys):
    """What the driver must print: all of it for a good record, otherwise its beginning."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"invalid_utf8 {error.start} "
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return "invalid_json "
    if not isinstance(record, dict):
        return "not_an_object "
    lone, fields = 0, []
    for path in keys:
        value = record
        for key in path:
            if not isinstance(value, dict):
                return "wrong_type "
            if key not in value:
                return "missing_key "
            value = value[key]
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            return "wrong_type "
        lone += sum(len(SURROGATES.findall(each)) for each in texts)
        hexes = [SURROGATES.sub("\ufffd", each).encode().hex() for each in texts]
        fields.append(f"{len(texts)}:{','.join(hexes)}")
    return f"ok {lone} " + " ".join(fields)


def all_expected(lines, keys):
    return [expected(line, keys) for line in lines]


def set_limit():
    """Makes all_expected(), called by what main() calls, nest as deep as json.loads at the top level of a script; returns how deep
    lines may be where the two can be compared."""
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(4300)
    if sys.version_info[:2] != (3, 11):  # others count calls of the scanner differently
        return LIMIT - 100
    sys.setrecursionlimit(1000)
    accepted = 900
    while all_expected([b"[" * (accepted + 1) + b"]" * (accepted + 1)], []) == ["not_an_object "]:
        accepted += 1
    sys.setrecursionlimit(1000 + LIMIT - accepted)
    return 1 << 20


def run_driver(driver, options, keys, lines):
    """One line of output for each line."""
    records = b"".join(struct.pack("<I", len(line)) + line for line in lines)
    done = subprocess.run([driver, *options, *keys], input=records, stdout=subprocess.PIPE, check=False)
    out = done.stdout.decode().split("\n")[:-1]
    if done.returncode != 0:  # it stopped in the line after the last printed line
        out = out[:len(lines) - 1] + [f"exit code {done.returncode}"]
    return out


def agrees(line, want, got):
    if want.startswith("ok "):
        return got == want
    offset = got.split(" ")[1] if got.count(" ") > 1 else ""
    return got.startswith(want) and offset.isdigit() and int(offset) <= len(line)


def compare_batch(options, first, count, deepest, outcomes):
    """Whether a batch of cases passed."""
    keys = KEY_SETS[first // BATCH % len(KEY_SETS)]
    lines = []
    for case in range(first, first + count):
        rng = random.Random(options.seed << 40 | case)
        line = Lines(rng, keys).line(deepest)
        lines.append(line if line.count(b"[") + line.count(b"{") <= deepest else b"")
    wants = all_expected(lines, keys)
    names = [".".join(path) for path in keys]
    paths = ["--paths"] if any(len(path) > 1 for path in keys) else []
    for way in (paths, ["--exact", *paths], ["--giant", *paths]):
        gots = run_driver(options.driver, way, names, lines)
        if "--giant" in way:
            wants = exact
        for i, got in enumerate(gots):
            if agrees(lines[i], wants[i], got):
                continue
            print(f"case {first + i} differs, driver options {way}, keys {keys}")
            print(f"  line      {lines[i][:2000]!r}")
            print(f"  expected  {wants[i][:2000]}\n  got       {got[:2000]}")
            print(f"repeat it with: --seed {options.seed} --first {first + i} --cases 1")
            return False
        exact = gots
    for want in wants:
        outcomes[want.split(" ")[0] + (" with lone surrogates" if want[:3] == "ok " and want[3] != "0" else "")] += 1
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--driver", required=True, help="path of parse_lines")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=30_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    print(f"seed {options.seed}, cases {options.first} to {options.first + options.cases - 1}", flush=True)
    deepest = set_limit()
    outcomes = collections.Counter()
    first, end = options.first, options.first + options.cases
    while first < end:
        count = min(BATCH - first % BATCH, end - first)
        if not compare_batch(options, first, count, deepest, outcomes):
            return 1
        first += count
    for outcome, count in outcomes.most_common():
        print(f"{count:>10} {outcome}")
    print("no difference, in any way")
    return 0


if __name__ == "__main__":
    sys.exit(main())
