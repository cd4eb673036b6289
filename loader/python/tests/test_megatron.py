# SPDX-License-Identifier: Apache-2.0
"""Compares runs, and the two ways into Megatron, with megatron-core itself."""
import os
import types

import millrace
import numpy as np
import pytest
from conftest import random_documents, write_dataset

torch = pytest.importorskip("torch")
pytest.importorskip("megatron.core")
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402
from millrace import megatron  # noqa: E402

PARTS = ("train", "valid", "test")
CONFIGURATIONS = int(os.environ.get("MILLRACE_CONFIGURATIONS", "60"))
PAD, EOD = 7, 0


@pytest.fixture(scope="module", autouse=True)
def helpers():
    """Megatron's own compiled loop is not part of its package for every Python."""
    from megatron.core.datasets import helpers as compiled
    assert compiled is not None


def configuration_of(random, sources):
    """Arguments of MegatronRun, without `part`. Each part has documents: Megatron does not return if one has none."""
    count = int(random.integers(1, 4))
    prefixes = [str(p) for p in random.choice(sources, count, replace=False)]
    sizes = [int(random.choice([20, 60, 150])), int(random.choice([0, 5])), int(random.choice([0, 5]))]
    given = dict(
        seq_length=int(random.choice([8, 16, 33])), seed=int(random.integers(0, 2**32)),
        split=str(random.choice(["90, 8, 2", "80,10,10", "1", "50,25,25"])),
        train_samples=sizes[0], valid_samples=sizes[1], test_samples=sizes[2], pad_id=PAD, eod_id=EOD,
        reset_position_ids=bool(random.integers(2)), eod_mask_loss=bool(random.integers(2)))
    if given["split"] == "1":
        given.update(valid_samples=0, test_samples=0)
    if count == 1 or random.integers(3) == 0:
        given["blend"] = (prefixes, None)
        if count > 1:  # the blend is exhaustive, and its size its own
            given.update(train_samples=None, valid_samples=None, test_samples=None)
    else:
        given["blend"] = (prefixes, [float(w) for w in random.uniform(0.1, 3, count)])
    return given


def theirs_of(given, cls=GPTDataset):
    tokenizer = types.SimpleNamespace(eod=EOD, pad=PAD, vocab_size=None, unique_identifiers={"class": "test"})
    config = GPTDatasetConfig(
        random_seed=given["seed"], sequence_length=given["seq_length"], blend=given["blend"], split=given["split"],
        path_to_cache=None, reset_position_ids=given["reset_position_ids"], reset_attention_mask=False,
        eod_mask_loss=given["eod_mask_loss"], create_attention_mask=False, tokenizer=tokenizer)
    sizes = [given[f"{part}_samples"] for part in PARTS]
    return BlendedMegatronDatasetBuilder(cls, sizes, lambda: True, config).build()


def sample_of(data, k):
    """Sample k as a fresh dataset of Megatron gives it. Where all samples have the same mask, Megatron keeps one, and
    each label that is the pad id leaves a zero in it for all samples that follow."""
    for each in getattr(data, "datasets", [data]):
        if hasattr(each, "masks_and_position_ids_are_cached"):
            each.masks_and_position_ids_are_cached = False
    return data[k]


def assert_equal_samples(ours, theirs, count, case):
    for k in range(count):
        expected, sample = sample_of(theirs, k), sample_of(ours, k)
        for name in ("tokens", "labels", "loss_mask", "position_ids"):
            np.testing.assert_array_equal(np.asarray(sample[name]), expected[name].numpy(), err_msg=f"{case} {k} {name}")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    return [write_dataset(folder / f"d{i}", random_documents(i, count=40 + 30 * i, dtype=dtype), dtype)
            for i, dtype in enumerate(["uint16", "int32", "uint16", "int32"])]


@pytest.mark.parametrize("seed", range(CONFIGURATIONS))
def test_samples_of_random_configurations(sources, seed):
    random = np.random.default_rng(seed)
    given = configuration_of(random, sources)
    try:
        theirs = theirs_of(given)
    except (AssertionError, IndexError, ValueError, RuntimeError, ZeroDivisionError) as problem:
        refused = 0
        for part in PARTS:
            try:
                millrace.MegatronRun(**given, part=part)
            except millrace.ConfigError:
                refused += 1
        assert refused, f"Megatron refuses ({problem!r}), and millrace does not: {given}"
        return
    for part, expected in zip(PARTS, theirs, strict=True):
        if expected is None or len(expected) == 0:
            continue
        ours = millrace.MegatronRun(**given, part=part)
        assert len(ours) == len(expected), (given, part)
        assert_equal_samples(ours, expected, len(expected), (given, part))


def test_a_part_without_documents_is_refused(sources):
    with pytest.raises(millrace.ConfigError, match="has 0 tokens"):
        millrace.MegatronRun(data_path=[sources[0]], split="969, 30, 1", part="test", seq_length=8, train_samples=9,
                             test_samples=5)


def test_most_configurations_are_compared(sources):
    """Otherwise the test above would compare nothing."""
    built = 0
    for seed in range(20):
        try:
            built += theirs_of(configuration_of(np.random.default_rng(seed), sources))[0] is not None
        except (AssertionError, IndexError, ValueError, RuntimeError, ZeroDivisionError):
            pass
    assert built >= 12


@pytest.mark.parametrize("seed", range(1000, 1012))
def test_our_gpt_dataset_in_megatrons_builder(sources, seed):
    given = configuration_of(np.random.default_rng(seed), sources)
    try:
        theirs = theirs_of(given)
    except (AssertionError, IndexError, ValueError, RuntimeError, ZeroDivisionError):
        pytest.skip("Megatron refuses this configuration")
    for part, expected, mine in zip(PARTS, theirs, theirs_of(given, megatron.GPTDataset), strict=True):
        assert (expected is None) == (mine is None), part
        if expected is None:
            continue
        assert len(mine) == len(expected)
        assert_equal_samples(mine, expected, len(expected), (given, part))


def test_external_provider(sources):
    def make_runs(sizes):
        return tuple(millrace.MegatronRun(data_path=[sources[0]], seq_length=16, split="80,10,10", part=part,
                                          **{f"{part}_samples": size}) if size else None
                     for part, size in zip(PARTS, sizes))
    iterators = []
    for rank in range(2):
        provider = megatron.external_provider(make_runs, micro_batch_size=2, data_parallel_rank=rank,
                                              data_parallel_size=2)
        assert provider.is_distributed
        train, valid, test = provider([40, 8, 0], vp_stage=None)
        assert test is None and len(train) >= 10 and len(valid) >= 2
        iterators.append(train)
    run = make_runs([40, 8, 0])[0]
    served = [[next(each) for each in iterators] for _ in range(3)]
    for t, batches in enumerate(served):
        for rank, batch in enumerate(batches):
            first = 4 * t + 2 * rank
            assert {k: v.dtype for k, v in batch.items()} == {
                "tokens": torch.int64, "labels": torch.int64, "loss_mask": torch.float32,
                "position_ids": torch.int64}
            np.testing.assert_array_equal(batch["tokens"].numpy(),
                                          np.stack([run[k]["tokens"] for k in (first, first + 1)]))
    # What --dataloader-save stores, and a provider that resumes from it.
    state = iterators[0].iterable.save_state()
    resumed = megatron.external_provider(make_runs, micro_batch_size=2, data_parallel_rank=1, data_parallel_size=2,
                                         state=state)([40, 8, 0])[0]
    np.testing.assert_array_equal(next(resumed)["tokens"].numpy(), next(iterators[1])["tokens"].numpy())
    nothing = megatron.external_provider(make_runs, micro_batch_size=2, data_parallel_rank=0, data_parallel_size=2,
                                         reads_data=False)
    assert nothing([40, 8, 0]) == (None, None, None)


def test_provider_gives_the_boundaries_of_each_row(sources):
    run = millrace.MegatronRun(data_path=[sources[0]], seq_length=48, split="1", train_samples=60,
                               fields=("tokens", "cu_seqlens", "max_seqlen"))
    train = megatron.external_provider(lambda sizes: (run, None, None), micro_batch_size=3, data_parallel_rank=1,
                                       data_parallel_size=2,
                                       fields=("tokens", "cu_seqlens", "max_seqlen"))([60, 0, 0])[0]
    several = 0
    for t, batch in enumerate(train):
        assert batch["cu_seqlens"].dtype == batch["max_seqlen"].dtype == torch.int32
        assert batch["cu_seqlens"].shape == (3, 49) and batch["max_seqlen"].shape == (3,)
        for row in range(3):
            sample = run[6 * t + 3 + row]
            expected = np.full(49, 48, np.int32)
            expected[:len(sample["cu_seqlens"])] = sample["cu_seqlens"]
            np.testing.assert_array_equal(batch["cu_seqlens"][row].numpy(), expected)
            assert batch["max_seqlen"][row] == sample["max_seqlen"]
            several += len(sample["cu_seqlens"]) > 2
    assert t > 5 and several > 10


def test_provider_gives_boundaries_without_padding(sources):
    run = millrace.InstantRun(data_path=[sources[0]], seq_length=256, train_samples=24, packing="best_fit",
                              pad_documents_to=8, fields=("cu_seqlens", "cu_seqlens_padded"))
    for fields in (("tokens", "cu_seqlens", "cu_seqlens_padded", "max_seqlen"), ("cu_seqlens_padded", "max_seqlen")):
        train = megatron.external_provider(lambda sizes: (run, None, None), micro_batch_size=3, data_parallel_rank=0,
                                           data_parallel_size=1, fields=fields)([24, 0, 0])[0]
        for t, batch in enumerate(train):
            for row in range(3):
                sample = run[3 * t + row]
                for name in set(fields) & {"cu_seqlens", "cu_seqlens_padded"}:
                    expected = np.full(257, sample[name][-1], np.int32)
                    expected[:len(sample[name])] = sample[name]
                    np.testing.assert_array_equal(batch[name][row].numpy(), expected)
                assert batch["max_seqlen"][row] == np.diff(sample["cu_seqlens_padded"]).max()
        assert t == 7


def test_provider_of_several_validation_sets(sources):
    def make_runs(sizes):
        valid = [millrace.MegatronRun(data_path=[source], seq_length=16, split="80,20", part="valid", valid_samples=None)
                 for source in sources[:2]]
        return None, valid, None
    ranks = [megatron.external_provider(make_runs, micro_batch_size=4, data_parallel_rank=rank, data_parallel_size=2,
                                        full_validation=True, rampup_batch_size=(4, 4, 100), global_batch_size=8)
             for rank in range(2)]
    valid = [provider([0, 0, 0])[1] for provider in ranks]
    for i, run in enumerate(make_runs(None)[1]):
        assert len(run) > 2
        steps = (len(run) + 1) // 2
        for _ in range(2):  # validations
            for rank in range(2):
                assert len(valid[rank][i]) == steps
                for k in range(steps):
                    tokens = next(valid[rank][i])["tokens"]
                    assert tokens.shape == (1, 16)
                    sample = 2 * k + rank if 2 * k + rank < len(run) else rank  # a rank with fewer samples starts over
                    np.testing.assert_array_equal(tokens[0].numpy(), run[sample]["tokens"])


def test_provider_asks_which_stage_reads(sources):
    run = millrace.MegatronRun(data_path=[sources[0]], seq_length=16, split="1")
    provider = megatron.external_provider(lambda sizes: (run, None, None), micro_batch_size=2, data_parallel_rank=0,
                                          data_parallel_size=1, reads_data=lambda stage: stage in (None, 0))
    assert provider([40, 0, 0], vp_stage=1) == (None, None, None)
    assert next(provider([40, 0, 0], vp_stage=0)[0])["tokens"].shape == (2, 16)
    with pytest.raises(TypeError, match="expected a run or None"):
        megatron.external_provider(lambda sizes: ([run], None, None), micro_batch_size=2, data_parallel_rank=0,
                                   data_parallel_size=1)([40, 0, 0])


def test_provider_of_boundaries_alone(sources):
    """A pipeline stage between the first and the last needs nothing else."""
    run = millrace.MegatronRun(data_path=[sources[0]], seq_length=16, split="1", train_samples=60)
    options = dict(micro_batch_size=3, data_parallel_rank=0, data_parallel_size=1)
    whole = megatron.external_provider(lambda sizes: (run, None, None), fields=("tokens", "cu_seqlens", "max_seqlen"),
                                       **options)([60, 0, 0])[0]
    alone = megatron.external_provider(lambda sizes: (run, None, None), fields=("cu_seqlens", "max_seqlen"),
                                       **options)([60, 0, 0])[0]
    count = 0
    for mine, theirs in zip(alone, whole, strict=True):
        assert torch.equal(mine["cu_seqlens"], theirs["cu_seqlens"]) and torch.equal(mine["max_seqlen"], theirs["max_seqlen"])
        count += 1
    assert count == len(run) // 3
    with pytest.raises(millrace.ConfigError, match="output is 'numpy'"):
        megatron.external_provider(lambda sizes: (run, None, None), output="numpy", **options)


def test_edits_are_those_of_the_train_part(sources):
    def runs(sizes):
        return tuple(millrace.MegatronRun(data_path=[sources[0]], seq_length=16, split="60,20,20", part=part,
                                          **{f"{part}_samples": 9}) for part in PARTS)
    for full in (False, True):
        train, valid, test = megatron.external_provider(
            runs, micro_batch_size=1, data_parallel_rank=0, data_parallel_size=1, full_validation=full,
            edits=[{"skip_samples": [2, 5], "why": "a spike"}])([9, 9, 9])
        for run, served, skipped in zip(runs(None), (train, valid, test), (3, 0, 0), strict=True):
            assert len(served) == len(run) - skipped
            rows = [next(served)["tokens"][0].tolist() for _ in range(len(served))]
            kept = [k for k in range(len(run)) if not (skipped and 2 <= k < 5)]
            assert rows == [run[k]["tokens"].tolist() for k in kept]
