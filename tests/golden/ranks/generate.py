#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes layouts.json: ranks and slices by megatron-core 0.16.1.

usage: generate.py [--check]

--check writes nothing and exits 1 on a difference. Exits 77 if megatron-core is missing.
"""
import json
import pathlib
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import megatron.core
    import torch
    import torch.distributed
    from megatron.core.parallel_state import RankGenerator
    from megatron.core.utils import get_batch_on_this_cp_rank
    from torch.testing._internal.distributed.fake_pg import FakeStore
except ImportError as missing:
    print(f"skipped: needs the Python packages megatron-core and torch ({missing})")
    sys.exit(77)

USUAL = "tp-cp-ep-dp-pp"
# tp, cp, ep, dp, pp, order, offset
GRIDS = (
    (2, 1, 1, 2, 4, USUAL, 0), (2, 2, 1, 2, 2, USUAL, 0), (2, 1, 4, 2, 2, USUAL, 0),
    (2, 2, 1, 3, 2, "tp-cp-ep-pp-dp", 0), (3, 2, 1, 2, 2, "dp-pp-cp-tp", 5), (4, 1, 1, 1, 1, "tp", 0),
    (2, 1, 2, 2, 2, "PP-EP-DP-TP", 100),
)
GROUPS = ("tp", "cp", "ep", "dp", "pp", "dp-cp", "tp-pp", "tp-dp-cp", "tp-ep", "tp-cp-ep-dp-pp")
SLICES = ((12, 1), (8, 2), (12, 3), (32, 4))


class Group:
    def __init__(self, rank, size):
        self.rank, self.size = lambda: rank, lambda: size


def grids():
    for tp, cp, ep, dp, pp, order, offset in GRIDS:
        ranks = RankGenerator(tp=tp, cp=cp, ep=ep, dp=dp, pp=pp, order=order, rank_offset=offset)
        yield {"sizes": [tp, cp, ep, dp, pp], "order": order, "offset": offset,
               "groups": {axes: ranks.get_ranks(axes) for axes in GROUPS}}


def slices():
    torch.distributed.init_process_group(backend="fake", store=FakeStore(), rank=0, world_size=1)
    for seq_len, cp in SLICES:
        whole = torch.arange(seq_len).reshape(1, seq_len)
        yield {"seq_len": seq_len, "context_parallel": cp,
               "positions": [get_batch_on_this_cp_rank({"tokens": whole}, Group(r, cp))["tokens"][0].tolist()
                             for r in range(cp)]}


def main():
    text = '{"megatron_core": "%s", "grids": [\n%s\n], "slices": [\n%s\n]}\n' % (
        megatron.core.__version__, ",\n".join(map(json.dumps, grids())),
        ",\n".join(map(json.dumps, slices())))
    path = pathlib.Path(__file__).with_name("layouts.json")
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path} differs from what megatron-core makes now")


main()
