# SPDX-License-Identifier: Apache-2.0
import collections
import gc
import os
import queue
import struct
import subprocess
import sys
import threading
import time

import millrace
import numpy as np
import pytest
from conftest import random_documents, write_dataset

LENGTH = 32
BATCHES = int(os.environ.get("MILLRACE_BATCHES", "500"))


@pytest.fixture
def run(prefix):
    return millrace.MegatronRun(data_path=[prefix], split="1", seq_length=LENGTH, train_samples=90)


def rows_of(run, samples, field="tokens"):
    return np.stack([run[k][field] for k in samples])


@pytest.mark.parametrize(("rank", "world_size", "size"), [(0, 1, 4), (0, 3, 4), (2, 3, 4), (1, 2, 1)])
def test_batches_are_megatrons(run, rank, world_size, size):
    """Micro-batch t of rank r has samples t * W * b + r * b, for b rows and W ranks."""
    loader = millrace.Loader(run, micro_batch_size=size, rank=rank, world_size=world_size,
                             fields=("tokens", "labels", "loss_mask", "position_ids"))
    count = len(run) // (world_size * size)
    assert loader.micro_batches == count
    batches = list(loader)
    assert len(batches) == count
    for t, batch in enumerate(batches):
        first = (t * world_size + rank) * size
        for field in ("tokens", "labels", "loss_mask", "position_ids"):
            np.testing.assert_array_equal(batch[field], rows_of(run, range(first, first + size), field))
    assert loader.consumed_samples == count * world_size * size


@pytest.mark.parametrize("dtype", ["int64", "int32", "source"])
@pytest.mark.parametrize("output", ["numpy", "dlpack"])
@pytest.mark.parametrize("reuse", [False, True])
def test_types_and_outputs(run, dtype, output, reuse):
    loader = millrace.Loader(run, micro_batch_size=4, dtype=dtype, output=output, reuse=reuse)
    expected = {"int64": np.int64, "int32": np.int32, "source": np.uint16}[dtype]
    for t, batch in enumerate(loader):
        tokens, labels = (np.from_dlpack(batch[f]) if output == "dlpack" else batch[f] for f in ("tokens", "labels"))
        assert tokens.dtype == labels.dtype == expected
        np.testing.assert_array_equal(tokens, rows_of(run, range(4 * t, 4 * t + 4)))
        np.testing.assert_array_equal(labels, rows_of(run, range(4 * t, 4 * t + 4), "labels"))


def test_the_widest_type_of_a_blend(tmp_path):
    sources = [write_dataset(tmp_path / f"d{i}", random_documents(i, dtype=dtype), dtype)
               for i, dtype in enumerate(["uint16", "int32"])]
    run = millrace.MegatronRun(blend=(sources, [1, 1]), split="1", seq_length=16, train_samples=40)
    for t, batch in enumerate(millrace.Loader(run, micro_batch_size=4, dtype="source")):
        assert batch["tokens"].dtype == np.int32
        np.testing.assert_array_equal(batch["tokens"], rows_of(run, range(4 * t, 4 * t + 4)))


def test_source_type_where_ids_are_padding(prefix):
    run = millrace.MegatronRun(data_path=[prefix], split="1", seq_length=LENGTH, train_samples=40, pad_id=9)
    for t, batch in enumerate(millrace.Loader(run, micro_batch_size=4, dtype="source")):
        assert batch["tokens"].dtype == np.uint16
        np.testing.assert_array_equal(batch["tokens"], rows_of(run, range(4 * t, 4 * t + 4)))
        np.testing.assert_array_equal(batch["labels"], rows_of(run, range(4 * t, 4 * t + 4), "labels"))


def test_all_batches_may_be_kept(run):
    kept = list(millrace.Loader(run, micro_batch_size=2))
    gc.collect()
    for t, batch in enumerate(kept):
        np.testing.assert_array_equal(batch["tokens"], rows_of(run, range(2 * t, 2 * t + 2)))


def test_a_slice_keeps_its_batch(run):
    loader = millrace.Loader(run, micro_batch_size=2, dtype="source")
    slices = [batch["tokens"][1, 5:9] for batch in loader]
    del loader
    gc.collect()
    for t, part in enumerate(slices):
        np.testing.assert_array_equal(part, run[2 * t + 1]["tokens"][5:9])


def test_more_than_may_be_kept_is_an_error(run):
    loader = millrace.Loader(run, micro_batch_size=1, max_held=3)
    kept = [next(loader) for _ in range(3)]
    with pytest.raises(millrace.ConfigError, match="max_held is 3"):
        for _ in range(20):
            kept.append(next(loader))
    del kept[0]
    gc.collect()
    served = next(loader)  # nothing was lost
    np.testing.assert_array_equal(served["tokens"], rows_of(run, [len(kept) + 1]))


def test_batches_dropped_on_other_threads(run):
    loader = millrace.Loader(run, micro_batch_size=1, max_held=8)
    for t in range(len(run)):
        batch = next(loader)
        np.testing.assert_array_equal(batch["tokens"][0], run[t]["tokens"])
        box = [batch]
        del batch
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()


def test_state_resumes_with_another_world_size(run):
    one = millrace.Loader(run, micro_batch_size=3, global_batch_size=6)
    for _ in range(8):
        next(one)
    state = one.state_dict()
    assert state["consumed_samples"] == 24 and state["order"] == "megatron"
    expected = [batch["tokens"] for batch in one]
    for world_size in (1, 2):
        loaders = [millrace.Loader(run, micro_batch_size=3, rank=r, world_size=world_size,
                                   global_batch_size=6) for r in range(world_size)]
        for loader in loaders:
            loader.load_state_dict(state)
        served = []
        for parts in zip(*loaders):
            served += [part["tokens"] for part in parts]
        for mine, theirs in zip(served, expected, strict=False):
            np.testing.assert_array_equal(mine, theirs)
        assert len(served) >= len(expected) - 1
    other = millrace.MegatronRun(data_path=run.prefixes, split="1", seq_length=LENGTH, train_samples=90, seed=1)
    loader = millrace.Loader(other, micro_batch_size=3, global_batch_size=6)
    with pytest.raises(millrace.ConfigError, match="seed"):
        loader.load_state_dict(state)
    np.testing.assert_array_equal(next(loader)["tokens"], rows_of(other, range(3)))  # unchanged


@pytest.mark.parametrize("names", ["megatron", "hf"])
def test_batch_at_is_the_batch_of_its_step(run, names):
    fields = ("tokens", "labels", "loss_mask", "position_ids", "cu_seqlens", "max_seqlen")
    loader = millrace.Loader(run, micro_batch_size=3, rank=1, world_size=2, global_batch_size=12, fields=fields,
                             names=names)
    served = list(loader)
    for t in (13, 0, 7, 13):  # in any order, and twice
        read = loader.batch_at(t // 2, t % 2)
        assert read.keys() == served[t].keys()
        for name, value in served[t].items():
            np.testing.assert_array_equal(read[name], value)
    with pytest.raises(StopIteration):  # the loader did not move
        next(loader)


def test_batch_at_follows_the_state(run):
    loader = millrace.Loader(run, micro_batch_size=2)
    for _ in range(5):
        next(loader)
    state = loader.state_dict()
    again = millrace.Loader(run, micro_batch_size=2)
    np.testing.assert_array_equal(again.batch_at(4)["tokens"], rows_of(run, [8, 9]))
    again.load_state_dict(state)
    np.testing.assert_array_equal(again.batch_at(5)["tokens"], next(again)["tokens"])
    with pytest.raises(millrace.ConfigError, match="starts at sample 10"):
        again.batch_at(4)


def test_batch_at_names_what_does_not_exist(run):
    loader = millrace.Loader(run, micro_batch_size=2, global_batch_size=4)
    with pytest.raises(millrace.ConfigError, match="micro_batch is 2, expected 0 to 1"):
        loader.batch_at(0, 2)
    with pytest.raises(millrace.ConfigError, match="is sample 400, but the run has only"):
        loader.batch_at(100)
    with pytest.raises(TypeError):
        loader.batch_at("3")


def test_consumed_samples(run):
    loader = millrace.Loader(run, micro_batch_size=2, consumed_samples=30)
    np.testing.assert_array_equal(next(loader)["tokens"], rows_of(run, [30, 31]))


def test_the_end_without_drop_last(run):
    """The last micro-batch has the samples that are left, which the first ranks get."""
    world_size = 2
    size = next(size for size in range(3, 9) if len(run) % (size * world_size))
    whole = len(run) // (size * world_size)
    for rank in range(world_size):
        batches = list(millrace.Loader(run, micro_batch_size=size, world_size=world_size, rank=rank, drop_last=False))
        rows = np.concatenate([batch["tokens"] for batch in batches])
        expected = [k for t in range(whole + 1) for k in range((t * world_size + rank) * size,
                                                               (t * world_size + rank + 1) * size) if k < len(run)]
        np.testing.assert_array_equal(rows, rows_of(run, expected))


def test_edits(run):
    loader = millrace.Loader(run, micro_batch_size=2, global_batch_size=2,
                             edits=[{"skip_samples": [4, 8], "why": "spike"}])
    served = np.concatenate([batch["tokens"] for batch in loader])
    np.testing.assert_array_equal(served, rows_of(run, [k for k in range(len(run)) if not 4 <= k < 8]))


def test_cyclic_goes_on(run):
    loader = millrace.Loader(run, micro_batch_size=4, sampler="cyclic")
    assert loader.micro_batches is None
    known = {tuple(run[k]["tokens"]) for k in range(len(run))}
    for _ in range(60):
        assert all(tuple(row) in known for row in next(loader)["tokens"])


def test_rank_of_the_environment(run, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = millrace.Loader(run, micro_batch_size=2, rank="env", world_size="env")
    np.testing.assert_array_equal(next(loader)["tokens"], rows_of(run, [2, 3]))
    assert millrace.Loader(run, micro_batch_size=2).micro_batches == len(run) // 2
    monkeypatch.delenv("RANK")
    with pytest.raises(millrace.ConfigError, match="has no RANK"):
        millrace.Loader(run, micro_batch_size=2, rank="env")


@pytest.mark.parametrize(("options", "message"), [
    (dict(micro_batch_size=0), "micro_batch_size is 0, expected 1 or more"),
    (dict(max_held=131073), "max_held is 131073, expected 1 to 131072"),
    (dict(rank=2, world_size=2), "rank is 2"),
    (dict(dtype="float32"), "dtype is 'float32', expected 'int64', 'int32' or 'source'"),
    (dict(output="jax"), "output is 'jax', expected 'numpy', 'torch' or 'dlpack'"),
    (dict(fields=("tokens", "tokens")), "fields has 'tokens' twice"),
    (dict(sampler="x"), "sampler is 'x'"),
    (dict(global_batch_size=5, micro_batch_size=2), "global_batch_size is 5, expected a multiple of 2"),
    (dict(rampup_batch_size=(1, 2)), "rampup_batch_size has 2 numbers"),
    (dict(max_held=0), "max_held is 0, expected 1"),
    (dict(device="tpu"), "device is 'tpu', expected 'cpu' or 'cuda:N'"),
    (dict(edits=[{"jump_samples": [1, 2], "why": "x"}]), "expected skip_, replay_ or block_"),
    (dict(stream=3), "stream is for a CUDA device"),
    (dict(device="cuda:99999999999"), "expected 'cpu' or 'cuda:N'"),
    (dict(names="hf", context_parallel=2), "names='hf' with labels is for whole rows"),
])
def test_refusals(run, options, message):
    with pytest.raises(millrace.ConfigError, match=message):
        millrace.Loader(run, **{"micro_batch_size": 2, **options})


@pytest.mark.parametrize(("options", "message"), [
    (dict(micro_batch_size="2"), "micro_batch_size is '2', expected an int"),
    (dict(micro_batch_size=2.0), "micro_batch_size is 2.0, expected an int"),
    (dict(fields="tokens"), "fields is 'tokens', expected a list of strings"),
    (dict(run=None), "run is None, expected a MegatronRun or an InstantRun"),
    (dict(threads="1"), "threads is '1'"),
    (dict(rank=True), "rank is True, expected an int"),
    (dict(max_held=True), "max_held is True, expected an int"),
    (dict(drop_last=1), "drop_last is 1, expected True or False"),
])
def test_wrong_types(run, options, message):
    with pytest.raises(TypeError, match=message):
        millrace.Loader(**{"run": run, "micro_batch_size": 2, **options})
    with pytest.raises(TypeError, match="allow is 'seed'"):
        loader = millrace.Loader(run, micro_batch_size=2)
        loader.load_state_dict(loader.state_dict(), allow="seed")


def test_arguments_may_be_numpys(run):
    loader = millrace.Loader(run, micro_batch_size=np.int64(2), drop_last=np.True_,
                             edits=[{"skip_samples": [np.int64(2), np.int32(4)], "why": "x"}])
    next(loader)
    state = dict(loader.state_dict(), consumed_samples=np.int64(2))
    loader.load_state_dict(state)
    np.testing.assert_array_equal(next(loader)["tokens"], rows_of(run, [4, 5]))


def test_a_rank_of_the_environment_that_is_no_number(run, monkeypatch):
    monkeypatch.setenv("RANK", "x")
    with pytest.raises(millrace.ConfigError, match="RANK is 'x', expected a number"):
        millrace.Loader(run, micro_batch_size=2, rank="env")


def test_views_that_share_memory_are_read_only(run):
    batch = next(millrace.Loader(run, micro_batch_size=2, dtype="source"))
    assert np.shares_memory(batch["tokens"], batch["labels"])
    for name in ("tokens", "labels"):
        with pytest.raises(ValueError, match="read-only"):
            batch[name][0, 0] = 1
    alone = next(millrace.Loader(run, micro_batch_size=2, dtype="source", fields=("labels",)))
    alone["labels"][0, 0] = 1


def test_samples_of_a_forked_process(run):
    """The lock of the reader may have been held by a thread that does not exist in the child."""
    stop = threading.Event()

    def read():
        while not stop.is_set():
            run[3]
    threads = [threading.Thread(target=read) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        for _ in range(40):
            child = os.fork()
            if child == 0:
                os._exit(0 if run[5]["tokens"].shape == (run.seq_length,) else 1)
            for _ in range(1500):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    break
                time.sleep(0.02)
            else:
                os.kill(child, 9)
                os.waitpid(child, 0)
                pytest.fail("the child hangs")
            assert status == 0
    finally:
        stop.set()
        for each in threads:
            each.join()


def test_more_than_1024_batches_may_be_kept(prefix):
    run = millrace.InstantRun(data_path=[prefix], seq_length=4, train_samples=3000)
    kept = [batch["tokens"] for batch in millrace.Loader(run, micro_batch_size=1)]
    assert len(kept) == 3000
    np.testing.assert_array_equal(np.concatenate(kept)[2500:], rows_of(run, range(2500, 3000)))


@pytest.mark.parametrize("reuse", [False, True])
def test_threads_take_turns(run, reuse):
    """Calls of all kinds at the same time, which must neither crash nor return a wrong batch."""
    loader = millrace.Loader(run, micro_batch_size=2, reuse=reuse, look_ahead=1)
    state, wrong, stop = loader.state_dict(), [], threading.Event()

    def call(which):
        while not stop.is_set():
            try:
                if which == 0:
                    batch = next(loader)
                    if not reuse and batch["tokens"].shape != (2, 32):
                        wrong.append(batch)
                elif which == 1:
                    loader.load_state_dict(state)
                else:
                    loader.state_dict()
            except StopIteration:
                pass
            except Exception as e:
                wrong.append(e)
    threads = [threading.Thread(target=call, args=(i % 3,)) for i in range(5)]
    for each in threads:
        each.start()
    stop.wait(1)
    stop.set()
    for each in threads:
        each.join()
    assert not wrong
    loader.load_state_dict(state)
    np.testing.assert_array_equal(next(loader)["tokens"], rows_of(run, [0, 1]))


def test_an_error_is_raised_again(prefix):
    """The end of a run that failed must not look like the end of the data."""
    run = millrace.InstantRun(data_path=[prefix], seq_length=32, train_samples=1000)
    loader = millrace.Loader(run, micro_batch_size=2)
    state = loader.state_dict()
    whole = os.path.getsize(f"{prefix}.bin")
    with open(f"{prefix}.bin", "rb") as file:
        text = file.read()
    os.truncate(f"{prefix}.bin", 10)
    raised = 0
    for _ in range(600):
        try:
            next(loader)
        except millrace.Error:
            raised += 1
        except StopIteration:
            break
    assert raised > 500
    with open(f"{prefix}.bin", "wb") as file:
        file.write(text)
    assert os.path.getsize(f"{prefix}.bin") == whole
    again = millrace.Loader(run, micro_batch_size=2)
    again.load_state_dict(state)
    assert sum(1 for _ in again) == 500


@pytest.mark.parametrize("rows", [1, 5000])
def test_a_daemon_thread_in_a_loader_does_not_abort_the_exit(prefix, rows):
    """Small batches: the thread often takes the GIL. Large ones: it mostly waits without the GIL."""
    code = f"""
import threading, time, millrace
run = millrace.InstantRun(data_path=[{prefix!r}], seq_length=100)
loader = millrace.Loader(run, micro_batch_size={rows})
threading.Thread(target=lambda: [None for batch in loader], daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(millrace.has_cuda, reason="for a build without CUDA")
def test_a_device_without_cuda_says_how_to_rebuild(run):
    with pytest.raises(millrace.CudaError, match="cmake.define.MILLRACE_CUDA=ON"):
        millrace.Loader(run, micro_batch_size=2, device="cuda:0")


def test_a_forked_process_cannot_use_a_loader(run):
    loader = millrace.Loader(run, micro_batch_size=2)
    next(loader)
    child = os.fork()
    if child == 0:
        try:
            next(loader)
        except millrace.Error as e:
            os._exit(0 if "forked" in str(e) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    next(loader)


def test_control_c_interrupts_a_wait(tmp_path):
    """The first batch has 1 GiB of tokens, so `next` waits for it when the signal comes."""
    length, rows = 2**20, 128
    prefix = write_dataset(tmp_path / "zeros", [np.zeros(0)])
    os.truncate(f"{prefix}.bin", 2 * length * (rows + 1))
    with open(f"{prefix}.idx", "r+b") as idx:
        idx.seek(34)
        idx.write(struct.pack("<i", length * (rows + 1)))
    code = f"""
import signal, millrace
run = millrace.InstantRun(data_path=[{prefix!r}], seq_length={length})
loader = millrace.Loader(run, micro_batch_size={rows}, fields=["tokens"], look_ahead=1, max_held=1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    next(loader)
except KeyboardInterrupt:
    print("interrupted after", loader.consumed_samples)
print("then", len(next(loader)["tokens"]), loader.consumed_samples)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["interrupted after 0", f"then {rows} {rows}"]


def test_many_loaders_with_random_holds(run):
    """Keeps random batches for random times, ends loaders early, and drops batches on another thread."""
    random = np.random.default_rng(11)
    batches, dropped = 0, queue.SimpleQueue()
    dropper = threading.Thread(target=lambda: collections.deque(iter(dropped.get, None), maxlen=0))
    dropper.start()
    while batches < BATCHES:
        size = int(random.integers(1, 5))
        loader = millrace.Loader(run, micro_batch_size=size, max_held=256, threads=int(random.integers(1, 4)),
                                 look_ahead=int(random.integers(1, 5)))
        kept = []
        for t, batch in enumerate(loader):
            batches += 1
            kept.append((t, batch["tokens"][:, 1:]))
            del batch
            while len(kept) > random.integers(0, 8):
                number, tokens = kept.pop(int(random.integers(len(kept))))
                np.testing.assert_array_equal(tokens, rows_of(run, range(size * number, size * number + size))[:, 1:])
                if random.integers(2):
                    dropped.put((tokens,))
                del tokens
            if random.integers(40) == 0:
                break
        if random.integers(8) == 0:
            del loader
            gc.collect()
        for number, tokens in kept:  # the loader may be gone
            np.testing.assert_array_equal(tokens, rows_of(run, range(size * number, size * number + size))[:, 1:])
    dropped.put(None)
    dropper.join()


@pytest.fixture
def masked(tmp_path):
    """A dataset whose odd tokens are trained. Each document ends with id 0, and has no other 0."""
    documents = random_documents(7)
    with open(tmp_path / "d.ds", "wb") as ids, open(tmp_path / "d.ds.loss", "wb") as mask:
        stream = np.concatenate(documents)
        ids.write(stream.tobytes())
        mask.write((stream % 2).astype(np.uint8).tobytes())
    np.cumsum([len(document) for document in documents], dtype=np.uint64).tofile(tmp_path / "d.ds.index")
    done = millrace.convert(tmp_path / "d.ds", tmp_path / "new", dtype="uint16")
    return done.details["files"][0][:-len(".bin")]


@pytest.mark.parametrize("packing", [None, "none", "best_fit"])
def test_loss_masks_follow_the_mask_of_a_dataset(masked, packing):
    if packing is None:
        run = millrace.MegatronRun(data_path=[masked], split="1", seq_length=LENGTH, train_samples=40)
    else:
        run = millrace.InstantRun(data_path=[masked], seq_length=128, train_samples=12, packing=packing)
    seen = 0
    for masks in ("label", "input", "ignored"):
        loader = millrace.Loader(run, micro_batch_size=2, fields=("tokens", "labels", "loss_mask"), masks=masks)
        for k, batch in enumerate(loader):
            tokens, labels, loss = batch["tokens"], batch["labels"], batch["loss_mask"]
            if masks == "ignored":
                assert packing == "best_fit" or loss.all()
                continue
            np.testing.assert_array_equal(loss, (labels % 2 == 1) & (tokens != 0) if masks == "label" else tokens % 2 == 1)
            seen += int(loss.sum())
            if masks == "label":
                np.testing.assert_array_equal(loss[0], run[2 * k]["loss_mask"])
    assert seen > 100
    hf = next(iter(millrace.Loader(run, micro_batch_size=1, names="hf")))
    assert set(np.unique(hf["labels"][0, 1:] % 2)) <= {0, 1} and (hf["labels"][0, 1:] == -100).any()


def test_masks_has_three_names(run):
    with pytest.raises(millrace.ConfigError, match="masks is 'all', expected 'label', 'input' or 'ignored'"):
        millrace.Loader(run, micro_batch_size=1, masks="all")
