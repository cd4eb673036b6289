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


def test_the_state_of_the_end_begins_a_new_epoch(run):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    for workers in (0, 2):
        def make(workers=workers):
            return stateful(millrace_torch.Batches(run, micro_batch_size=4), batch_size=None, num_workers=workers)
        data = make()
        whole = [batch["tokens"].tolist() for batch in data]
        again = make()
        again.load_state_dict(data.state_dict())
        assert [batch["tokens"].tolist() for batch in again] == whole
        assert [batch["tokens"].tolist() for batch in again] == whole


class _Info:
    """What get_worker_info() returns in worker `id` of `num_workers`."""
    def __init__(self, worker, workers):
        self.id, self.num_workers = worker, workers


def test_the_state_of_a_worker_is_checked(prefix, run, monkeypatch):
    def state_of(batches, worker, workers, steps):
        monkeypatch.setattr("torch.utils.data.get_worker_info", lambda: _Info(worker, workers))
        list(itertools.islice(iter(batches), steps))
        return batches.state_dict()

    def resumed(state, run=run, workers=2, **options):
        monkeypatch.setattr("torch.utils.data.get_worker_info", lambda: _Info(0, workers))
        again = millrace_torch.Batches(run, **{"micro_batch_size": 4, **options})
        again.load_state_dict(state)
        return [batch["tokens"].tolist() for batch in again]
    whole = [batch["tokens"].tolist() for batch in millrace.Loader(run, micro_batch_size=4)]
    state = state_of(millrace_torch.Batches(run, micro_batch_size=4), 0, 2, 3)
    assert resumed(state) == resumed(state, consumed_samples=16) == whole[6::2]
    other = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=run.seq_length, train_samples=90, seed=99)
    for options, message in [(dict(run=other), "seed is"), (dict(micro_batch_size=2), "micro_batch_size is 2, but was 4"),
                             (dict(workers=3), "num_workers is 3, but was 2"),
                             (dict(world_size=2), "world_size is 2, but was 1")]:
        with pytest.raises(millrace.ConfigError, match=message):
            resumed(state, **options)
    later = state_of(millrace_torch.Batches(run, micro_batch_size=4, consumed_samples=8), 0, 2, 1)
    assert resumed(later) == whole[4::2]  # the position is that of the state, without the option


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("options", "message"), [
    (dict(micro_batch_size=0), "micro_batch_size is 0, expected 1 or more"),
    (dict(micro_batch_size=4, world_size=0), "world_size is 0, expected 1"),
    (dict(micro_batch_size=8, global_batch_size=12), "global_batch_size is 12, expected a multiple"),
])
def test_wrong_options_are_refused_with_and_without_workers(run, workers, options, message):
    with pytest.raises(millrace.ConfigError, match=message):
        list(DataLoader(millrace_torch.Batches(run, **options), batch_size=None, num_workers=workers))


def test_the_output_is_torch(run):
    with pytest.raises(millrace.ConfigError, match="output is 'numpy'"):
        millrace_torch.Batches(run, micro_batch_size=4, output="numpy")


def test_a_schedule_is_not_shared(prefix, tmp_path):
    run = millrace.InstantRun(data_path=[prefix], seq_length=16, train_samples=40, schedule=[(0, [1]), (2, [2])],
                              global_batch_size=4)
    served = list(DataLoader(millrace_torch.Batches(run, micro_batch_size=4), batch_size=None, num_workers=1))
    assert len(served) == 10
    with pytest.raises(millrace.ConfigError, match="cannot share a run with a schedule"):
        list(DataLoader(millrace_torch.Batches(run, micro_batch_size=4), batch_size=None, num_workers=2))


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
