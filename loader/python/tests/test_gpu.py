# SPDX-License-Identifier: Apache-2.0
"""The loader on a GPU, with torch and JAX. Skipped where torch finds no GPU."""
import gc
import random
import sys

import millrace
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not (millrace.has_cuda and torch.cuda.is_available()),
                                reason="this build has no CUDA, or there is no GPU")
FIELDS = ("tokens", "labels", "loss_mask", "position_ids", "cu_seqlens", "max_seqlen")


@pytest.fixture
def run(prefix):
    return millrace.MegatronRun(data_path=[prefix], split="1", seq_length=32, train_samples=600, pad_id=3, eod_id=0,
                                reset_position_ids=True, eod_mask_loss=True)


def on_device(run, **options):
    return millrace.Loader(run, **{"device": "cuda:0", "output": "torch", "micro_batch_size": 4, **options})


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 3)])
def test_tensors_are_those_of_the_host(run, dtype, rank, world_size):
    options = dict(micro_batch_size=4, rank=rank, world_size=world_size, fields=FIELDS, dtype=dtype)
    count = 0
    for batch, expected in zip(on_device(run, **options), millrace.Loader(run, **options), strict=True):
        assert batch["max_seqlen"] == expected["max_seqlen"]
        for field in FIELDS[:-1]:
            assert batch[field].device == torch.device("cuda:0")
            found = batch[field].cpu().numpy()
            assert found.dtype == expected[field].dtype
            np.testing.assert_array_equal(found, expected[field])
        count += 1
    assert count >= 600 // 4 // world_size


def test_work_on_the_current_stream_waits_for_its_batch(run):
    """The work is late, so it reads a batch long after next() returned the ones behind it."""
    expected = [batch["labels"].sum() for batch in millrace.Loader(run, micro_batch_size=4)]
    stream, sums = torch.cuda.Stream(), []
    with torch.cuda.stream(stream):
        for batch in on_device(run):
            torch.cuda._sleep(500_000)
            sums.append(batch["labels"].sum())
            del batch
    stream.synchronize()
    assert [int(each) for each in sums] == expected


def test_work_on_a_second_stream(run):
    expected = [batch["tokens"] for batch in millrace.Loader(run, micro_batch_size=4)]
    first, second, copies = torch.cuda.Stream(), torch.cuda.Stream(), []
    with torch.cuda.stream(first):
        for batch in on_device(run):
            second.wait_stream(first)
            with torch.cuda.stream(second):
                torch.cuda._sleep(300_000)
                copies.append(batch["tokens"].clone())
            first.wait_stream(second)  # before the batch is gone
    torch.cuda.synchronize()
    for found, tokens in zip(copies, expected, strict=True):
        np.testing.assert_array_equal(found.cpu().numpy(), tokens)


def test_kept_tensors_stay(run):
    expected = [batch["labels"] for batch in millrace.Loader(run, micro_batch_size=2)]
    pick, kept = random.Random(1), []
    for t, batch in enumerate(on_device(run, micro_batch_size=2, max_held=6)):
        kept.append((t, batch["labels"][0]))  # a slice keeps its batch
        if len(kept) == 6:
            del kept[pick.randrange(6)]
        if t % 10 == 0:
            for number, labels in kept:
                np.testing.assert_array_equal(labels.cpu().numpy(), expected[number][0])
    del batch
    gc.collect()
    for number, labels in kept:  # the loader is gone
        np.testing.assert_array_equal(labels.cpu().numpy(), expected[number][0])


def test_states_move_between_host_and_device(run):
    whole = [batch["tokens"] for batch in millrace.Loader(run, micro_batch_size=4)]
    device = on_device(run)
    for _ in range(7):
        next(device)
    host = millrace.Loader(run, micro_batch_size=4)
    host.load_state_dict(device.state_dict())
    np.testing.assert_array_equal(next(host)["tokens"], whole[7])
    again = on_device(run)
    again.load_state_dict(host.state_dict())
    np.testing.assert_array_equal(next(again)["tokens"].cpu().numpy(), whole[8])


def test_a_captured_graph_reads_copied_batches(run):
    """A CUDA graph reads fixed addresses, so each batch is copied to them."""
    expected = [int((batch["tokens"] * 3).sum()) for batch in millrace.Loader(run, micro_batch_size=4)]
    fixed = torch.zeros((4, 32), dtype=torch.int64, device="cuda:0")
    graph = torch.cuda.CUDAGraph()
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        (fixed * 3).sum()
    torch.cuda.current_stream().wait_stream(warm)
    with torch.cuda.graph(graph):
        result = (fixed * 3).sum()
    found = []
    for batch in on_device(run):
        fixed.copy_(batch["tokens"])
        graph.replay()
        found.append(int(result))
    assert found == expected


def test_capture_beside_a_working_loader(run):
    """The loader's threads call CUDA all the time, which must not break a capture of another thread."""
    loader = on_device(run)
    x = torch.ones(1000, device="cuda:0")
    for _ in range(20):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = x * 2
        for _ in range(5):
            next(loader)
        graph.replay()
        assert float(y.sum()) == 2000


def test_too_many_kept_batches(run):
    loader, kept = on_device(run, max_held=1, look_ahead=1), []
    with pytest.raises(millrace.ConfigError, match="held"):
        for batch in loader:
            kept.append(batch)
    served, batch = len(kept), None
    kept.clear()
    expected = list(millrace.Loader(run, micro_batch_size=4))[served]["tokens"]
    np.testing.assert_array_equal(next(loader)["tokens"].cpu().numpy(), expected)


def test_a_device_that_is_not_there(run):
    with pytest.raises(millrace.ConfigError, match="device is 99"):
        on_device(run, device="cuda:99")


def test_a_model_trains(run):
    """The loss of a small model on the device's batches is that on the host's batches, and it falls."""
    def losses(loader):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Embedding(512, 64), torch.nn.Linear(64, 512)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        found = []
        for batch in loader:
            logits = model(batch["tokens"].cuda())
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].cuda().flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.detach())
        return torch.stack(found).tolist()

    torch.use_deterministic_algorithms(True, warn_only=True)
    device = losses(on_device(run))
    host = losses(millrace.Loader(run, micro_batch_size=4, output="torch"))
    np.testing.assert_allclose(device, host, rtol=1e-4)
    assert np.mean(device[-10:]) < np.mean(device[:10])


def test_jax(run):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax finds no GPU")
    expected = [batch["tokens"].astype(np.int32) for batch in millrace.Loader(run, micro_batch_size=4)]
    loader = on_device(run, output="dlpack", dtype="int32")
    for batch, tokens in zip(loader, expected, strict=True):
        array = jax.dlpack.from_dlpack(batch["tokens"])
        np.testing.assert_array_equal(np.asarray(array + 1), tokens + 1)


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-rs", __file__]))
