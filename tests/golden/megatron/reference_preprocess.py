# SPDX-License-Identifier: Apache-2.0
"""JSON lines to .bin/.idx, a slow version of Megatron's preprocess_data that uses Megatron's builder.

usage: reference_preprocess.py --input FILE [--key text ...] [--append-eod]
           --tokenizer byte|null:V|gpt2:VOCAB,MERGES --output-prefix P

Writes P_<key>_document.bin and .idx for each key. Tokenizers:
  byte               UTF-8 bytes, vocabulary 512, eod 0
  null:V             integers divided by single spaces, vocabulary V, eod V-1
  gpt2:VOCAB,MERGES  byte-level BPE from a vocab.json and a merges.txt; <|endoftext|> in the text
                     is one id, and is the eod
Bad input raises a Python exception. Exits 77 if megatron-core is not installed.
"""

import argparse
import json

import megatron_support


class ByteTokenizer:
    vocab_size, eod = 512, 0

    def encode(self, text):
        return list(text.encode("utf-8"))


class NullTokenizer:
    def __init__(self, vocab_size):
        self.vocab_size, self.eod = vocab_size, vocab_size - 1

    def encode(self, text):
        return [int(word) for word in text.split(" ")]


class Gpt2Tokenizer:
    END_OF_TEXT = "<|endoftext|>"

    def __init__(self, vocab_file, merges_file):
        from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

        self._tokenizer = Tokenizer(models.BPE.from_file(vocab_file, merges_file))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.add_special_tokens(
            [AddedToken(self.END_OF_TEXT, special=True, normalized=False)]
        )
        self.vocab_size = self._tokenizer.get_vocab_size(with_added_tokens=True)
        self.eod = self._tokenizer.token_to_id(self.END_OF_TEXT)

    def encode(self, text):
        return self._tokenizer.encode(text).ids


def make_tokenizer(spec):
    kind, _, rest = spec.partition(":")
    if kind == "byte" and not rest:
        return ByteTokenizer()
    if kind == "null":
        return NullTokenizer(int(rest))
    if kind == "gpt2":
        return Gpt2Tokenizer(*rest.split(","))
    raise SystemExit(f"unknown tokenizer {spec!r}")


def encode_document(value, tokenizer, eod):
    """The tokens of one document and the lengths of its sequences; `eod` is None for none."""
    tokens, lengths = [], []
    for sentence in value if isinstance(value, list) else [value]:
        ids = tokenizer.encode(sentence)
        if ids:  # a sentence without tokens is left out
            tokens += ids
            lengths.append(len(ids))
    if tokens and eod is not None:  # an empty document stays empty
        tokens.append(eod)
        lengths[-1] += 1
    return tokens, lengths


def preprocess(path, keys, tokenizer, append_eod, output_prefix):
    """Writes one dataset per key and returns, by key, its counts."""
    indexed_dataset = megatron_support.load()
    dtype = indexed_dataset.DType.optimal_dtype(tokenizer.vocab_size)
    eod = tokenizer.eod if append_eod else None
    counts = {key: {"documents": 0, "sequences": 0, "tokens": 0} for key in keys}
    prefixes = {key: f"{output_prefix}_{key}_document" for key in keys}
    builders = {
        key: indexed_dataset.IndexedDatasetBuilder(prefixes[key] + ".bin", dtype) for key in keys
    }
    # In text mode, only \n, \r\n and a lone \r end a line.
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            for key in keys:
                tokens, lengths = encode_document(record[key], tokenizer, eod)
                builders[key].add_document(tokens, lengths)
                counts[key]["documents"] += 1
                counts[key]["sequences"] += len(lengths)
                counts[key]["tokens"] += len(tokens)
    for key in keys:
        builders[key].finalize(prefixes[key] + ".idx")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", required=True)
    parser.add_argument("--key", nargs="+", default=["text"])
    parser.add_argument("--append-eod", action="store_true")
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--output-prefix", required=True)
    args = parser.parse_args()

    megatron_support.load()  # first, so that a missing package skips the test
    tokenizer = make_tokenizer(args.tokenizer)
    preprocess(args.input, args.key, tokenizer, args.append_eod, args.output_prefix)


if __name__ == "__main__":
    main()
