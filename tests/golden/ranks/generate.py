#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes layouts.json: ranks, slices, and fields of context-parallel ranks by megatron-core 0.16.1.

usage: generate.py [--check]

With --check, writes nothing, and exits with 1 if the file differs. Exits with 77 if megatron-core is
missing.
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
    from megatron.core.datasets.gpt_dataset import _get_ltor_masks_and_position_ids
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
EOD = 9
# seq_len, cp, reset_position_ids, eod_mask_loss
FIELDS = ((8, 2, False, False), (16, 2, True, True), (24, 3, True, False), (32, 4, True, True))


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


def fields():
    """The fields of a row of text, as Megatron's datasets and trainer make and cut them."""
    for seq_len, cp, reset, mask in FIELDS:
        # Every fifth token or so is an eod; some are at the ends of chunks.
        text = torch.tensor([EOD if (i * i + i // 4) % 5 == 3 else 100 + i for i in range(seq_len + 1)])
        tokens, labels = text[:-1].contiguous(), text[1:].contiguous()
        _, loss_mask, position_ids = _get_ltor_masks_and_position_ids(tokens, EOD, reset, False, mask, False)
        whole = {"tokens": tokens, "labels": labels, "loss_mask": loss_mask, "position_ids": position_ids}
        ranks = []
        for rank in range(cp):
            batch = {name: field.reshape(1, seq_len) for name, field in whole.items()}
            part = get_batch_on_this_cp_rank(batch, Group(rank, cp))
            ranks.append({name: [int(n) for n in field[0]] for name, field in part.items()})
        yield {"text": text.tolist(), "eod": EOD, "reset_position_ids": reset, "eod_mask_loss": mask,
               "ranks": ranks}


def main():
    text = '{"megatron_core": "%s", "grids": [\n%s\n], "slices": [\n%s\n],\n"fields": [\n%s\n]}\n' % (
        megatron.core.__version__, ",\n".join(map(json.dumps, grids())),
        ",\n".join(map(json.dumps, slices())), ",\n".join(map(json.dumps, fields())))
    path = pathlib.Path(__file__).with_name("layouts.json")
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit(f"{path} differs from what megatron-core makes now")


main()
