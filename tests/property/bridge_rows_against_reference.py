#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs random datasets with `inspect_dataset convert --to bridge`, and compares the rows with those that the
packing functions of Megatron-Bridge make from the same documents and masks. Then compares what a run with
`--last-token-as-label` serves with the batch that Bridge's dataset collates from these rows.

    bridge_rows_against_reference.py --program build/bin/inspect_dataset --bridge FOLDER [--seed N] [--cases N]
                                     [--first N]

  --bridge  where megatron-bridge is: the folder that has `megatron`

Documents come from arrays of OLMo, with and without masks; then some are divided into several sequences.
`modified_first_fit_decreasing`, which Bridge does not have, is compared with a model in this file. Padding has other
tokens in Bridge, so tokens, labels and positions are compared where documents are. Exits 1 at the first difference
and prints the arguments that repeat it; exits 77 if numpy, pyarrow, torch or megatron-bridge is not there.
"""

import argparse
import collections
import json
import logging
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import types

import reference_files

EOS = 7


def load_packing(folder):
    """Bridge's module with the algorithms."""
    return reference_files.load_module(
        folder, "megatron.bridge.data.packing.algorithms", reference_files.BRIDGE,
        {"tqdm": {"tqdm": lambda items, **_: items}, "megatron.bridge.utils.safe_pickle": {"safe_load_npy": None}})


def load_dataset(folder):
    """Bridge's dataset of packed rows. Its base class gives it only the padding of lists, which is here."""
    class Base:
        def _collate_item(self, items, max_length, pad_id):
            return [list(item) + [pad_id] * (max_length - len(item)) for item in items]

    module = reference_files.load_module(
        folder, "megatron.bridge.data.packing.gpt_sft", reference_files.BRIDGE,
        {"megatron.core.msc_utils": {"MultiStorageClientFeature": None},
         "megatron.bridge.data.datasets.gpt_sft": {"GPTSFTDataset": Base},
         "megatron.bridge.training.tokenizers.tokenizer": {"MegatronTokenizer": None}})
    return module.GPTSFTPackedDataset


def collated(dataset_class, rows, seq_len, unit):
    """The batch that Bridge makes of rows."""
    dataset = dataset_class.__new__(dataset_class)
    dataset.__dict__.update(
        tokenizer=types.SimpleNamespace(eos_id=EOS), return_cu_seqlen=True, pad_cu_seqlens=False, pad_to_max_length=True,
        max_seq_length=seq_len, _pad_seq_to_mult=unit, answer_only_loss=True, pack_metadata=None)
    return dataset.collate_fn([{"input_ids": row["input_ids"], "loss_mask": row["loss_mask"],
                                "seq_boundaries": row["seq_start_id"] + [len(row["input_ids"])]} for row in rows])


def modified_first_fit_decreasing(lengths, room):
    """The rows, as lists of indices into `lengths`. Works on plain lists, as the algorithm is described."""
    size = lambda row: sum(lengths[i] for i in row)
    shortest_first = lambda some: sorted(some, key=lambda i: lengths[i])
    longest_first = lambda some: sorted(some, key=lambda i: -lengths[i])
    fitting = [i for i, length in enumerate(lengths) if 0 < length <= room]
    large = longest_first(i for i in fitting if 2 * lengths[i] > room)
    medium = longest_first(i for i in fitting if 2 * lengths[i] <= room < 3 * lengths[i])
    small = shortest_first(i for i in fitting if 3 * lengths[i] <= room < 6 * lengths[i])
    tiny = shortest_first(i for i in fitting if 6 * lengths[i] <= room)
    rows = [[i] for i in large]
    for row in rows:
        found = [i for i in medium if lengths[i] <= room - size(row)]
        if found:
            medium.remove(found[0])
            row.append(found[0])
    for row in reversed(rows):
        if len(row) > 1 or len(small) < 2 or lengths[small[0]] + lengths[small[1]] > room - size(row):
            continue
        row.append(small.pop(0))
        second = [i for i in small if lengths[i] <= room - size(row)][-1]
        small.remove(second)
        row.append(second)
    rest = longest_first(medium + small + tiny)
    for row in rows:
        while found := [i for i in rest if lengths[i] <= room - size(row)]:
            rest.remove(found[0])
            row.append(found[0])
    last = []
    for i in rest:
        row = last.pop(0) if last and lengths[i] <= room - size(last[0]) else []
        row.append(i)
        at = next((k for k, other in enumerate(last) if size(other) > size(row)), len(last))
        last.insert(at, row)
    return rows + last


class Case:
    def __init__(self, seed, number):
        rng = random.Random(seed << 40 | number)
        self.number = number
        self.unit = rng.choice((1, 1, 2, 8, 12))
        self.seq_len = self.unit * rng.randint(1, rng.choice((5, 60, 400)))
        self.algorithm = rng.choice(("first_fit_shuffle", "first_fit_decreasing", "modified_first_fit_decreasing"))
        self.seed = rng.choice((0, 1, 1234, 2**32 - 1))
        self.compression = rng.choice(("zstd", "none"))
        top = rng.choice((300, 60_000, 2_000_000))
        # Most lengths fit; some documents are too long, or have one token, which predicts nothing.
        longest = rng.choice((self.seq_len + 1, self.seq_len // 3 + 2, self.seq_len + 3, 9))
        self.documents = [[rng.randrange(top) for _ in range(rng.randint(1, longest))]
                          for _ in range(rng.choice((1, 2, 30, 150)))]
        if self.unit > 1:  # so that Bridge's padding can be told from documents
            for ids in self.documents:
                ids[-1] += ids[-1] == EOS
        self.wide = top > 65_536
        has_mask = rng.random() < 0.7
        self.sequences = None if rng.random() < 0.5 else [self.cut(rng, len(ids)) for ids in self.documents]
        self.masks = [[rng.randrange(2) for _ in ids] for ids in self.documents] if has_mask else None

    @staticmethod
    def cut(rng, tokens):
        """Lengths of sequences, of which some are 0."""
        cuts = sorted(rng.randint(0, tokens) for _ in range(rng.choice((0, 1, 1, 4))))
        return [end - begin for begin, end in zip([0, *cuts], [*cuts, tokens])]

    def rows(self, bridge, numpy):
        """The rows that are expected, and the packing metadata of Bridge or None."""
        masks = self.masks or [[1] * len(ids) for ids in self.documents]
        items = []
        for ids, mask in zip(self.documents, masks):
            share = -(-(len(ids) - 1) // self.unit) * self.unit
            padding = share + 1 - len(ids)
            items.append({"input_ids": ids + [EOS] * padding, "loss_mask": mask + [0] * padding})
        kept = [item for item in items if 0 < len(item["input_ids"]) - 1 <= self.seq_len]
        if not kept:
            return [], None
        if self.algorithm == "modified_first_fit_decreasing":
            rows = modified_first_fit_decreasing([len(item["input_ids"]) - 1 for item in items], self.seq_len)
            made = []
            for row in rows:
                starts, ids, mask = [], [], []
                for i in row:
                    starts.append(len(ids))
                    ids += items[i]["input_ids"]
                    mask += items[i]["loss_mask"][1:] + [0]
                made.append({"input_ids": ids, "loss_mask": mask, "seq_start_id": starts})
            return made, None
        # Bridge draws documents without a label, too. They are not in our rows, so they are taken out of its rows.
        sequences, histogram = bridge.create_hist(items, self.seq_len)
        numpy.random.seed(self.seed)
        assignments, metadata = bridge.create_packing_strategy(histogram, self.seq_len, self.algorithm)
        made = bridge.fill_packing_strategy(assignments, sequences, self.seq_len, EOS)
        if histogram[0]:
            metadata = None
            made = [self.without_unlabelled(row) for row in made]
        return [{key: [int(value) for value in values] for key, values in row.items()} for row in made], metadata

    @staticmethod
    def without_unlabelled(row):
        ends = row["seq_start_id"][1:] + [len(row["input_ids"])]
        starts, ids, mask = [], [], []
        for begin, end in zip(row["seq_start_id"], ends):
            if end - begin > 1:
                starts.append(len(ids))
                ids += row["input_ids"][begin:end]
                mask += row["loss_mask"][begin:end]
        return {"input_ids": ids, "loss_mask": mask, "seq_start_id": starts}


def write_arrays(case, folder, numpy):
    numpy.concatenate([numpy.array(ids, dtype=numpy.uint32 if case.wide else numpy.uint16)
                       for ids in case.documents]).tofile(folder / "token_ids_part_0.npy")
    ends = numpy.cumsum([len(ids) for ids in case.documents])
    (folder / "ends.csv").write_text("".join(f"{end}\n" for end in ends))
    if case.masks:
        numpy.concatenate([numpy.array(mask, dtype=numpy.bool_) for mask in case.masks]).tofile(
            folder / "labels_mask_part_0.npy")


def write_index(path, code, sequences, numpy):
    """The .idx of documents that are lists of lengths of sequences."""
    lengths = numpy.array([length for document in sequences for length in document], dtype=numpy.int32)
    size = {8: 2, 4: 4, 5: 8}[code]
    pointers = (numpy.cumsum(lengths, dtype=numpy.int64) - lengths) * size
    ends = numpy.cumsum([0, *map(len, sequences)], dtype=numpy.int64)
    path.write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(ends)) + lengths.tobytes() +
                     pointers.tobytes() + ends.tobytes())


def refuses_large_ids(program, folder, numpy):
    """Whether ids that are no int32 are refused, and leave no file."""
    for bad in (-1, 2**31):
        numpy.array([1, 2, 3, bad, 5, 6], dtype=numpy.int64).tofile(folder / "large.bin")
        write_index(folder / "large.idx", 5, [[3], [3]], numpy)
        made = subprocess.run([program, "convert", folder / "large", "--to", "bridge", "--seq-length", "8", "--output-prefix",
                               folder / "no"], stderr=subprocess.PIPE, encoding="utf-8")
        if made.returncode != 1 or f"token 0 of document 1 is {bad}, but packed rows hold ids from 0" not in made.stderr:
            return False
    return not list(folder.glob("no*"))


def places(ends, lengths):
    """The positions of documents that begin at `ends` and have these lengths. The rest is padding."""
    return [i for begin, length in zip(ends, lengths) for i in range(begin, begin + length)]


def fault_of_served(case, program, folder, dataset_class, rows):
    """Compares an epoch of a run with Bridge's batch of the same rows. The run shuffles rows, so both are sorted."""
    def row_of(row, loss, ends, lengths):
        at = lambda key: [row[key][i] for i in places(ends, lengths)]
        longest = max(end - begin for begin, end in zip(ends, ends[1:]))
        return at("tokens"), at("labels"), at("position_ids"), loss, ends, lengths, longest

    batch = collated(dataset_class, rows, case.seq_len, case.unit)
    ends_of = batch["cu_seqlens_q_padded" if case.unit > 1 else "cu_seqlens_q"]
    wanted = []
    for r, row in enumerate(rows):
        one = {key: batch[key][r].tolist() for key in ("tokens", "labels", "position_ids")}
        lengths = []
        for begin, end in zip(row["seq_start_id"], row["seq_start_id"][1:] + [len(row["input_ids"])]):
            ids = row["input_ids"][begin:end]
            while case.unit > 1 and ids[-1] == EOS:  # padding: no document of this case ends with it
                ids.pop()
            lengths.append(len(ids) - 1)
        wanted.append(row_of(one, batch["loss_mask"][r].tolist(), sorted(set(ends_of[r].tolist())), lengths))
        if wanted[-1][-1] != batch["max_seqlen_q"][r].item():
            return f"max_seqlen of Bridge is {batch['max_seqlen_q'][r].item()}, expected {wanted[-1][-1]}"
    shown = subprocess.run(
        [program, "show", folder / "data", "--order", "instant", "--packing", case.algorithm, "--last-token-as-label",
         "--leave-out-overlong", "--seq-length", str(case.seq_len), "--pad-documents-to", str(case.unit), "--seed",
         str(case.seed), "--eod-id", str(EOS), "--eod-mask-loss", "--micro-batch-size", str(len(rows)), "--step", "0",
         "--json", "--all"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    if shown.returncode != 0:
        return f"show: {shown.stderr}"
    found = []
    for row in json.loads(shown.stdout)["batches"][0]["rows"]:
        tokens = collections.Counter()
        for part in row["documents"]:
            tokens[part["document"]] += part["tokens"]
        lengths = [count - 1 for count in tokens.values()]
        found.append(row_of(row, [int(loss) for loss in row["loss_mask"]], row["boundaries"], lengths))
    for ours, theirs in zip(sorted(found), sorted(wanted)):
        if ours != theirs:
            return f"a row is served as {ours}, expected {theirs}"
    return None if len(found) == len(wanted) else f"{len(found)} rows are served, expected {len(wanted)}"


def fault_of(case, program, folder, bridge, dataset_class, numpy, parquet):
    write_arrays(case, folder, numpy)

    def run(*words):
        return subprocess.run([program, "convert", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8")

    made = run(str(folder / "token_ids_part_0.npy"), "--from", "olmo", "--boundaries", str(folder / "ends.csv"),
               "--dtype", "uint32" if case.wide else "uint16", "--output-prefix", str(folder / "data"))
    if made.returncode != 0:
        return f"arrays do not become a dataset: {made.stderr}"
    if case.sequences:
        write_index(folder / "data.idx", 4 if case.wide else 8, case.sequences, numpy)
        (folder / "data.meta").unlink()  # it belongs to the other sequences
    words = [str(folder / "data"), "--to", "bridge", "--output-prefix", str(folder / "rows"), "--seq-length",
             str(case.seq_len), "--packing", case.algorithm, "--seed", str(case.seed), "--pad-documents-to",
             str(case.unit), "--pad-id", str(EOS), "--compression", case.compression, "--json"]
    refused = run(*words)
    several = case.sequences and any(len(lengths) > 1 for lengths in case.sequences)
    first = "the sequences inside " if several else "what is in "
    if refused.returncode != 1 or f"would be lost: {first}" not in refused.stderr:
        return f"without --lossy: {refused.stderr}"
    wanted, metadata = case.rows(bridge, numpy)
    found = run(*words, "--lossy")
    if not wanted:
        return None if "has no document that fits in a row" in found.stderr else f"no rows: {found.stderr}"
    if found.returncode != 0:
        return found.stderr
    said = json.loads(found.stdout)
    table = parquet.read_table(folder / "rows.idx.parquet").to_pylist()
    for i, (ours, theirs) in enumerate(zip(table, wanted)):
        if ours != theirs:
            return f"row {i} is {ours}, expected {theirs}"
    if len(table) != len(wanted):
        return f"{len(table)} rows, expected {len(wanted)}"
    documents = sum(len(row["seq_start_id"]) for row in wanted)
    if (said["rows"], said["documents"], said["dtype"]) != (len(wanted), documents, "int32"):
        return f"says {said['rows']} rows of {said['documents']} documents of {said['dtype']}"
    labels = sum(len(ids) - 1 for ids in case.documents if 1 < len(ids) and
                 -(-(len(ids) - 1) // case.unit) * case.unit <= case.seq_len)
    if said["tokens"] != labels + documents or abs(said["padding_share"] - 1 + labels / len(wanted) / case.seq_len) > 1e-9:
        return f"says {said['tokens']} tokens and a padding share of {said['padding_share']}"
    if said["left_out"] != len(case.documents) - documents or (said["left_out"] > 0) != any(
            "positions of a row" in lost or "fewer than two tokens" in lost for lost in said["lost"]):
        return f"says that {said['left_out']} documents were left out, and lost {said['lost']}"
    figures = json.loads((folder / "rows.packing.json").read_text())
    if metadata is not None and figures != [metadata]:
        return f"packing metadata {figures}, expected {[metadata]}"
    return fault_of_served(case, program, folder, dataset_class, wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="path of inspect_dataset")
    parser.add_argument("--bridge", required=True, help="the folder that has megatron/bridge")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    try:
        import numpy
        import pyarrow.parquet as parquet
        import torch  # noqa: F401  Bridge's dataset needs it
    except ImportError as error:
        print(f"skipped: needs numpy, pyarrow and torch (scripts/setup --references): {error}")
        return 77
    bridge = load_packing(options.bridge)
    dataset_class = load_dataset(options.bridge)
    logging.disable(logging.WARNING)  # Bridge warns of documents that it leaves out
    with tempfile.TemporaryDirectory() as folder:
        if not refuses_large_ids(options.program, pathlib.Path(folder), numpy):
            print("ids that are no int32 are not refused")
            return 1
    print(f"seed {options.seed}, cases {options.first} to {options.first + options.cases - 1}", flush=True)
    counts = collections.Counter()
    for number in range(options.first, options.first + options.cases):
        case = Case(options.seed, number)
        with tempfile.TemporaryDirectory() as folder:
            fault = fault_of(case, options.program, pathlib.Path(folder), bridge, dataset_class, numpy, parquet)
        if fault:
            print(f"case {case.number}: {case.algorithm}, seq_len {case.seq_len}, unit {case.unit}: {fault}")
            print(f"repeat it with: --seed {options.seed} --first {number} --cases 1")
            return 1
        counts[case.algorithm] += 1
        counts["documents"] += len(case.documents)
    print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    print("no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
