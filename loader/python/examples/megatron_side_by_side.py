# SPDX-License-Identifier: Apache-2.0
"""Builds Megatron's GPTDataset and that of millrace from the same config, and compares every sample.

    python megatron_side_by_side.py out/sample_text_document --eod 0

Needs megatron-core and torch.
"""
import argparse
import tempfile
import types
from typing import Any

import numpy as np
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from millrace.megatron import GPTDataset as MillraceGPTDataset

SIZES = [100, 10, 10]


def datasets(cls: type, args: argparse.Namespace, cache: str) -> "list[Any]":
    tokenizer = types.SimpleNamespace(eod=args.eod, pad=args.eod, vocab_size=None,
                                      unique_identifiers={"class": "example"})
    config = GPTDatasetConfig(
        random_seed=1234, sequence_length=64, blend=([args.prefix], None), split="90,5,5", path_to_cache=cache,
        reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=True, create_attention_mask=False,
        tokenizer=tokenizer)
    return list(BlendedMegatronDatasetBuilder(cls, SIZES, lambda: True, config).build())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--eod", type=int, required=True, help="id that ends documents")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        theirs = datasets(GPTDataset, args, cache)
        ours = datasets(MillraceGPTDataset, args, cache)
        for part, mine, other in zip(("train", "valid", "test"), ours, theirs, strict=True):
            assert len(mine) == len(other), part
            for k in range(len(other)):
                for name, value in other[k].items():
                    assert torch.equal(torch.as_tensor(mine[k][name]), torch.as_tensor(value)), (part, k, name)
            print(f"{part}: {len(other)} samples are equal, {np.prod(other[0]['tokens'].shape)} tokens each")


if __name__ == "__main__":
    main()
