#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sample_fields.jsonl: fields that megatron-core's GPTDataset gives for texts, one case per line.

Each text goes through GPTDataset.__getitem__ itself; only the look-up of the text is replaced.
`text` is what the dataset has, `pad` and `eod` are ids. The caller of __getitem__ pads the text to
seq_len + extra_token, as _query_document_sample_shuffle_indices does.
"""
import json
import pathlib
import random
import sys
import types

try:
    import numpy
    from megatron.core.datasets.gpt_dataset import GPTDataset
except ImportError as problem:
    print(f"needs megatron-core: {problem}")
    sys.exit(77)


def fields(case):
    options = case["options"]
    size = case["seq_len"] + options["extra_token"]
    text = numpy.array(case["text"] + [case["pad"]] * (size - len(case["text"])), dtype=numpy.int64)
    config = types.SimpleNamespace(
        tokenizer=types.SimpleNamespace(eod=case["eod"]),
        add_extra_token_to_sequence=options["extra_token"],
        reset_position_ids=options["reset_position_ids"],
        reset_attention_mask=options["reset_attention_mask"],
        eod_mask_loss=options["eod_mask_loss"],
        create_attention_mask=True,
    )
    dataset = types.SimpleNamespace(
        config=config,
        _pad_token_id=case["pad"],
        _query_document_sample_shuffle_indices=lambda _: (text.copy(), None),
        masks_and_position_ids_are_cacheable=False,
        masks_and_position_ids_are_cached=False,
    )
    sample = GPTDataset.__getitem__(dataset, 0)
    mask = sample.pop("attention_mask")[0].int().tolist()
    case.update({name: [int(v) for v in values.tolist()] for name, values in sample.items()})
    case["masked"] = ["".join(map(str, row)) for row in mask]
    return case


def main():
    draw = random.Random(1)
    out = pathlib.Path(__file__).parent / "sample_fields.jsonl"
    with out.open("w") as lines:
        for number in range(128):
            options = {
                name: bool(number >> bit & 1)
                for bit, name in enumerate(
                    ["extra_token", "reset_position_ids", "reset_attention_mask", "eod_mask_loss"]
                )
            }
            seq_len = draw.randint(1, 12)
            size = seq_len + options["extra_token"]
            eod, pad = draw.choice([(9, -1), (9, -1), (9, 3), (9, 9), (0, -1)])
            real = draw.choice([size, size, draw.randint(0, size)])
            text = [draw.choice([1, 2, 3, 4, eod, draw.randint(10, 30)]) for _ in range(real)]
            case = {"options": options, "seq_len": seq_len, "eod": eod, "pad": pad, "text": text}
            lines.write(json.dumps(fields(case)) + "\n")


if __name__ == "__main__":
    main()
