# SPDX-License-Identifier: Apache-2.0
import json
import pickle
import shutil
import threading

import millrace
import numpy as np
import pytest
from conftest import ROOT

GOLDEN = ROOT / "tests/golden"
TEXTS = ["Hello world", "", "To be, or not to be: that is the question.", "naïve café 東京 🙂", "  two  spaces\n\n"]


@pytest.fixture(scope="module")
def gpt2():
    return millrace.Tokenizer.from_file(GOLDEN / "tiny_bpe/vocab.json")


def test_ids_come_back_as_text(gpt2):
    for text in TEXTS:
        ids = gpt2.encode(text)
        assert ids.dtype == np.int32 and ids.ndim == 1
        assert (ids < gpt2.vocab_size).all()
        assert gpt2.decode(ids) == text
    assert gpt2.vocab_size == len(json.loads((GOLDEN / "tiny_bpe/vocab.json").read_text()))


def test_ids_are_those_of_preprocess(gpt2, tmp_path):
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS if t))
    done = millrace.preprocess(corpus, tmp_path / "out", tokenizer=GOLDEN / "tiny_bpe/vocab.json")
    data = millrace.IndexedDataset(done.outputs[0].prefix)
    for d, text in enumerate(t for t in TEXTS if t):
        np.testing.assert_array_equal(data.document(d), gpt2.encode(text))


def test_offsets(gpt2):
    for text in TEXTS:
        ids, offsets = gpt2.encode_with_offsets(text)
        np.testing.assert_array_equal(ids, gpt2.encode(text))
        assert offsets.dtype == np.int64 and offsets.shape == (len(ids), 2)
        data, at = text.encode(), 0
        for begin, end in offsets:
            assert begin <= at <= end
            data[begin:end].decode()  # whole characters
            at = end
        assert at == len(data)
    ids, offsets = gpt2.encode_with_offsets(TEXTS[0])
    assert [TEXTS[0][begin:end] for begin, end in offsets] == [gpt2.decode([i]) for i in ids]


def test_batches(gpt2):
    ids, offsets = gpt2.encode_batch(TEXTS)
    assert offsets.dtype == np.int64 and len(offsets) == len(TEXTS) + 1
    for i, text in enumerate(TEXTS):
        np.testing.assert_array_equal(ids[offsets[i]:offsets[i + 1]], gpt2.encode(text))
    ids, offsets = gpt2.encode_batch([])
    assert len(ids) == 0 and offsets.tolist() == [0]


def test_batches_by_several_threads(gpt2):
    # More than 256 KiB for each thread, and texts of all sizes.
    texts = [TEXTS[i % 5] * (i % 97) for i in range(3000)] + [TEXTS[2] * 20000, ""]
    ids, offsets = gpt2.encode_batch(texts, threads=1)
    for threads in (None, 2, 3, 16):
        again, ends = gpt2.encode_batch(texts, threads=threads)
        np.testing.assert_array_equal(again, ids)
        np.testing.assert_array_equal(ends, offsets)
    with pytest.raises(millrace.ConfigError, match="threads is 0"):
        gpt2.encode_batch(texts, threads=0)


def test_a_cache_changes_nothing_but_time(gpt2, tmp_path):
    cache = tmp_path / "cache"
    for _ in range(2):
        cached = millrace.Tokenizer.from_file(GOLDEN / "tiny_bpe/vocab.json", cache=cache)
        assert len(list(cache.iterdir())) == 1
        assert cached.fingerprint == gpt2.fingerprint
        for text in TEXTS:
            np.testing.assert_array_equal(cached.encode(text), gpt2.encode(text))
    shutil.rmtree(cache)
    again = pickle.loads(pickle.dumps(cached))
    assert again.fingerprint == gpt2.fingerprint and cache.is_dir()
    millrace.Tokenizer.from_file(GOLDEN / "tiny_bpe/vocab.json", cache=tmp_path / "no/such/folder")


def test_a_tokenizer_can_be_pickled(gpt2, tmp_path, monkeypatch):
    for name in ("vocab.json", "merges.txt"):
        shutil.copy(GOLDEN / "tiny_bpe" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    first = millrace.Tokenizer.from_file("vocab.json", eod_token="e")
    pickled = pickle.dumps(first)
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    assert (again.fingerprint, again.eod) == (first.fingerprint, gpt2.encode("e")[0])
    np.testing.assert_array_equal(again.encode(TEXTS[2]), gpt2.encode(TEXTS[2]))
    merges = tmp_path / "merges.txt"
    merges.write_text("\n".join(merges.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(millrace.ConfigError, match="not the tokenizer that was pickled"):
        pickle.loads(pickled)
    merges.unlink()
    with pytest.raises(millrace.IOError, match=str(merges)):
        pickle.loads(pickled)


def test_threads(gpt2):
    expected = gpt2.encode(TEXTS[2] * 50)
    wrong = []

    def work():
        for _ in range(50):
            if not np.array_equal(gpt2.encode(TEXTS[2] * 50), expected):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_errors(gpt2, tmp_path):
    with pytest.raises(millrace.ConfigError, match="lone surrogate"):
        gpt2.encode("\ud800")
    with pytest.raises(TypeError):
        gpt2.encode(b"bytes")
    with pytest.raises(TypeError, match="text 1 is not a str"):
        gpt2.encode_batch(["a", 3])
    with pytest.raises(millrace.ConfigError, match="is not a folder"):
        millrace.Tokenizer.from_folder("meta-llama/Llama-3")
    with pytest.raises(millrace.ConfigError, match="does not tell the type"):
        millrace.Tokenizer.from_file(tmp_path / "x.txt")
    with pytest.raises(millrace.IOError):
        millrace.Tokenizer.from_file(tmp_path / "tokenizer.json")


def test_wrong_types(gpt2):
    with pytest.raises(TypeError, match="texts is one text"):
        gpt2.encode_batch("hello")
    ids, offsets = gpt2.encode_batch(text for text in TEXTS)
    np.testing.assert_array_equal(ids, gpt2.encode_batch(TEXTS)[0])
    for wrong in ([1.7], "12"):
        with pytest.raises(TypeError, match="ids are no integers"):
            gpt2.decode(wrong)
    assert gpt2.decode([]) == ""


def test_decode_each_gives_the_bytes_of_each_id(gpt2):
    ids = gpt2.encode("a \u65e5\u672c \U0001f434")
    each = gpt2.decode_each(ids)
    assert len(each) == len(ids) and all(type(text) is bytes for text in each)
    assert b"".join(each).decode() == "a \u65e5\u672c \U0001f434"
    assert any(not text.isascii() and text.decode(errors="replace") == "\ufffd" for text in each)  # half a character
    assert gpt2.decode_each([]) == []
    with pytest.raises(TypeError, match="no integers"):
        gpt2.decode_each([0.5])


def test_eod(gpt2):
    try:
        eod = gpt2.eod
    except millrace.ConfigError as e:
        assert "eod" in str(e) or "end-of-document" in str(e)
    else:
        assert 0 <= eod < gpt2.vocab_size
    assert len(gpt2.fingerprint) == 64


def test_an_id_of_more_than_64_bits(gpt2):
    with pytest.raises(millrace.ConfigError, match="an id is 9223372036854775808"):
        gpt2.decode(np.array([2**63], np.uint64))
