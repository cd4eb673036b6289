# SPDX-License-Identifier: Apache-2.0
"""Prints how often random cases reached each branch, and fails if one was never reached."""


def show(seen, cases, what, seed):
    print(f"{cases} {what}, seed {seed}")
    for name, count in sorted(seen.items()):
        print(f"  {count:6} {name}")


def require(seen, branches, cases, enough):
    """If there were at least `enough` cases, requires that each branch occurred. Otherwise, it was not compared."""
    missing = [branch for branch in branches if not seen[branch]]
    if cases >= enough and missing:
        raise AssertionError(f"never met in {cases} cases: {', '.join(missing)}")
