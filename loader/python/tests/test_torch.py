# SPDX-License-Identifier: Apache-2.0
import gc
import itertools

import millrace
import numpy as np
import pytest

torch = pytest.importorskip("torch")
millrace_torch = pytest.importorskip("millrace.torch")
from torch.utils.data import DataLoader  # noqa: E402

FIELDS = ("tokens", "labels", "loss_mask", "position_ids")


@pytest.fixture
def run(prefix):
    return millrace.MegatronRun(data_path=[prefix], split="1", seq_length=32, train_samples=90)


def rows_of(run, samples, field="tokens"):
    return np.stack([run[k][field] for k in samples])


@pytest.mark.parametrize("dtype", ["int64", "int32", "source"])
def test_tensors(run, dtype):
    expected = {"int64": torch.int64, "int32": torch.int32, "source": torch.uint16}[dtype]
    for t, batch in enumerate(millrace.Loader(run, micro_batch_size=4, output="torch", dtype=dtype, fields=FIELDS)):
        for field in FIELDS:
            assert isinstance(batch[field], torch.Tensor) and batch[field].shape == (4, 32)
            np.testing.assert_array_equal(batch[field].numpy(), rows_of(run, range(4 * t, 4 * t + 4), field))
        assert batch["tokens"].dtype == batch["labels"].dtype == expected
        assert batch["loss_mask"].dtype == torch.float32


def test_a_kept_slice_keeps_its_batch(run):
    """Views of tensors, and numpy arrays of them, keep the memory after the batch and the loader are gone."""
    loader = millrace.Loader(run, micro_batch_size=2, output="torch", max_held=200)
    slices, arrays = [], []
    for batch in loader:
        slices.append(batch["tokens"][1, 5:9])
        arrays.append(batch["labels"][0].numpy()[::2])
    del loader, batch
    gc.collect()
    for t, (part, array) in enumerate(zip(slices, arrays, strict=True)):
        np.testing.assert_array_equal(part.numpy(), run[2 * t + 1]["tokens"][5:9])
        np.testing.assert_array_equal(array, run[2 * t]["labels"][::2])


def test_a_slot_returns_with_its_last_tensor(run):
    loader = millrace.Loader(run, micro_batch_size=2, output="torch", max_held=1)
    batch = next(loader)
    part = batch["labels"][0, :3]
    del batch
    with pytest.raises(millrace.ConfigError, match="max_held is 1"):
        next(loader)
    del part
    np.testing.assert_array_equal(next(loader)["tokens"].numpy(), rows_of(run, [2, 3]))


def test_reuse_returns_the_same_tensors(run):
    loader = millrace.Loader(run, micro_batch_size=2, output="torch", reuse=True)
    seen = set()
    for t, batch in enumerate(loader):
        seen.add(id(batch["tokens"]))
        np.testing.assert_array_equal(batch["tokens"].numpy(), rows_of(run, [2 * t, 2 * t + 1]))
    assert len(seen) <= 4


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("drop_last", [True, False])
def test_data_loader(run, workers, drop_last):
    options = dict(micro_batch_size=4, fields=FIELDS, drop_last=drop_last)
    expected = [{field: value.copy() for field, value in batch.items()} for batch in millrace.Loader(run, **options)]
    served = list(DataLoader(millrace_torch.Batches(run, **options), batch_size=None, num_workers=workers))
    assert len(served) == len(expected)
    for mine, theirs in zip(served, expected, strict=True):
        for field in FIELDS:
            np.testing.assert_array_equal(mine[field].numpy(), theirs[field])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("more", [{}, {"global_batch_size": 36}, {"consumed_samples": 18}])
def test_data_loader_of_a_rank(run, workers, more):
    options = dict(micro_batch_size=3, rank=1, world_size=3, **more)
    expected = [batch["tokens"].copy() for batch in millrace.Loader(run, **options)]
    served = list(DataLoader(millrace_torch.Batches(run, **options), batch_size=None, num_workers=workers))
    np.testing.assert_array_equal(np.stack([b["tokens"].numpy() for b in served]), np.stack(expected))


def test_two_epochs_of_a_data_loader_are_equal(run):
    data = DataLoader(millrace_torch.Batches(run, micro_batch_size=4), batch_size=None, num_workers=2)
    first, second = ([batch["tokens"].tolist() for batch in data] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_stateful_data_loader(run, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def make():
        return stateful(millrace_torch.Batches(run, micro_batch_size=4), batch_size=None, num_workers=workers)
    whole = [batch["tokens"].tolist() for batch in make()]
    for done in (0, 1, 7, 10):
        data = make()
        iterator = iter(data)
        first = [batch["tokens"].tolist() for batch in itertools.islice(iterator, done)]
        state = data.state_dict()
        del iterator, data
        again = make()
        again.load_state_dict(state)
        assert first + [batch["tokens"].tolist() for batch in again] == whole


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_saved_right_after_a_resume_is_that_state(run, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def make():
        return stateful(millrace_torch.Batches(run, micro_batch_size=4), batch_size=None, num_workers=workers)
    whole = [batch["tokens"].tolist() for batch in make()]
    data = make()
    iterator = iter(data)
    for _ in range(6):
        next(iterator)
    state = data.state_dict()
    for begun in (False, True):
        again = make()
        again.load_state_dict(state)
        if begun:
            iterator = iter(again)
        state = again.state_dict()
    again = make()
    again.load_state_dict(state)
    assert [batch["tokens"].tolist() for batch in again] == whole[6:]
    assert [batch["tokens"].tolist() for batch in again] == whole  # the next epoch


def test_the_state_of_batches(run):
    batches = millrace_torch.Batches(run, micro_batch_size=4)
    iterator = iter(batches)
    next(iterator)
    state = batches.state_dict()
    again = millrace_torch.Batches(run, micro_batch_size=4)
    again.load_state_dict(state)
    assert again.state_dict() == state
    np.testing.assert_array_equal(next(iter(again))["tokens"].numpy(), next(iterator)["tokens"].numpy())


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_get_equally_many_batches(prefix, rank, workers):
    """Also where the last batch of a rank has no rows: a collective operation waits for all ranks."""
    run = millrace.InstantRun(data_path=[prefix], seq_length=32, train_samples=35)
    options = dict(micro_batch_size=8, rank=rank, world_size=2, drop_last=False)
    expected = [batch["tokens"].shape[0] for batch in millrace.Loader(run, **options)]
    served = DataLoader(millrace_torch.Batches(run, **options), batch_size=None, num_workers=workers)
    assert [batch["tokens"].shape[0] for batch in served] == expected == [[8, 8, 3], [8, 8, 0]][rank]


def test_batches_may_be_spawned_after_use(run):
    batches = millrace_torch.Batches(run, micro_batch_size=4)
    expected = [batch["tokens"].tolist() for batch in DataLoader(batches, batch_size=None)]
    spawned = DataLoader(batches, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    assert [batch["tokens"].tolist() for batch in spawned] == expected


def test_refusals(run):
    cyclic = millrace_torch.Batches(run, micro_batch_size=4, sampler="cyclic")
    with pytest.raises(millrace.ConfigError, match="num_workers=0"):
        next(iter(DataLoader(cyclic, batch_size=None, num_workers=2)))
    beyond = millrace_torch.Batches(run, micro_batch_size=4, consumed_samples=10**6)
    with pytest.raises(millrace.ConfigError, match="consumed_samples is 1000000"):
        next(iter(DataLoader(beyond, batch_size=None, num_workers=2)))
    with pytest.raises(millrace.ConfigError, match="reuse=True"):
        millrace_torch.Batches(run, micro_batch_size=4, reuse=True)
