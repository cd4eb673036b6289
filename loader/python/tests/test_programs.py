# SPDX-License-Identifier: Apache-2.0
import collections
import errno
import json
import os
import signal
import subprocess
import time

import millrace
import numpy as np
import pytest
from conftest import ROOT

SAMPLE = ROOT / "scripts/sample/corpus.jsonl"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return millrace.preprocess(SAMPLE, tmp_path_factory.mktemp("out") / "sample", tokenizer="ByteLevelTokenizer",
                               append_eod=True, workers=2)


def test_preprocess(done):
    texts = [json.loads(line)["text"] for line in SAMPLE.read_text().splitlines()]
    assert done.documents == len(texts) and done.dtype == "uint16" and done.tokenizer_type == "ByteLevelTokenizer"
    data = millrace.IndexedDataset(done.outputs[0].prefix)
    assert done.tokens == data.token_count == done.outputs[0].tokens
    assert done.data_path == [done.outputs[0].prefix]
    for d in range(0, len(texts), 17):
        assert bytes(data.document(d)[:-1].astype(np.uint8)).decode() == texts[d]


def test_progress_is_reported(tmp_path):
    seen = []
    millrace.preprocess(SAMPLE, tmp_path / "a", tokenizer="ByteLevelTokenizer", progress=seen.append)
    assert seen and all(isinstance(each, dict) for each in seen)

    class Stop(Exception):
        pass

    def stop(_):
        raise Stop
    with pytest.raises(Stop):
        millrace.preprocess(SAMPLE, tmp_path / "b", tokenizer="ByteLevelTokenizer", progress=stop)
    with pytest.raises(ValueError, match="invalid literal"):
        millrace.preprocess(SAMPLE, tmp_path / "c", tokenizer="ByteLevelTokenizer", progress=lambda _: int("x"))


def test_a_forked_process_does_not_delay_the_end(tmp_path, monkeypatch):
    """It has the pipe of the metrics, too."""
    children = []
    started = subprocess.Popen

    def popen(*args, pass_fds=(), **more):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
        return started(*args, pass_fds=pass_fds, **more)
    monkeypatch.setattr("millrace._programs.subprocess.Popen", popen)
    begin = time.monotonic()
    seen = []
    try:
        millrace.preprocess(SAMPLE, tmp_path / "a", tokenizer="ByteLevelTokenizer", progress=seen.append)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert seen and children and time.monotonic() - begin < 30


def test_verify_merge_where_audit(done, tmp_path):
    prefix = done.outputs[0].prefix
    found = millrace.verify(prefix)
    assert found.tokens == done.tokens and found.tokens_checked
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in "ab":
        millrace.preprocess(SAMPLE, folder / name, tokenizer="ByteLevelTokenizer", append_eod=True)
    merged = millrace.merge(folder, tmp_path / "merged")
    assert merged.prefix == str(tmp_path / "merged") and merged.tokens == 2 * done.tokens
    assert [os.path.basename(each)[0] for each in merged.inputs] == ["a", "b"] and merged.details["dropped"] == []
    assert millrace.verify(tmp_path / "merged").tokens == 2 * done.tokens
    options = dict(order="megatron", seq_length=32, train_samples=64, split="1")
    slots = millrace.where(prefix, **options, step=3, rank=1, ranks=2, micro_batch_size=2)
    assert [s.slot for s in slots] == [0, 1]
    assert millrace.where(prefix, **options, step=3, rank=1, ranks=2, micro_batch_size=2, slot=1) == slots[1:]
    with pytest.raises(millrace.ConfigError, match="--document is for the command line"):
        millrace.where(prefix, **options, document=3)
    run = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=32, train_samples=64)
    data = millrace.IndexedDataset(prefix)
    for slot in slots:
        row = np.concatenate([data[p.sequence][p.first:p.first + p.tokens] for p in slot.documents])
        np.testing.assert_array_equal(row[:32], run[slot.sample]["tokens"])
        assert slot.documents[0].source["input"].endswith("corpus.jsonl")
    audited = millrace.audit(prefix, **options)
    assert audited.sound and audited.ledgers[0].tokens == done.tokens and audited.ledgers[0].missing == 0


def test_stats(done, tmp_path):
    prefix = done.outputs[0].prefix
    data = millrace.IndexedDataset(prefix)
    documents = [data.document(d) for d in range(done.documents)]
    found = millrace.stats([prefix], duplicates=True, top_ngrams=3, ngram=5, top=4)
    counts = np.bincount(np.concatenate(documents), minlength=512)
    assert found.tokens == counts.sum() and found.documents == len(documents) and found.vocab_size == 512
    assert found.never_seen == np.count_nonzero(counts == 0) and found.distinct_ids == np.count_nonzero(counts)
    assert [each["count"] for each in found.frequent_ids] == sorted(counts.tolist(), reverse=True)[:4]
    lengths = np.array([len(each) for each in documents])
    assert found.document_tokens["max"] == lengths.max() and found.document_tokens["mean"] == lengths.mean()
    shares = counts[counts > 0] / counts.sum()
    assert abs(found.entropy_bits + np.sum(shares * np.log2(shares))) < 1e-9
    assert found.special_tokens == counts[0]
    texts = [each.tobytes() for each in documents if len(each) > 0]  # empty documents do not count
    assert found.duplicates["documents"] == len(texts) - len(set(texts))
    grams = collections.Counter(tuple(each[i:i + 5].tolist()) for each in documents for i in range(len(each) - 4))
    assert [each["count"] for each in found.ngrams["frequent"]] == [count for _, count in grams.most_common(3)]
    (tmp_path / "texts").write_text("no such text\n")
    more = millrace.stats(prefix, near_duplicates=True, contamination=[prefix, tmp_path / "texts"], contamination_ngram=6)
    assert more.contamination["documents"] == sum(len(each) >= 6 for each in documents)
    assert more.contamination["texts"][-1]["found"] < more.contamination["texts"][-1]["ngrams"] == 7
    assert more.near_duplicates["compared"] == sum(len(each) >= 5 for each in documents)
    assert more.near_duplicates["documents"] >= found.duplicates["documents"] and more.duplicates is None
    assert found.inputs[0]["documents"] == len(documents) and found.datasets[0]["prefix"] == prefix
    assert millrace.stats(prefix, tokenizer="ByteLevelTokenizer").duplicates is None
    with pytest.raises(millrace.ConfigError, match="--ngram requires --top-ngrams"):
        millrace.stats(prefix, ngram=3)


def test_info(done):
    prefix = done.outputs[0].prefix
    data = millrace.IndexedDataset(prefix)
    found = millrace.info(prefix, seq_length=16, split="1,0,0")
    assert found.documents == done.documents and found.tokens == sum(len(data.document(d)) for d in range(found.documents))
    assert found.dtype == "uint16" and found.meta["tokenizer"]["type"] == "ByteLevelTokenizer"
    assert found.details["megatron"]["parts"][0]["samples"] == (found.tokens - 1) // 16
    with pytest.raises(millrace.ConfigError, match="--seq-length is required"):
        millrace.info(prefix, split="1,0,0")


def test_plan(done, tmp_path):
    prefix = done.outputs[0].prefix
    flags = {"order": "instant", "seq_length": 16, "train_samples": 640, "gpus_per_node": 4, "global_batch_size": 64}
    found = millrace.plan([prefix], step_seconds=2, **flags)
    assert found.steps == 10 and found.run_seconds == 20 and found.utilisation is None
    assert found.details["node"]["bytes_per_second"] == 32 * 17 * 2  # 32 samples per second of 16 + 1 uint16
    assert found.data[0].prefix == prefix and found.data[0].share == 1
    measured = millrace.plan([prefix], step_seconds=2, probe=tmp_path, probe_seconds=0.1, **flags)
    assert measured.utilisation > 0 and measured.details["probe"]["loaders"] >= 1
    assert not list(tmp_path.iterdir())
    with pytest.raises(millrace.ConfigError, match="--mtbf-hours requires --checkpoint-seconds"):
        millrace.plan([prefix], step_seconds=2, mtbf_hours=3, **flags)


def test_report(done, tmp_path):
    prefix = done.outputs[0].prefix
    page = tmp_path / "page.html"
    assert millrace.report([prefix, prefix], page, documents=3, tokenizer="ByteLevelTokenizer") == str(page)
    text = page.read_text(encoding="utf-8").split('id="data">')[1].split("</script>")[0]
    sides = json.loads(text)["sides"]
    assert [side["figures"]["tokens"] for side in sides] == [done.tokens] * 2
    data = millrace.IndexedDataset(prefix)
    for one in sides[1]["documents"]:
        assert one["ids"] == data.document(one["document"])[:len(one["ids"])].tolist()
    with pytest.raises(millrace.ConfigError, match="expected at most 200"):
        millrace.report(prefix, page, documents=201)


def test_search(done, tmp_path):
    prefix = done.outputs[0].prefix
    data = millrace.IndexedDataset(prefix)
    texts = [bytes(data.document(d)[:-1].astype(np.uint8)).decode() for d in range(done.documents)]
    wanted = [text.count("e") for text in texts]
    found = millrace.search(prefix, text=["e", "--no such text"], hits=7, context=3)
    assert found.hits == sum(wanted) == found.queries[0].hits and found.queries[1] == type(found.queries[1])(
        hits=0, documents=0, text="--no such text")
    assert found.hit_documents == sum(each > 0 for each in wanted) and found.tokens == done.tokens
    assert len(found.places) == 7 and found.prefixes == [prefix]
    for place in found.places:
        text = texts[place.document].encode()
        assert text[place.begin:place.end] == b"e" == place.text.encode() and place.tokens == 1
        assert text[:place.begin].endswith(place.before.encode()) and place.source["line"] == place.document + 1
    pair = [int(each) for each in data.document(5)[3:5]]
    by_ids = millrace.search(prefix, ids=pair, hits=1)
    stream = np.concatenate([data.document(d) for d in range(len(texts))])
    assert by_ids.hits == np.count_nonzero((stream[:-1] == pair[0]) & (stream[1:] == pair[1]))
    assert by_ids.places[0].begin is None
    assert millrace.search(prefix, ids=[pair, [0, 0]]).queries[0] == by_ids.queries[0]
    served = millrace.search(prefix, ids=pair, hits=1, order="stored", seq_length=32).places[0].served
    assert served and millrace.where(prefix, order="stored", seq_length=32, step=served[0]["step"])
    missing = millrace.search(prefix, text="no such text anywhere")
    assert missing.hits == 0 and missing.places == []
    with pytest.raises(TypeError, match="sequences of integers"):
        millrace.search(prefix, ids=[1, [2]])
    with pytest.raises(millrace.ConfigError, match="what to find"):
        millrace.search(prefix)
    with pytest.raises(millrace.IOError, match="none.idx"):
        millrace.search(tmp_path / "none", ids=[1])


def test_repair(done, tmp_path):
    prefix = tmp_path / "it's"
    for suffix in (".bin", ".idx", ".sum", ".src", ".meta"):
        with open(done.outputs[0].prefix + suffix, "rb") as old, open(f"{prefix}{suffix}", "wb") as new:
            new.write(old.read())
    assert millrace.repair(prefix).file is None
    sequences = millrace.verify(prefix).sequences
    with open(f"{prefix}.idx", "r+b") as file:
        whole = file.read()
        file.seek(34 + 4 * sequences + 8)  # the second pointer
        file.write(b"\xff")
    with pytest.raises(millrace.FormatError, match=r"it's\.idx"):
        millrace.verify(prefix)
    repaired = millrace.repair(prefix)
    assert repaired.file == f"{prefix}.idx.repaired" and repaired.changed == 1 and repaired.proven
    with open(repaired.file, "rb") as file:
        assert file.read() == whole
    with open(f"{prefix}.bin", "ab") as file:
        file.write(b"x")
    with pytest.raises(millrace.FormatError, match="would have to guess"):
        millrace.repair(prefix)
    os.truncate(f"{prefix}.bin", os.path.getsize(f"{prefix}.bin") - 1)
    os.rename(repaired.file, f"{prefix}.idx")
    os.rename(f"{prefix}.sum", tmp_path / "old.sum")
    repaired = millrace.repair(prefix, "checksums")
    assert repaired.file == f"{prefix}.sum.repaired" and repaired.changed == 2 and repaired.proven
    with open(repaired.file, "rb") as file, open(tmp_path / "old.sum", "rb") as old:
        assert file.read() == old.read()
    with pytest.raises(millrace.ConfigError, match="expected pointers"):
        millrace.repair(prefix, "lengths")


def test_convert(done, tmp_path):
    prefix = done.outputs[0].prefix
    data = millrace.IndexedDataset(prefix)
    stream = np.concatenate([data.document(d) for d in range(done.documents)])
    with pytest.raises(millrace.ConfigError, match="would be lost: .*pass --lossy"):
        millrace.convert(prefix, tmp_path / "web", to="nanoset")
    made = millrace.convert(prefix, tmp_path / "web", to="nanoset", lossy=True)
    assert [os.path.basename(each) for each in made.files] == ["web.ds.index", "web.ds.metadata", "web.ds"]
    assert made.documents == done.documents and made.lost and made.sequences is None
    np.testing.assert_array_equal(np.fromfile(tmp_path / "web.ds", dtype=made.dtype), stream)
    back = millrace.convert(tmp_path / "web.ds", tmp_path / "back")
    assert back.tokens == done.tokens and back.lost == [] and millrace.verify(tmp_path / "back").tokens == done.tokens
    again = millrace.IndexedDataset(tmp_path / "back")
    for d in range(0, done.documents, 17):
        np.testing.assert_array_equal(again.document(d), data.document(d))
    stream.astype(np.uint16).tofile(tmp_path / "train.bin")
    with pytest.raises(millrace.ConfigError, match="cannot be recognized; pass --from"):
        millrace.convert(tmp_path / "train.bin", tmp_path / "raw")
    options = dict(format="nanogpt", dtype="uint16", eod_id=0)
    full = np.count_nonzero(stream == 0)  # a text has the id of eod, too; an empty document has none
    assert stream[-1] == 0 and full != done.documents
    assert millrace.convert(tmp_path / "train.bin", tmp_path / "raw", **options).documents == full
    shards = millrace.convert(tmp_path / "train.bin", tmp_path / "shard", to="llm.c", shard_tokens=1000, **options)
    assert len(shards.files) == -(-done.tokens // 1000)
    assert millrace.convert(shards.files, tmp_path / "joined", eod_id=0).documents == full
    (tmp_path / "odd.ds").write_bytes(b"123")
    with pytest.raises(millrace.FormatError, match=r"odd\.ds: .*multiple of 2"):
        millrace.convert(tmp_path / "odd.ds", tmp_path / "odd", dtype="uint16")
    with pytest.raises(millrace.IOError, match=r"none\.ds"):
        millrace.convert(tmp_path / "none.ds", tmp_path / "none", dtype="uint16")


def test_diff(done, tmp_path):
    prefix = done.outputs[0].prefix
    same = millrace.diff(prefix, prefix, workers=2)
    assert same.same and same.kind == "datasets" and same.details["first"] is None
    lines = SAMPLE.read_text().splitlines(keepends=True)
    (tmp_path / "fewer.jsonl").write_text("".join(lines[:3] + lines[4:]))
    fewer = millrace.preprocess(tmp_path / "fewer.jsonl", tmp_path / "fewer", tokenizer="ByteLevelTokenizer",
                                append_eod=True).outputs[0].prefix
    found = millrace.diff(prefix, fewer)
    assert not found.same and found.details["first_only_in_a"] == [3] and found.details["only_in_b"] == 0
    run = {"order": "megatron", "split": "1", "seq_length": 32, "train_samples": 48, "global_batch_size": 12, "ranks": 4}
    ranks = millrace.diff_runs(prefix, {"ranks": 3}, **run)
    assert ranks.same and ranks.kind == "runs" and ranks.details["served_by_other_rank"] == 36
    seed = millrace.diff_runs(prefix, {"seed": 7}, **run)
    assert not seed.same and seed.details["steps"] == 4
    assert not millrace.diff_runs(prefix, {"data_path": fewer}, **run).same
    with pytest.raises(millrace.ConfigError, match="two datasets or two states"):
        millrace.diff(prefix, SAMPLE)
    with pytest.raises(millrace.IOError, match="none.idx"):
        millrace.diff(prefix, tmp_path / "none")


def test_filter(done, tmp_path):
    prefix = done.outputs[0].prefix
    old = millrace.IndexedDataset(prefix)
    kept = millrace.filter(prefix, tmp_path / "kept", keep=range(3, 9))
    new = millrace.IndexedDataset(tmp_path / "kept")
    assert kept.documents == 6 == new.document_count and kept.dropped == done.documents - 6
    assert kept.tokens == new.token_count and kept.sum_root == millrace.verify(tmp_path / "kept").details["sum_root"]
    for d in range(6):
        assert np.array_equal(new.document(d), old.document(d + 3))
    with pytest.raises(millrace.ConfigError, match="overwrite"):
        millrace.filter(prefix, tmp_path / "kept", drop=[0])
    assert millrace.filter(prefix, tmp_path / "kept", drop=[0], overwrite=True).documents == done.documents - 1
    copies = len({bytes(old.document(d)) for d in range(done.documents)})
    assert millrace.filter(prefix, tmp_path / "once", duplicates=True).documents == copies
    with pytest.raises(millrace.ConfigError, match="there is no document"):
        millrace.filter(prefix, tmp_path / "x", keep=[10**9])
    with pytest.raises(TypeError, match="one of keep"):
        millrace.filter(prefix, tmp_path / "x")


def test_a_program_that_cannot_start_leaves_no_descriptor(tmp_path, monkeypatch):
    monkeypatch.setattr("millrace._programs.FOLDER", tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(millrace.IOError, match="cannot be started"):
        millrace.preprocess(SAMPLE, tmp_path / "x", tokenizer="ByteLevelTokenizer", progress=print)
    assert len(os.listdir("/proc/self/fd")) == before


def test_errors_are_sentences(tmp_path, done):
    with pytest.raises(millrace.ConfigError, match="tokenizer-type"):
        millrace.preprocess(SAMPLE, tmp_path / "x")
    with pytest.raises(millrace.IOError, match="none.jsonl") as raised:
        millrace.preprocess(tmp_path / "none.jsonl", tmp_path / "x", tokenizer="ByteLevelTokenizer")
    assert raised.value.errno == errno.ENOENT and raised.value.filename.endswith("none.jsonl")
    with pytest.raises(millrace.IOError, match="none") as raised:
        millrace.verify(tmp_path / "none")
    assert raised.value.errno == errno.ENOENT
    with pytest.raises(millrace.ConfigError, match="--help is for the command line"):
        millrace.preprocess(SAMPLE, tmp_path / "x", tokenizer="ByteLevelTokenizer", help=True)
    with pytest.raises(millrace.ConfigError, match="--dry-run is for the command line"):
        millrace.preprocess(SAMPLE, tmp_path / "x", tokenizer="ByteLevelTokenizer", dry_run=True)
    with pytest.raises(TypeError, match="input is given twice"):
        millrace.preprocess(SAMPLE, tmp_path / "x", tokenizer="ByteLevelTokenizer", input="y")
    with pytest.raises(TypeError, match="tokenizer is b'x'"):
        millrace.preprocess(SAMPLE, tmp_path / "x", tokenizer=b"x")
    with pytest.raises(TypeError, match="inputs is b'a'"):
        millrace.preprocess(b"a", tmp_path / "x", tokenizer="ByteLevelTokenizer")
    with pytest.raises(millrace.ConfigError, match="no-such-flag"):
        millrace.preprocess(SAMPLE, tmp_path / "x", tokenizer="ByteLevelTokenizer", no_such_flag=1)
    folder = tmp_path / "parts"
    folder.mkdir()
    for suffix in (".bin", ".idx"):
        with open(done.outputs[0].prefix + suffix, "rb") as old, open(folder / f"x{suffix}", "wb") as new:
            new.write(old.read()[:-9])
    with pytest.raises(millrace.FormatError, match=r"x\.(idx|bin): .*byte"):
        millrace.merge(folder, tmp_path / "merged")
    with pytest.raises(millrace.FormatError, match=r"x\.(idx|bin): .*byte"):
        millrace.where(folder / "x", order="instant", seq_length=32, step=0)
    with pytest.raises(millrace.ConfigError, match="rank is 9"):
        millrace.where(done.outputs[0].prefix, order="instant", seq_length=32, step=0, rank=9, ranks=2)
    prefix = tmp_path / "damaged"
    for suffix in (".bin", ".idx", ".sum", ".meta"):
        source = done.outputs[0].prefix + suffix
        with open(source, "rb") as old, open(f"{prefix}{suffix}", "wb") as new:
            new.write(old.read())
    with open(f"{prefix}.bin", "r+b") as file:
        file.seek(1000)
        file.write(b"\xff\xff")
    for workers in (None, 1, 3):
        with pytest.raises(millrace.FormatError, match=r"damaged\.bin: .*byte"):
            millrace.verify(prefix, workers=workers)
    with pytest.raises(millrace.ConfigError, match="expected one dataset, found 1"):
        millrace.verify(folder)
