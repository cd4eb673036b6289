#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inspect_dataset search compared with Python: numpy for ids, str and re on texts that Hugging Face tokenizers decode.

Tokenizes real texts with real tokenizers, then searches for parts of the decoded texts that begin anywhere, for ids
that follow each other, and for patterns. Counts and places must be equal. Exits with 77 if a package, the texts or
the tokenizers are missing.
"""
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHARED = pathlib.Path(os.environ.get("MILLRACE_SHARED", ROOT / "../shared"))
TOKENIZERS = ["gpt2", "llama3", "qwen2", "llama2", "bert_base_cased", "gpt_neox"]
PATTERNS = [r"\b\w+ing\b", r"(?i)the (\w+) of", r"\d{2,}", r"[^\x00-\x7f]+", r"e*", r"(?<=a)b?", r"\s\s+"]

try:
    import numpy as np
    import tokenizers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def run(program, *words, done=(0,)):
    ended = subprocess.run([program, *map(str, words)], capture_output=True, check=False)
    if ended.returncode not in done:
        sys.exit(f"{words}: exit {ended.returncode}\n{ended.stderr.decode()}")
    return ended.stdout


def read_documents(prefix, dtype):
    idx = pathlib.Path(f"{prefix}.idx").read_bytes()
    sequences = int.from_bytes(idx[18:26], "little")
    documents = int.from_bytes(idx[26:34], "little")
    lengths = np.frombuffer(idx, np.int32, sequences, 34)
    starts = np.frombuffer(idx, np.int64, documents, 34 + 12 * sequences)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.fromfile(f"{prefix}.bin", dtype)
    return [tokens[ends[a]:ends[b]] for a, b in zip(starts, starts[1:])]


def expect(what, found, places):
    """Compares the answer of a search with the expected (document, begin, end), or (document, token)."""
    keys = ("document", "begin", "end") if places and len(places[0]) == 3 else ("document", "token")
    ours = [tuple(place[key] for key in keys) for place in found["places"]]
    documents = len({place[0] for place in places})
    if ours != places or found["hits"] != len(places) or found["hit_documents"] != documents:
        wrong = next((pair for pair in zip(ours, places) if pair[0] != pair[1]), None)
        sys.exit(f"{what}: {found['hits']} hits in {found['hit_documents']} documents, expected {len(places)} in "
                 f"{documents}; first difference: {wrong}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, metavar="DIR", help="folder of the programs")
    parser.add_argument("--cases", type=int, default=12, metavar="N", help="texts and ids per tokenizer (default: 12)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the cases (default: 1)")
    options = parser.parse_args()
    corpora = sorted((SHARED / "corpora").glob("*.gz")) if (SHARED / "corpora").is_dir() else []
    if not corpora:
        print("skipped: needs ../shared (or $MILLRACE_SHARED) with texts and tokenizers")
        sys.exit(77)
    preprocess, inspect = (f"{options.programs}/{name}" for name in ("preprocess_data", "inspect_dataset"))
    random.seed(options.seed)
    compared = hits = 0
    with tempfile.TemporaryDirectory() as work:
        lines = []
        for corpus in corpora:
            with gzip.open(corpus, "rt", encoding="utf-8") as text:
                lines += [json.loads(line)["text"][:1000] for _, line in zip(range(40), text)]
        with open(f"{work}/in.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps({"text": line}) + "\n" for line in lines)
        for name in TOKENIZERS:
            path = SHARED / "tokenizers" / name / "tokenizer.json"
            flags = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", path]
            made = json.loads(run(preprocess, "--input", f"{work}/in.jsonl", "--output-prefix", f"{work}/{name}", *flags,
                                  "--json"))
            prefix = made["outputs"][0]["prefix"]
            documents = read_documents(prefix, made["dtype"])
            reference = tokenizers.Tokenizer.from_file(str(path))
            texts = [reference.decode(ids.tolist(), skip_special_tokens=False) for ids in documents]
            encoded = [text.encode() for text in texts]

            def search(*words):
                return json.loads(run(inspect, "search", prefix, *words, "--hits", 10**9, "--context", 0, "--workers",
                                      random.randint(1, 3), "--json", done=(0, 1)))

            for _ in range(options.cases):
                text = random.choice([each for each in texts if each])
                begin = random.randrange(len(text))
                query = text[begin:begin + random.choice([1, 2, 5, 10, 30])]
                if "\0" in query or not query:
                    continue
                wanted = query.encode()
                places = []
                for d, each in enumerate(encoded):
                    at = each.find(wanted)
                    while at >= 0:
                        places.append((d, at, at + len(wanted)))
                        at = each.find(wanted, at + 1)
                expect(f"{name}: text {query!r}", search(f"--text={query}", *flags), places)

                ids = random.choice([each for each in documents if len(each)])
                begin = random.randrange(len(ids))
                sequence = ids[begin:begin + random.randint(1, 4)]
                places = []
                for d, each in enumerate(documents):
                    count = max(len(each) - len(sequence) + 1, 0)
                    same = np.ones(count, bool)
                    for i, one in enumerate(sequence):
                        same &= each[i:i + count] == one
                    places += [(d, int(at)) for at in np.nonzero(same)[0]]
                expect(f"{name}: ids {sequence}", search("--ids", " ".join(map(str, sequence))), places)
                compared += 2
                hits += len(places)
            for pattern in PATTERNS:
                places = []
                for d, text in enumerate(texts):
                    sizes = np.concatenate([[0], np.cumsum([len(each.encode()) for each in text])]).tolist()
                    places += [(d, sizes[m.start()], sizes[m.end()]) for m in re.finditer(pattern, text)]
                expect(f"{name}: regex {pattern}", search(f"--regex={pattern}", *flags), places)
                compared += 1
                hits += len(places)
    if not hits:
        sys.exit("nothing was found, so nothing was compared")
    print(f"seed {options.seed}: {compared} searches with {len(TOKENIZERS)} tokenizers agree, {hits} hits")


if __name__ == "__main__":
    main()
