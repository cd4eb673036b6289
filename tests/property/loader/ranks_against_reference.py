#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our numbering of ranks, and the part of a row that each rank gets, with megatron-core.

usage: ranks_against_reference.py --driver rank_lines [--seed N] [--cases N]

These functions of megatron-core give the expected results:

  RankGenerator              the groups along any axes, for any order of the axes
  initialize_model_parallel  both numberings of ranks, and the first and last pipeline stages; the
                             function runs over a fake process group, once for each rank in question
  get_batch_on_this_cp_rank  the part of a row that a context-parallel rank gets

We must refuse exactly what Megatron refuses. Exits with 77 if megatron-core or torch is missing.
"""
import argparse
import collections
import json
import math
import random
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import torch
    import torch.distributed
    from megatron.core import parallel_state
    from megatron.core.utils import get_batch_on_this_cp_rank
    from torch.testing._internal.distributed.fake_pg import FakeStore
except ImportError as missing:
    print(f"skipped: needs the Python packages megatron-core and torch ({missing})")
    sys.exit(77)

AXES = ("tp", "cp", "ep", "dp", "pp")
USUAL = "tp-cp-ep-dp-pp"


def random_order(rng, sizes, seen):
    """Draws an order of the axes. May leave out axes of size 1. Sometimes leaves out one more axis, even
    a required one."""
    axes = [a for a in AXES if sizes[a] > 1 or rng.random() < 0.7] or ["tp"]
    rng.shuffle(axes)
    if rng.random() < 0.1 and len(axes) > 1:
        axes.pop()
        seen["orders cut short"] += 1
    order = "-".join(axes)
    return order.upper() if rng.random() < 0.1 else order


def groups_case(rng, seen):
    sizes = {a: rng.choice((1, 1, 2, 2, 3, 4, 5, 8)) for a in AXES}
    if rng.random() < 0.9:
        sizes[rng.choice(("cp", "ep"))] = 1
    while math.prod(sizes.values()) > 2048:
        sizes[rng.choice(AXES)] = 1
    order = random_order(rng, sizes, seen)
    offset = rng.choice((0, 0, 7, 1000))
    axes = "-".join(rng.sample(AXES, rng.randint(1, 5)))
    try:
        expected = parallel_state.RankGenerator(**sizes, order=order, rank_offset=offset).get_ranks(axes)
    except (AssertionError, RuntimeError):
        expected = None
        seen["grids refused"] += 1
    return f"groups {' '.join(str(sizes[a]) for a in AXES)} {order} {offset} {axes}", expected


def pretended(rank, world):
    torch.distributed.init_process_group(backend="fake", store=FakeStore(), rank=rank, world_size=world)


def place_case(rng, seen):
    world = rng.choice((1, 2, 4, 6, 8, 12, 16, 24, 32, 48))
    draw = lambda: rng.choice([n for n in (1, 1, 2, 3, 4, 8) if n <= world])  # noqa: E731
    tp, cp, pp, ep = draw(), draw(), draw(), draw()
    etp = rng.choice((0, 0, 1, draw()))
    order = rng.choice((USUAL, USUAL, "tp-cp-ep-pp-dp", "-".join(rng.sample(AXES, 5))))
    rank = rng.randrange(world)
    question = f"place {world} {tp} {cp} {pp} {ep} {etp} {order} {rank}"
    pretended(rank, world)
    p = parallel_state
    try:
        p.initialize_model_parallel(
            tensor_model_parallel_size=tp, context_parallel_size=cp, pipeline_model_parallel_size=pp,
            expert_model_parallel_size=ep, expert_tensor_parallel_size=etp or None, order=order,
            create_gloo_process_groups=False)
        first, last = p.is_pipeline_first_stage(), p.is_pipeline_last_stage()
        expected = [p.get_tensor_model_parallel_rank(), p.get_context_parallel_rank(),
                    p.get_data_parallel_rank(), p.get_pipeline_model_parallel_rank(),
                    p.get_expert_model_parallel_rank(), p.get_expert_tensor_parallel_rank(),
                    p.get_expert_data_parallel_rank(), p.get_data_parallel_world_size(),
                    first + 2 * last]
        seen["places"] += 1
        seen["places with experts apart"] += ep > 1
    except (AssertionError, RuntimeError):
        expected = None
        seen["layouts refused"] += 1
    finally:
        p.destroy_model_parallel()
        torch.distributed.destroy_process_group()
    return question, expected


class Group:
    """A fake process group. It has only the methods that Megatron calls here."""

    def __init__(self, rank, size):
        self.rank, self.size = lambda: rank, lambda: size


def slice_case(rng, seen):
    cp = rng.choice((1, 2, 3, 4, 8))
    seq_len = rng.randint(1, 9) * (2 * cp if cp > 1 else 1) + (rng.random() < 0.1)
    rank, rows = rng.randrange(cp), rng.randint(1, 3)
    question = f"slice {seq_len} {cp} {rank} {rows}"
    if cp > 1 and seq_len % (2 * cp):
        seen["rows refused"] += 1
        return question, None
    whole = torch.arange(rows * seq_len).reshape(rows, seq_len)
    part = get_batch_on_this_cp_rank({"tokens": whole}, Group(rank, cp))["tokens"]
    # Token i of the text is the input at index i and the label at index i - 1. The rank must read
    # exactly the tokens of its own inputs and labels.
    needed = sorted({int(i) + k for i in part[0] for k in (0, 1)})
    reads = []
    for token in needed:
        if reads and token == reads[-1][0] + reads[-1][1]:
            reads[-1][1] += 1
        else:
            reads.append([token, 1])
    seen["slices"] += 1
    return question, [part.flatten().tolist(), sum(reads, [])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000)
    args = parser.parse_args()
    rng, seen = random.Random(args.seed), collections.Counter()
    print(f"seed {args.seed}")

    cases = [groups_case(rng, seen) for _ in range(args.cases)]
    cases += [place_case(rng, seen) for _ in range(args.cases // 4)]
    pretended(0, 1)
    cases += [slice_case(rng, seen) for _ in range(args.cases // 4)]
    torch.distributed.destroy_process_group()

    done = subprocess.run([args.driver], input="".join(q + "\n" for q, _ in cases), capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{args.driver}: {done.stderr}")
    for (question, expected), answer in zip(cases, done.stdout.splitlines(), strict=True):
        ours = None if answer.startswith("refused: ") else json.loads(answer)
        if ours != expected:
            sys.exit(f"{question}\n  ours     {answer}\n  expected {expected}")
    print(f"{len(cases)} equal:", ", ".join(f"{n} {what}" for what, n in sorted(seen.items())))
    for what in ("grids refused", "layouts refused", "places with experts apart", "slices"):
        assert seen[what] > args.cases // 100, f"hardly any {what}: {seen}"


main()
