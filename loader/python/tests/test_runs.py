# SPDX-License-Identifier: Apache-2.0
import pathlib
import pickle

import millrace
import numpy as np
import pytest
from conftest import random_documents, write_dataset


def megatron_samples(documents, length, seed, samples):
    """All samples of a dataset in Megatron's order, as its GPTDataset builds them."""
    sizes = [len(d) for d in documents]
    per_epoch = sum(sizes)
    epochs = 1
    while samples is not None and epochs * per_epoch - 1 < samples * length:
        epochs += 1
    separate = False
    if epochs > 1:
        before = ((epochs - 1) * per_epoch - 1) // length
        in_last = samples - before
        separate = in_last < int(0.80 * ((per_epoch - 1) // length))
    random = np.random.RandomState(seed)

    def shuffled(count):
        order = np.tile(np.arange(len(documents), dtype=np.int32), count)
        random.shuffle(order)
        return order

    order = shuffled(epochs) if not separate else np.concatenate([shuffled(epochs - 1), shuffled(1)])
    stream = np.concatenate([documents[d] for d in order])
    total = (epochs * per_epoch - 1) // length
    rows = [stream[i * length:(i + 1) * length + 1] for i in range(total)]
    first = ((epochs - 1) * per_epoch - 1) // length if separate else total
    index = np.arange(first, dtype=np.uint32)
    random.shuffle(index)
    last = np.arange(first, total, dtype=np.uint32)
    random.shuffle(last)
    return [rows[i] for i in np.concatenate([index, last])]


@pytest.mark.parametrize("samples", [None, 10, 60, 200, 333])
@pytest.mark.parametrize("seed", [0, 1234, 2**32 - 1])
def test_order_is_megatrons(prefix, documents, samples, seed):
    length = 32
    run = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=length, seed=seed, train_samples=samples)
    expected = megatron_samples(documents, length, seed, samples)
    assert len(run) == len(expected)
    for k, row in enumerate(expected):
        sample = run[k]
        np.testing.assert_array_equal(sample["tokens"], row[:-1])
        np.testing.assert_array_equal(sample["labels"], row[1:])
        np.testing.assert_array_equal(sample["loss_mask"], np.ones(length, np.float32))
        np.testing.assert_array_equal(sample["position_ids"], np.arange(length))
    assert {k: v.dtype.name for k, v in run[0].items()} == {
        "tokens": "int64", "labels": "int64", "loss_mask": "float32", "position_ids": "int64"}


def test_eod_and_pad(prefix):
    plain = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=64, train_samples=40)
    rules = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=64, train_samples=40, eod_id=0, pad_id=9,
                                 reset_position_ids=True, eod_mask_loss=True)
    for k in range(40):
        tokens, labels = plain[k]["tokens"], plain[k]["labels"]
        sample = rules[k]
        np.testing.assert_array_equal(sample["tokens"], np.where(tokens == 9, 0, tokens))
        np.testing.assert_array_equal(sample["labels"], np.where(labels == 9, 0, labels))
        np.testing.assert_array_equal(sample["loss_mask"], ~((labels == 9) | (tokens == 0)))
        position, expected = 0, []
        for token in tokens:
            expected.append(position)
            position = 0 if token == 0 else position + 1
        np.testing.assert_array_equal(sample["position_ids"], expected)


def test_labels_of_hugging_face(prefix):
    options = dict(data_path=[prefix], split="1", seq_length=48, train_samples=20, eod_id=0, eod_mask_loss=True)
    megatron = millrace.MegatronRun(**options)
    ours = millrace.MegatronRun(**options, names="hf")
    for k in range(20):
        theirs, sample = megatron[k], ours[k]
        assert set(sample) == {"input_ids", "labels", "loss_mask", "position_ids"}
        np.testing.assert_array_equal(sample["input_ids"], theirs["tokens"])
        # The model compares the logits of position i with labels[i + 1].
        counted = sample["labels"][1:]
        np.testing.assert_array_equal(counted, np.where(theirs["loss_mask"][:-1] == 0, -100, theirs["labels"][:-1]))
        assert sample["labels"][0] == theirs["tokens"][0]


def test_cu_seqlens_are_document_boundaries(prefix, documents):
    run = millrace.InstantRun(data_path=[prefix], seq_length=50, seed=3, train_samples=30,
                              fields=("tokens", "cu_seqlens", "max_seqlen"))
    for k in range(30):
        sample = run[k]
        ends = np.flatnonzero(sample["tokens"] == 0) + 1  # each document ends with id 0
        expected = np.unique(np.concatenate([[0], ends, [50]]))
        np.testing.assert_array_equal(sample["cu_seqlens"], expected)
        assert sample["cu_seqlens"].dtype == np.int32
        assert sample["max_seqlen"] == np.diff(expected).max()


def test_an_instant_epoch_serves_every_window_once(prefix, documents):
    stream = np.concatenate(documents)
    length = 16
    windows = (len(stream) - 1) // length
    run = millrace.InstantRun(data_path=[prefix], seq_length=length, seed=5)
    with pytest.raises(TypeError, match="train_samples"):
        len(run)
    served = [run[k] for k in range(windows)]
    starts = []
    for sample in served:
        at = [i for i in range(len(stream) - length) if np.array_equal(stream[i:i + length], sample["tokens"])]
        starts.append(at[0])
    gaps = np.diff(sorted(starts))
    assert len(set(starts)) == windows and (gaps == length).all()
    assert [run[k]["tokens"].tolist() for k in range(5)] != [served[k]["labels"].tolist() for k in range(5)]


def test_packed_rows_are_whole_documents(prefix, documents):
    run = millrace.InstantRun(data_path=[prefix], seq_length=128, seed=1, train_samples=25, packing="best_fit",
                              fields=("tokens", "labels", "loss_mask", "position_ids", "cu_seqlens"))
    known = {tuple(d) for d in documents}
    for k in range(25):
        sample = run[k]
        for begin, end in zip(sample["cu_seqlens"][:-1], sample["cu_seqlens"][1:]):
            document = sample["tokens"][begin:end]
            if sample["loss_mask"][begin:end].any():
                real = int(np.flatnonzero(document == 0)[0]) + 1
                assert tuple(document[:real]) in known
                np.testing.assert_array_equal(sample["position_ids"][begin:begin + real], np.arange(real))
                np.testing.assert_array_equal(sample["labels"][begin:begin + real - 1], document[1:real])


@pytest.mark.parametrize("packing", ["best_fit", "first_fit_decreasing", "first_fit_shuffle",
                                     "modified_first_fit_decreasing", "one_per_row"])
def test_cu_seqlens_without_padding(prefix, packing):
    run = millrace.InstantRun(data_path=[prefix], seq_length=128, seed=1, train_samples=20, packing=packing,
                              pad_documents_to=8, leave_out_overlong=packing != "best_fit",
                              fields=("tokens", "cu_seqlens", "cu_seqlens_padded", "max_seqlen"))
    loader = millrace.Loader(run, micro_batch_size=2, fields=("tokens", "cu_seqlens", "cu_seqlens_padded", "max_seqlen"))
    padding = 0
    for k, batch in enumerate(loader):
        joined, real = batch["cu_seqlens_padded"], batch["cu_seqlens"]
        assert len(joined) == len(real) and joined[-1] == 256 and (joined % 8 == 0).all()
        assert batch["max_seqlen"] == np.diff(joined).max()
        tokens = batch["tokens"].reshape(-1)
        for begin, end, length in zip(joined, joined[1:], np.diff(real)):
            assert 0 < length <= end - begin and tokens[begin:begin + length - 1].all()  # a document ends with 0
            assert not tokens[begin + length:end].any()
            padding += end - begin - length
        samples = [run[2 * k], run[2 * k + 1]]
        np.testing.assert_array_equal(joined, np.concatenate([samples[0]["cu_seqlens_padded"],
                                                              samples[1]["cu_seqlens_padded"][1:] + 128]))
        lengths = np.concatenate([np.diff(sample["cu_seqlens"]) for sample in samples])
        np.testing.assert_array_equal(real, np.concatenate([[0], np.cumsum(lengths)]))
    assert padding > 0


@pytest.mark.parametrize("pad", [1, 4])
def test_last_tokens_are_labels(prefix, documents, pad):
    run = millrace.InstantRun(data_path=[prefix], seq_length=128, seed=3, train_samples=20, packing="first_fit_shuffle",
                              pad_documents_to=pad, leave_out_overlong=True, last_token_as_label=True,
                              fields=("tokens", "labels", "loss_mask", "position_ids", "cu_seqlens", "cu_seqlens_padded"))
    known = {tuple(d) for d in documents}
    batches = iter(millrace.Loader(run, micro_batch_size=1, fields=("tokens", "labels", "loss_mask")))
    for k in range(20):
        sample = run[k]
        padded, exact = sample["cu_seqlens_padded"], np.diff(sample["cu_seqlens"])
        assert padded[-1] == 128
        for begin, length in zip(padded, exact):
            if length == 0:  # padding
                assert not sample["loss_mask"][begin:].any()
                continue
            place = slice(begin, begin + length)
            assert (*sample["tokens"][place], sample["labels"][begin + length - 1]) in known
            np.testing.assert_array_equal(sample["labels"][place][:-1], sample["tokens"][place][1:])
            np.testing.assert_array_equal(sample["position_ids"][place], np.arange(length))
        assert sample["loss_mask"].sum() == exact.sum()
        batch = next(batches)
        for name in ("tokens", "labels", "loss_mask"):
            np.testing.assert_array_equal(batch[name][0], sample[name])


def test_last_tokens_are_labels_where_documents_are_whole(prefix):
    with pytest.raises(millrace.ConfigError, match="last_token_as_label requires packing"):
        millrace.InstantRun(data_path=[prefix], seq_length=128, packing="best_fit", last_token_as_label=True)
    with pytest.raises(millrace.ConfigError, match="last label of a document is not among them"):
        millrace.InstantRun(data_path=[prefix], seq_length=128, packing="one_per_row", leave_out_overlong=True,
                            last_token_as_label=True, names="hf")


@pytest.mark.parametrize("packing", ["best_fit", "first_fit_shuffle"])
def test_packing_reports_its_padding(prefix, documents, packing):
    longest = max(map(len, documents))
    length = longest if packing == "best_fit" else longest - 1
    run = millrace.InstantRun(data_path=[prefix], seq_length=length, packing=packing,
                              leave_out_overlong=packing != "best_fit", fields=("tokens", "cu_seqlens"))
    (report,) = run.packing_report()
    kept = [len(d) for d in documents if len(d) <= length]
    assert report["left_out"] == len(documents) - len(kept)
    assert report["tokens"] == sum(kept)
    assert report["rows"] * length == report["tokens"] + report["padding"]
    assert millrace.InstantRun(data_path=[prefix], seq_length=16).packing_report() == []


def test_packing_leaves_out_what_it_may(prefix, documents):
    longest = max(map(len, documents))
    whole = dict(data_path=[prefix], seq_length=longest, train_samples=1)
    millrace.InstantRun(packing="first_fit_shuffle", **whole)
    with pytest.raises(millrace.ConfigError, match="longer than a row of .*leave_out_overlong"):
        millrace.InstantRun(packing="first_fit_shuffle", **dict(whole, seq_length=longest - 1))
    millrace.InstantRun(packing="first_fit_shuffle", leave_out_overlong=True, **dict(whole, seq_length=longest - 1))
    with pytest.raises(millrace.ConfigError, match="leave_out_overlong requires packing"):
        millrace.InstantRun(packing="best_fit", leave_out_overlong=True, **whole)
    with pytest.raises(millrace.ConfigError, match="packing is 'worst', expected 'none', 'best_fit', .* or 'one_per_row'"):
        millrace.InstantRun(packing="worst", **whole)
    with pytest.raises(millrace.ConfigError, match="cu_seqlens_padded is true, but the rows are not packed"):
        millrace.Loader(millrace.InstantRun(**whole), micro_batch_size=1, fields=("cu_seqlens_padded",))
    with pytest.raises(millrace.ConfigError, match="cu_seqlens_padded"):
        millrace.InstantRun(fields=("cu_seqlens_padded",), **whole)[0]


def test_blends(tmp_path):
    sources = [write_dataset(tmp_path / f"d{i}", random_documents(i, dtype=dtype), dtype)
               for i, dtype in enumerate(["uint16", "int32"])]
    flat = millrace.MegatronRun(data_path=["0.7", sources[0], 0.3, sources[1]], split="1", seq_length=32,
                                train_samples=100)
    pair = millrace.MegatronRun(blend=(sources, [0.7, 0.3]), split="1", seq_length=32, train_samples=100)
    assert len(flat) >= 100 and flat.prefixes == sources
    for k in range(100):
        np.testing.assert_array_equal(flat[k]["tokens"], pair[k]["tokens"])
    whole = millrace.MegatronRun(blend=(sources, None), split="1", seq_length=32)
    singles = [len(millrace.MegatronRun(data_path=[s], split="1", seq_length=32)) for s in sources]
    assert len(whole) == sum(singles)


def test_a_schedule_changes_the_blend(tmp_path):
    sources = [write_dataset(tmp_path / f"d{i}", [np.full(4000, i + 1)]) for i in range(2)]
    run = millrace.InstantRun(data_path=sources, seq_length=8, train_samples=80, global_batch_size=4,
                              schedule=[(0, [1, 0]), (10, [0, 1])])
    assert [int(run[k]["tokens"][0]) for k in range(80)] == [1] * 40 + [2] * 40


def test_caches_are_written_once(tmp_path, prefix):
    options = dict(data_path=[prefix], split="1", seq_length=32, train_samples=50, data_cache_path=tmp_path / "cache")
    first = millrace.MegatronRun(**options)
    files = sorted((tmp_path / "cache").iterdir())
    assert len(files) == 4
    times = [f.stat().st_mtime_ns for f in files]
    again = millrace.MegatronRun(**options)
    assert times == [f.stat().st_mtime_ns for f in sorted((tmp_path / "cache").iterdir())]
    plain = millrace.MegatronRun(**dict(options, data_cache_path=None))
    for k in range(50):
        np.testing.assert_array_equal(first[k]["tokens"], plain[k]["tokens"])
        np.testing.assert_array_equal(again[k]["tokens"], plain[k]["tokens"])


def test_runs_can_be_pickled_and_indexed(prefix):
    run = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=32, train_samples=50)
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again[7]["tokens"], run[7]["tokens"])
    np.testing.assert_array_equal(run[-1]["tokens"], run[len(run) - 1]["tokens"])
    assert repr(run) == repr(again) and "seq_length=32" in repr(run)
    with pytest.raises(IndexError, match="sample 1000 of a run of"):
        run[1000]


def test_weights_of_numpy(prefix):
    plain = millrace.MegatronRun(data_path=[0.3, prefix, 0.7, prefix], split="1", seq_length=16, train_samples=40)
    for weights in (np.float64([0.3, 0.7]), [np.float64(0.3), np.float64(0.7)]):
        run = millrace.MegatronRun(data_path=[weights[0], prefix, weights[1], prefix], split="1", seq_length=16,
                                   train_samples=40)
        assert repr(run) == repr(plain)
        blended = millrace.MegatronRun(blend=([prefix, prefix], weights), split="1", seq_length=16, train_samples=40)
        for k in range(40):
            np.testing.assert_array_equal(run[k]["tokens"], plain[k]["tokens"])
            np.testing.assert_array_equal(blended[k]["tokens"], plain[k]["tokens"])


def test_a_run_does_not_change_with_its_arguments(tmp_path, prefix):
    other = write_dataset(tmp_path / "other", [[1] * 5000])
    given = [prefix]
    run = millrace.InstantRun(data_path=given, seq_length=16)
    single = millrace.InstantRun(data_path=pathlib.Path(prefix), seq_length=16)
    listed = millrace.InstantRun(data_path=(each for each in [prefix]), seq_length=16)
    given[0] = other
    for same in (pickle.loads(pickle.dumps(run)), single, pickle.loads(pickle.dumps(listed))):
        np.testing.assert_array_equal(same[5]["tokens"], run[5]["tokens"])
        assert repr(same) == repr(run)


@pytest.mark.parametrize(("options", "message"), [
    (dict(data_path=3), "data_path is 3, expected a list of prefixes"),
    (dict(data_path=b"a"), "data_path is b'a', expected a list of prefixes"),
    (dict(data_path=[b"a"]), "an element of data_path is b'a', expected a path"),
    (dict(data_path=[True, "a"]), "True in data_path is not a number"),
    (dict(blend=["a"]), r"blend is \['a'\], expected \(prefixes, weights\)"),
    (dict(blend=5), "blend is 5"),
    (dict(blend=(["a"], 3)), "the weights of blend are 3"),
    (dict(data_path=["a"], seq_length="8"), "seq_length is '8', expected an int"),
    (dict(data_path=["a"], seed=1.5), "seed is 1.5, expected an int"),
    (dict(data_path=["a"], split=[1]), r"split is \[1\], expected a str"),
    (dict(data_path=["a"], eod_mask_loss="yes"), "eod_mask_loss is 'yes', expected True or False"),
    (dict(data_path=["a"], fields="tokens"), "fields is 'tokens', expected a list of strings"),
    (dict(data_path=["a"], data_cache_path=3), "data_cache_path is 3, expected a path"),
])
def test_wrong_types(options, message):
    with pytest.raises(TypeError, match=message):
        millrace.MegatronRun(**{"seq_length": 8, **options})


@pytest.mark.parametrize("schedule", [3, "x", [3], [(0,)], [(0, 1)], [("a", [1])], [(0, ["x"])]])
def test_wrong_schedules(prefix, schedule):
    with pytest.raises(TypeError, match="schedule"):
        millrace.InstantRun(data_path=[prefix], seq_length=8, schedule=schedule)


@pytest.mark.parametrize(("options", "message"), [
    (dict(), "give either data_path"),
    (dict(data_path=["a"], blend=(["a"], None)), "give either data_path"),
    (dict(data_path=["{}"], seq_length=0), "seq_length is 0, expected 1 to"),
    (dict(data_path=["{}"], seed=2**32), "seed is 4294967296, expected 0 to 4294967295"),
    (dict(data_path=["{}"], part="all"), "part is 'all', expected 'train', 'valid' or 'test'"),
    (dict(data_path=["{}"], split="x"), "split"),
    (dict(data_path=["1", "{}", "2", "{}"]), "train_samples is required"),
    (dict(data_path=["{}"], train_samples=-1), "train_samples is -1, expected 0 or more"),
    (dict(data_path=["{}"], train_samples=2**40), "train_samples is 1099511627776: .* take [0-9]+ GB of memory"),
    (dict(data_path=["1", "{}", "2", "{}"], train_samples=2**40), "take [0-9]+ GB of memory, and [0-9]+ GB are"),
    (dict(data_path=["{}"], eod_mask_loss=True), "eod_mask_loss is True, so eod_id is required"),
    (dict(data_path=["{}"], fields=["token"]), "fields has 'token', expected 'tokens'"),
    (dict(data_path=["{}"], names="x"), "names is 'x', expected 'megatron' or 'hf'"),
    (dict(blend=(["{}", "{}"], [1])), "2 prefixes and 1 weights"),
    (dict(blend=(["{}"], [float("nan")])), "a weight of blend is nan"),
])
def test_refusals(prefix, options, message):
    def filled(value):
        if isinstance(value, str):
            return value.replace("{}", prefix)
        if isinstance(value, (list, tuple)):
            return type(value)(filled(each) for each in value)
        return value
    arguments = {"seq_length": 16, **{key: filled(value) for key, value in options.items()}}
    with pytest.raises(millrace.ConfigError, match=message):
        millrace.MegatronRun(**arguments)
