#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes vocabularies of ranks from tiny_bpe, and the ids that the reference tokenizers give with them.

usage: generate.py [--check]

  --check  writes nothing, compares byte for byte, exits 1 on a difference

Needs the Python packages tiktoken and megatron-core; exits 77 without them.
"""
import base64
import json
import pathlib
import sys
import tempfile
import warnings

warnings.simplefilter("ignore")
try:
    import tiktoken
    from megatron.core.tokenizers.text.libraries.tiktoken_tokenizer import TikTokenTokenizer
except ImportError:
    print("skipped: needs the Python packages tiktoken and megatron-core")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
SPECIAL = "<|endoftext|>"
NUM_SPECIAL = 20
TELLING = [b"eT", b"nI", b"!\n", b"!\n/"]  # tokens that only v1 or only v2 can give


def byte_alphabet():
    plain = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xFF and b != 0xAD]
    others = [b for b in range(256) if b not in plain]
    return {**{chr(b): b for b in plain}, **{chr(256 + i): b for i, b in enumerate(others)}}


def tokens():
    byte_of = byte_alphabet()
    spelled = json.loads((HERE.parent / "tiny_bpe/vocab.json").read_text())
    return [bytes(byte_of[c] for c in token)
            for token, _ in sorted(spelled.items(), key=lambda item: item[1]) if token != SPECIAL]


def rank_file(ranks):
    return b"".join(base64.b64encode(t) + b" %d\n" % rank for t, rank in ranks.items())


def vocab_json(all_tokens):
    ordered = [bytes([byte]) for byte in range(256)] + [t for t in all_tokens if len(t) > 1] + TELLING
    return json.dumps([{"rank": rank, "token_bytes": base64.b64encode(t).decode(),
                        "token_str": t.decode(errors="replace")}
                       for rank, t in enumerate(ordered)], indent=0).encode() + b"\n"


def cases(texts, encode):
    return b"".join(json.dumps({"text": text, "ids": encode(text)}).encode() + b"\n"
                    for text in texts)


def files():
    ranks = {token: rank for rank, token in enumerate(tokens())}
    texts = [json.loads(line)["text"]
             for line in (HERE.parent / "tiny_bpe/cases.jsonl").read_bytes().split(b"\n") if line]
    texts = [text for text in texts if len(text) <= 60][:300]
    texts += ["<s>a</s>", "<|endoftext|></s><SPECIAL_19><SPECIAL_20>", "<unk", "</s></s> <pad>\n",
              "HTTPServer's CAMELCase don't 12345 \u00c9tat\u00c9 a/b\n/c",
              "theThe tHEthe heHEhe inIn iNin /\n/ !\n/!/\n erER"]
    encoding = tiktoken.Encoding("tiny", pat_str=R50K, mergeable_ranks=ranks,
                                 special_tokens={SPECIAL: len(ranks)})
    made = {"tiny.tiktoken": rank_file(ranks), "tiny.vocab.json": vocab_json(list(ranks)),
            "cases_r50k.jsonl": cases(texts, encoding.encode_ordinary),
            "cases_r50k_special.jsonl":
                cases(texts, lambda text: encoding.encode(text, allowed_special="all"))}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tiny.vocab.json"
        path.write_bytes(made["tiny.vocab.json"])
        for pattern in ("v1", "v2"):
            megatron = TikTokenTokenizer(str(path), num_special_tokens=NUM_SPECIAL, pattern=pattern,
                                         vocab_size=NUM_SPECIAL + len(ranks) + len(TELLING))
            made[f"cases_{pattern}.jsonl"] = cases(texts, megatron.text_to_ids)
    assert made["cases_v1.jsonl"] != made["cases_v2.jsonl"]
    return made


def main():
    status = 0
    for name, content in files().items():
        path = HERE / name
        if sys.argv[1:] != ["--check"]:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            print(f"{path}: differs")
            status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
