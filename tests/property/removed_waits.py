#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Removes each wait and each record of the device pipe in turn; a test must fail each time.

usage: removed_waits.py --program ORDER_TESTS --headers loader/cuda

ORDER_TESTS is tests/unit/loader/cuda/order_test.cpp, built with the stream_order.hpp of
tests/support/fake_cuda/left_out.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CALL = re.compile(r"(?<![\w.>:])(?:record|wait|wait_on_host|drain|is_done)\(")
# Calls of the runtime that only stream_order.hpp may make.
BARE = re.compile(r"(?:\.|->)(?:record_event|wait_event|query_event|synchronize_\w+)\(")
SECONDS = 120


def run(program, **environment):
    """The exit status of the tests, or "hung", and what they printed."""
    try:
        done = subprocess.run([program, "--gtest_brief=1"], timeout=SECONDS, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, **environment), check=False)
    except subprocess.TimeoutExpired:
        return "hung", ""
    return done.returncode, done.stdout


def written_places(headers):
    """How many calls each header has, comments left aside."""
    counts = collections.Counter()
    for header in sorted([*headers.rglob("*.hpp"), *headers.rglob("*.cpp")]):
        code = re.sub(r"//.*", "", header.read_text())
        if header.name == "stream_order.hpp":
            continue
        if BARE.search(code):
            sys.exit(f"{header}: orders streams by itself, expected the functions of "
                     "stream_order.hpp")
        counts[header.name] = len(CALL.findall(code))
    return +counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--headers", required=True, type=pathlib.Path)
    given = parser.parse_args()

    written = written_places(given.headers)
    if not written:
        sys.exit(f"{given.headers} has no wait and no record, expected those of the device pipe")
    with tempfile.NamedTemporaryFile("r") as reached:
        status, said = run(given.program, MILLRACE_REACHED=reached.name)
        if status != 0:
            sys.exit(f"with nothing left out the tests end with {status}:\n{said}")
        places = sorted(set(reached.read().split()))
    places = [place for place in places if place.split(":")[0] in written]
    found = collections.Counter(place.split(":")[0] for place in places)
    if found != written:
        sys.exit(f"the tests reach {dict(found)} waits and records, expected all: {dict(written)}")

    unseen = []
    for place in places:
        status, said = run(given.program, MILLRACE_LEFT_OUT=place)
        failed = sorted(set(re.findall(r"^\[  FAILED  \] (\w+\.\w+)", said, re.MULTILINE)))
        print(f"without {place}: exit {status}, {', '.join(failed) or 'no test failed'}",
              flush=True)
        if status == 0:
            unseen.append(place)
    if unseen:
        sys.exit(f"no test fails without these: {', '.join(unseen)}")
    print(f"each of {len(places)} is seen")


main()
