# SPDX-License-Identifier: Apache-2.0
"""Writes the data files of this folder with megatron-core's IndexedDatasetBuilder.

usage: generate.py [--check]

With --check, writes nothing. Compares every file byte for byte with the file that it would write now,
and exits with 1 if they differ. Needs megatron-core and tokenizers; exits with 77 if megatron-core is
not installed. Only reads the inputs (preprocess_*.jsonl, the sample corpus, ../tiny_bpe).
"""

import argparse
import hashlib
import json
import os
import pathlib
import sys
import tempfile

import golden_cases
import megatron_support
import reference_preprocess

HERE = pathlib.Path(__file__).resolve().parent
TINY_BPE = HERE.parent / "tiny_bpe"
SAMPLE = HERE.parents[2] / "scripts" / "sample" / "corpus.jsonl"


def write_cases(folder, manifest):
    cases = dict(
        golden_cases.CASES,
        **{f"all_dtypes/{dtype}": golden_cases.dtype_case(dtype) for dtype in golden_cases.RANGES},
    )
    (folder / "all_dtypes").mkdir(exist_ok=True)
    for name, (dtype, multimodal, documents) in cases.items():
        found = megatron_support.write_dataset(str(folder / name), documents, dtype, multimodal)
        manifest[name] = {"multimodal": multimodal, "documents": documents, **found}


def write_merges(folder, manifest):
    """Merges as merge_datasets does: one add_index per part."""
    import numpy

    for name, (dtype, multimodal, parts) in golden_cases.MERGES.items():
        prefix = str(folder / name)
        builder = megatron_support.load().IndexedDatasetBuilder(
            prefix + ".bin", getattr(numpy, dtype), multimodal
        )
        for part in parts:
            builder.add_index(str(folder / part))
        builder.finalize(prefix + ".idx")
        found = megatron_support.read_dataset(prefix, multimodal)
        manifest[name] = {"multimodal": multimodal, "parts": parts, **found}


def run_preprocess(source, spec, append_eod, prefix):
    tokenizer = reference_preprocess.make_tokenizer(spec)
    counts = reference_preprocess.preprocess(
        str(source), ["text"], tokenizer, append_eod, str(prefix)
    )
    return tokenizer, counts["text"]


def write_runs(folder, manifest):
    for name, (source, spec, append_eod) in golden_cases.RUNS.items():
        tokenizer, _ = run_preprocess(HERE / source, spec, append_eod, folder / name)
        for suffix in (".bin", ".idx"):
            os.replace(folder / f"{name}_text_document{suffix}", folder / (name + suffix))
        settings = {
            "input": source,
            "tokenizer": spec,
            "vocab_size": tokenizer.vocab_size,
            "eod": tokenizer.eod,
            "append_eod": append_eod,
        }
        manifest[name] = {**settings, **megatron_support.read_dataset(str(folder / name))}


def write_sample_sums(folder):
    """Writes only checksums, because the tokenized sample corpus is too large to keep."""
    tiny = f"gpt2:{TINY_BPE / 'vocab.json'},{TINY_BPE / 'merges.txt'}"
    sums = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, spec, append_eod in [
            ("byte", "byte", False),
            ("byte_eod", "byte", True),
            ("tiny_bpe", tiny, False),
            ("tiny_bpe_eod", tiny, True),
        ]:
            prefix = pathlib.Path(scratch, name)
            _, counts = run_preprocess(SAMPLE, spec, append_eod, prefix)
            files = {
                s: pathlib.Path(f"{prefix}_text_document.{s}").read_bytes() for s in ("bin", "idx")
            }
            hashes = {s: hashlib.sha256(content).hexdigest() for s, content in files.items()}
            sums[name] = {**counts, **{f"{s}_sha256": value for s, value in hashes.items()}}
    (folder / "sample_sha256.json").write_text(json.dumps(sums, indent=2) + "\n", encoding="ascii")


def generate(folder):
    manifest = {}
    write_cases(folder, manifest)
    write_merges(folder, manifest)
    write_runs(folder, manifest)
    write_sample_sums(folder)
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in manifest.items()
    )
    (folder / "manifest.json").write_text("{\n" + lines + "\n}\n", encoding="ascii")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing, compare with the files here"
    )
    args = parser.parse_args()
    megatron_support.load()
    if not args.check:
        generate(HERE)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        generate(folder)
        made = {
            str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()
        }
    different = [
        n for n in sorted(made) if not (HERE / n).is_file() or (HERE / n).read_bytes() != made[n]
    ]
    for name in different:
        print(f"{HERE / name}: differs from what megatron-core makes now", file=sys.stderr)
    print(f"{len(made)} files compared, {len(different)} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
