#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokenizes conversations as people do today, for bench/peers/conversations. Prints one line of JSON.

usage: rival_conversations.py trl|modelopt TOKENIZER_FOLDER CONVERSATIONS.jsonl PROCESSES [OUT_PREFIX]

  trl       what TRL's SFTTrainer does per record with assistant_only_loss: apply_chat_template() of transformers gives ids
            and the mask of the assistant's tokens
  modelopt  what NVIDIA Model-Optimizer's megatron_preprocess_data does per record: apply_chat_template() to a text, the
            tokenizer to ids; no mask

A pool of processes does this for the lines, read before the clock starts. "seconds" ends when all results are back in the
first process: nothing is written, but for OUT_PREFIX, after the clock: ids as int32, and a byte per token for the mask.
"""
import json
import multiprocessing
import os
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
tokenizer = None


def load(folder):
    global tokenizer
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(folder)


def trl(line):
    record = json.loads(line)
    both = tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), tokenize=True, return_dict=True,
                                         return_assistant_tokens_mask=True)
    return both["input_ids"], both["assistant_masks"]


def modelopt(line):
    record = json.loads(line)
    text = tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), tokenize=False)
    return tokenizer(text, add_special_tokens=False)["input_ids"], None


def main():
    way, folder, path, processes = sys.argv[1:5]
    work = {"trl": trl, "modelopt": modelopt}[way]
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    with multiprocessing.Pool(int(processes), load, [folder]) as pool:
        pool.map(work, lines[:8])  # starts and warms the processes
        begin = time.perf_counter()
        results = pool.map(work, lines, chunksize=32)
        seconds = time.perf_counter() - begin
    if len(sys.argv) > 5:
        import array
        with open(sys.argv[5] + ".ids", "wb") as ids, open(sys.argv[5] + ".mask", "wb") as masks:
            for tokens, mask in results:
                ids.write(array.array("i", tokens).tobytes())
                masks.write(bytes(mask) if mask is not None else b"")
    print(json.dumps({"seconds": seconds, "tokens": sum(len(tokens) for tokens, _ in results)}))


if __name__ == "__main__":
    main()
