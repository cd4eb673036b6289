# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny byte-level BPE on the sample corpus, and writes cases with ids of HF tokenizers.

usage: generate.py [--check]

Writes vocab.json, merges.txt and cases.jsonl into this folder. With --check, writes nothing, compares
the files, and exits with 1 if they differ. Needs the package `tokenizers`; exits with 77 without it.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import adversarial

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parents[2] / "scripts" / "sample" / "corpus.jsonl"
VOCAB_SIZE = 600
END_OF_TEXT = adversarial.END


def sample_texts():
    texts = []
    for line in CORPUS.read_text(encoding="utf-8").split("\n")[:-1]:
        value = json.loads(line)["text"]
        texts += value if isinstance(value, list) else [value]
    return texts


def train(folder, texts):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - 1,  # the last id is the special token
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    vocab = dict(sorted(model["vocab"].items(), key=lambda item: item[1]))
    vocab[END_OF_TEXT] = len(vocab)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    with open(folder / "vocab.json", "w", encoding="ascii", newline="\n") as stream:
        stream.write(json.dumps(vocab, indent=0) + "\n")
    with open(folder / "merges.txt", "w", encoding="utf-8", newline="\n") as stream:
        stream.write("#version: 0.2\n" + "".join(m + "\n" for m in merges))


def write_cases(folder, texts):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(
        models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, special=True, normalized=False)])
    with open(folder / "cases.jsonl", "w", encoding="utf-8", newline="\n") as stream:
        # The texts of the sample stay readable in the file; the adversarial strings are escaped.
        for text, escaped in [(t, False) for t in texts] + [
            (t, True) for t in adversarial.strings()
        ]:
            case = {"text": text, "ids": tokenizer.encode(text).ids}
            stream.write(json.dumps(case, ensure_ascii=escaped, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing, compare with the files here"
    )
    args = parser.parse_args()
    try:
        import tokenizers  # noqa: F401
    except ImportError as error:
        print(f"skipped: tokenizers is not installed ({error})", file=sys.stderr)
        return 77

    texts = sample_texts()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) if args.check else HERE
        train(folder, texts)
        write_cases(folder, texts)
        if not args.check:
            return 0
        names = ["vocab.json", "merges.txt", "cases.jsonl"]
        different = [n for n in names if (HERE / n).read_bytes() != (folder / n).read_bytes()]
    for name in different:
        print(f"{HERE / name}: differs from what tokenizers makes now", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
