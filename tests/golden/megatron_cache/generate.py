# SPDX-License-Identifier: Apache-2.0
"""Writes the caches of this folder for ../megatron/idx_int32 with megatron-core's GPTDataset.

usage: generate.py

Exits 77 if megatron-core is not installed.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")  # from packages that megatron-core would use for training
try:
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
except ImportError as missing:
    print(f"skipped: needs the Python package megatron-core ({missing})")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent


class Tokenizer:
    """The parts of a tokenizer that a description needs."""

    unique_identifiers = {"class": "some.Tokenizer", "vocab_size": "100"}
    vocab_size, pad, eod, eos = 100, -1, -2, -2


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the dataset path, as given, affects the cache name
        for suffix in ("bin", "idx"):
            shutil.copy(HERE.parent / "megatron" / f"idx_int32.{suffix}", folder)
        config = GPTDatasetConfig(
            random_seed=1234, sequence_length=2, blend=(["idx_int32"], None), split="1,0,0",
            path_to_cache="cache", tokenizer=Tokenizer(), reset_position_ids=False,
            reset_attention_mask=False, eod_mask_loss=False,
        )  # fmt: skip
        BlendedMegatronDatasetBuilder(GPTDataset, [6, None, None], lambda: True, config).build()
        for file in pathlib.Path("cache").iterdir():
            shutil.copy(file, HERE)
    (HERE / "tokenizer.json").write_text(json.dumps(Tokenizer.unique_identifiers))


if __name__ == "__main__":
    main()
