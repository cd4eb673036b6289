#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this folder with the programs whose formats they have.

    generate.py [FOLDER]                   writes them (default: into this folder)
    generate.py --check BIN [--seed N]     converts random datasets with BIN/inspect_dataset to each format, and
                                           reads them with these programs; exit 77 without them

Needs datatrove 0.10.1, dolma 1.2.1, ai2-olmo-core 3.0.0 and humanize from PyPI, and in $LLM_C the folder of llm.c
(github.com/karpathy/llm.c). nanoGPT has no package: its prepare.py calls numpy's tofile, its train.py memmap.

The llm_c files here were written by a function with the layout of llm.c's write_datafile, not by llm.c itself, which
was out of reach when they were made.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent
EOD = 7
DOCUMENTS = {  # the last document has no end mark, one is empty
    "2": [[5, 65535, 0, EOD], [EOD], [], [1, 2, 3, EOD], [300, 4]],
    "4": [[5, 65536, 0, EOD], [EOD], [], [128255, 2, 3, EOD], [2**31 - 1, 4]],
}


def need(name):
    try:
        return importlib.import_module(name)
    except ImportError as e:
        print(f"skipped: {name} is not installed ({e})", file=sys.stderr)
        sys.exit(77)


def dolma_writer():
    """Only this module: the package imports classifiers of languages, too."""
    if "dolma.tokenizer.memmap_writer" in sys.modules:
        return sys.modules["dolma.tokenizer.memmap_writer"], sys.modules["dolma.tokenizer.data_types"]
    spec = importlib.util.find_spec("dolma")
    if spec is None:
        print("skipped: dolma is not installed", file=sys.stderr)
        sys.exit(77)
    root = pathlib.Path(next(iter(spec.submodule_search_locations)))
    for name in ("dolma", "dolma.core", "dolma.tokenizer"):
        module = types.ModuleType(name)
        module.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
    data_types = types.ModuleType("dolma.core.data_types")
    data_types.InputSpec = object
    sys.modules["dolma.core.data_types"] = data_types
    return importlib.import_module("dolma.tokenizer.memmap_writer"), importlib.import_module("dolma.tokenizer.data_types")


def write_datatrove(folder, name, documents, size):
    tokenizer = need("datatrove.pipeline.tokens.tokenizer")
    file = tokenizer.TokenizedFile(str(folder), f"{name}.ds", tokenizer_name_or_path="gpt2", save_final_metadata=True,
                                   token_size=size)
    for document in documents:
        file.write(document, None)
    file.close()


def write_dolma(folder, name, documents, size, np):
    writer, data_types = dolma_writer()
    dtype = np.dtype(np.uint16 if size == 2 else np.uint32)
    with writer.MemmapWriter(str(folder / f"{name}.npy"), dtype, max_tokens=1000) as file:
        for i, document in enumerate(documents):
            assert file.write(data_types.TokenizerOutput.from_tokens(f"id{i}", "in,1.jsonl", i + 1, document))


def write_llm_c(folder, name, documents, size):
    sys.path.insert(0, os.path.join(os.environ["LLM_C"], "dev/data"))
    tokens = [token for document in documents for token in document]
    need("data_common").write_datafile(str(folder / f"{name}.bin"), tokens, "gpt-2" if size == 2 else "llama-3")


def generate(folder):
    np = need("numpy")
    for size in (2, 4):
        documents = DOCUMENTS[str(size)]
        write_datatrove(folder, f"datatrove_{size}", documents, size)
        write_dolma(folder, f"dolma_{size}", documents, size, np)
        write_llm_c(folder, f"llm_c_{size}", documents, size)
    tokens = np.array([token for document in DOCUMENTS["2"] for token in document], dtype=np.uint16)
    tokens.tofile(folder / "nanogpt.bin")


def write_megatron(prefix, documents, size, np):
    """The layout of formats/spec/mmidx.md, one sequence per document."""
    type_of, code = (np.uint16, 8) if size == 2 else (np.int32, 4)
    tokens = np.array([token for document in documents for token in document], dtype=type_of)
    tokens.tofile(f"{prefix}.bin")
    lengths = np.array([len(document) for document in documents if document], dtype=np.int32)
    pointers = (np.cumsum(lengths, dtype=np.int64) - lengths) * size
    ends = np.cumsum([0] + [len(document) != 0 for document in documents], dtype=np.int64)
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + np.uint64(1).tobytes() + bytes([code]) + np.uint64(len(lengths)).tobytes() +
                   np.uint64(len(ends)).tobytes() + lengths.tobytes() + pointers.tobytes() + ends.tobytes())


def check_one(program, folder, draw, np):
    dataset, olmo = need("datatrove.utils.dataset"), need("olmo_core.data.utils")
    size = draw.choice((2, 4))
    top = 65535 if size == 2 else 2**31 - 1
    documents = []
    for _ in range(draw.randrange(1, 40)):
        length = draw.choice((0, 1, 2, 17, draw.randrange(2000)))
        documents.append([t for t in (draw.randrange(top + 1) for _ in range(length)) if t != EOD] + [EOD] * (length > 0))
    stream = np.array([token for document in documents for token in document], dtype=np.int64)
    full = [document for document in documents if document]
    source = folder / "source"
    write_megatron(source, documents, size, np)
    dtype = np.uint16 if size == 2 else np.uint32

    def convert(*words):
        subprocess.run([program, "convert", *map(str, words), "--overwrite"], check=True, capture_output=True)
    convert(source, "--to", "nanoset", "--output-prefix", folder / "out")
    ends = np.fromfile(folder / "out.ds.index", dtype=np.uint64)
    assert ends.tolist() == np.cumsum([len(document) for document in documents]).tolist()
    if len(stream) > 1:
        window = draw.randrange(1, len(stream))
        read = dataset.DatatroveFileDataset(str(folder / "out.ds"), seq_len=window, token_size=size)
        tokens = np.concatenate([read[i]["input_ids"].numpy() for i in range(len(read))])
        assert tokens.tolist() == stream[:len(tokens)].tolist() and len(tokens) > len(stream) - window - 1
    convert(source, "--to", "olmo", "--output-prefix", folder / "out", "--lossy")
    for marks in ({}, {"eos_token_id": EOD, "dtype": dtype}):
        places = list(olmo.iter_document_indices(str(folder / "out.npy"), **marks)) if full else []
        assert [olmo.load_array_slice(str(folder / "out.npy"), *place, dtype).tolist() for place in places] == full
    convert(source, "--to", "llm.c", "--output-prefix", folder / "flat", "--eod-id", EOD, "--lossy")
    header = np.fromfile(folder / "flat.bin", dtype=np.int32, count=256)
    assert header[:3].tolist() == [20240520 if size == 2 else 20240801, 1 if size == 2 else 7, len(stream)]
    assert not header[3:].any() and np.fromfile(folder / "flat.bin", dtype=dtype, offset=1024).tolist() == stream.tolist()
    if size == 2 and len(stream):
        convert(source, "--to", "nanogpt", "--output-prefix", folder / "flat", "--eod-id", EOD, "--lossy")
        assert np.memmap(folder / "flat.bin", dtype=np.uint16, mode="r").tolist() == stream.tolist()
    return len(stream)


def check(binaries, seed):
    np = need("numpy")
    draw = random.Random(seed)
    print(f"MILLRACE_SEED={seed}")
    with tempfile.TemporaryDirectory() as name:
        tokens = sum(check_one(os.path.join(binaries, "inspect_dataset"), pathlib.Path(name), draw, np) for _ in range(60))
    print(f"60 datasets, {tokens} tokens, equal in datatrove, olmo_core, llm.c and nanoGPT")
    sys.exit(0 if tokens > 1000 else "too few tokens were compared")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=HERE, type=pathlib.Path)
    parser.add_argument("--check", metavar="BIN")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("MILLRACE_SEED", random.randrange(2**31))))
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.check, arguments.seed)
    else:
        generate(arguments.folder)
        (arguments.folder / "documents.json").write_text(json.dumps(DOCUMENTS) + "\n")


if __name__ == "__main__":
    main()
