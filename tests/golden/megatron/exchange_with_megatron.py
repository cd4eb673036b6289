# SPDX-License-Identifier: Apache-2.0
"""Checks that Megatron reads what we write, and that we read what Megatron writes.

usage: exchange_with_megatron.py --programs DIR --driver READ_DATASET [--seed N] [--count K]

Our reader must read K random datasets of Megatron's builder correctly. In the other direction,
preprocess_data converts the sample corpus and the golden lines with each tokenizer, with and without
--append-eod. The output must equal, byte for byte, what reference_preprocess.py writes with Megatron's
builder, and both readers must read the same from it and from its merge. Exits 77 if megatron-core is missing.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import megatron_support
import reference_preprocess

HERE = pathlib.Path(__file__).resolve().parent
SAMPLE = HERE.parents[2] / "scripts/sample/corpus.jsonl"
TINY = HERE.parent / "tiny_bpe"
OURS = {
    "byte": ["--tokenizer-type", "ByteLevelTokenizer"],
    "null:1000": ["--tokenizer-type", "NullTokenizer", "--vocab-size", "1000"],
    f"gpt2:{TINY / 'vocab.json'},{TINY / 'merges.txt'}": [
        "--tokenizer-type", "GPT2BPETokenizer",
        "--vocab-file", str(TINY / "vocab.json"), "--merge-file", str(TINY / "merges.txt"),
    ],
}  # fmt: skip
INPUTS = {
    "byte": [SAMPLE, HERE / "preprocess_lines.jsonl"],
    "null:1000": [HERE / "preprocess_null.jsonl"],
    f"gpt2:{TINY / 'vocab.json'},{TINY / 'merges.txt'}": [SAMPLE, HERE / "preprocess_lines.jsonl"],
}


def run(*command):
    return subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    ).stdout


def our_view(driver, prefix, multimodal=False):
    return json.loads(run(driver, prefix, *(["--multimodal"] if multimodal else [])))


def expect_equal(what, ours, theirs):
    if ours != theirs:
        sys.exit(f"{what}: ours differs\nours   {str(ours)[:400]}\ntheirs {str(theirs)[:400]}")


def theirs_to_us(args, folder):
    run(sys.executable, HERE / "write_with_megatron.py", folder / "random",
        "--seed", args.seed, "--count", args.count)  # fmt: skip
    for answer in sorted((folder / "random").glob("*.json")):
        theirs = json.loads(answer.read_text())
        multimodal = theirs.pop("multimodal")
        expect_equal(answer, our_view(args.driver, answer.with_suffix(""), multimodal), theirs)
    return args.count


def ours_to_them(args, folder):
    count = 0
    (folder / "parts").mkdir()
    for tokenizer, flags in OURS.items():
        for source in INPUTS[tokenizer]:
            for eod in ([], ["--append-eod"]):
                count += 1
                ours, theirs = folder / f"parts/{count}", folder / f"theirs_{count}"
                run(args.programs / "preprocess_data", "--input", source,
                    "--output-prefix", ours, *flags, *eod)  # fmt: skip
                reference_preprocess.preprocess(
                    source, ["text"], reference_preprocess.make_tokenizer(tokenizer), bool(eod), theirs
                )
                for suffix in ("_text_document.bin", "_text_document.idx"):
                    one = pathlib.Path(f"{ours}{suffix}").read_bytes()
                    other = pathlib.Path(f"{theirs}{suffix}").read_bytes()
                    expect_equal(f"{source.name} {tokenizer} {eod} {suffix}", one, other)
                expect_both_readers_agree(args, f"{ours}_text_document")
    # The parts have several tokenizers, so nothing can be trained on the result. merge_datasets
    # merges them only without their .meta.
    for meta in (folder / "parts").glob("*.meta"):
        meta.unlink()
    run(args.programs / "merge_datasets", "--input", folder / "parts",
        "--output-prefix", folder / "merged")  # fmt: skip
    expect_both_readers_agree(args, str(folder / "merged"))
    return count + 1


def expect_both_readers_agree(args, prefix):
    expect_equal(prefix, our_view(args.driver, prefix), megatron_support.read_dataset(prefix))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--driver", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    args = parser.parse_args()
    megatron_support.load()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        read = theirs_to_us(args, folder)
        written = ours_to_them(args, folder)
    print(f"seed {args.seed}: {read} of Megatron's datasets read, {written} of ours read by Megatron")


main()
