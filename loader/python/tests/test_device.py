# SPDX-License-Identifier: Apache-2.0
"""The loader on a CUDA device, in a build whose CUDA runtime is made of host threads.

scripts/test python makes that build (MILLRACE_PYTHON_ON_HOST_RUNTIME). Device memory is host memory there, so the
tests read the arrays at the addresses that DLPack gives.
"""
import ctypes
import gc
import os

import millrace
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(os.environ.get("MILLRACE_ON_HOST_RUNTIME") != "1",
                                reason="this build has another CUDA runtime, or none")
FIELDS = ("tokens", "labels", "loss_mask", "position_ids", "cu_seqlens", "max_seqlen")


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


def pointer(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


@pytest.fixture(scope="module")
def runtime():
    return ctypes.CDLL(millrace._core.__file__)


@pytest.fixture
def read(runtime):
    """Waits for the default stream, and copies an array."""
    def copy_of(array, **options):
        capsule = array.__dlpack__(**options)
        assert runtime.cudaStreamSynchronize(None) == 0
        if options.get("max_version"):
            tensor = DLManagedTensorVersioned.from_address(pointer(capsule, b"dltensor_versioned")).tensor
        else:
            tensor = DLTensor.from_address(pointer(capsule, b"dltensor"))
        assert (tensor.device_type, tensor.device_id) == array.__dlpack_device__()
        shape = [tensor.shape[i] for i in range(tensor.ndim)]
        dtype = np.dtype({0: f"i{tensor.bits // 8}", 2: f"f{tensor.bits // 8}"}[tensor.code])
        count = int(np.prod(shape))
        data = (ctypes.c_char * (count * dtype.itemsize)).from_address(tensor.data)
        return np.frombuffer(bytes(data), dtype).reshape(shape)
    return copy_of


@pytest.fixture
def run(prefix):
    return millrace.MegatronRun(data_path=[prefix], split="1", seq_length=32, train_samples=90, pad_id=3, eod_id=0,
                                reset_position_ids=True, eod_mask_loss=True)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 3)])
def test_arrays_are_those_of_the_host(run, read, dtype, rank, world_size):
    options = dict(micro_batch_size=4, rank=rank, world_size=world_size, fields=FIELDS, dtype=dtype)
    host = list(millrace.Loader(run, **options))
    device = millrace.Loader(run, device="cuda:0", output="dlpack", **options)
    assert device.micro_batches == len(host)
    count = 0
    for batch, expected in zip(device, host, strict=True):
        assert batch["max_seqlen"] == expected["max_seqlen"]
        for field in FIELDS[:-1]:
            assert batch[field].__dlpack_device__() == (2, 0)
            found = read(batch[field], stream=None if count % 2 else -1, max_version=(1, 0) if count % 3 else None)
            assert found.dtype == expected[field].dtype
            np.testing.assert_array_equal(found, expected[field])
        count += 1
    assert count == len(host) > 5


def test_packed_rows_have_both_cu_seqlens(prefix, read):
    run = millrace.InstantRun(data_path=[prefix], seq_length=64, train_samples=20, packing="best_fit", pad_documents_to=8)
    options = dict(micro_batch_size=4, fields=("tokens", "cu_seqlens", "cu_seqlens_padded", "max_seqlen"))
    host = list(millrace.Loader(run, **options))
    for batch, expected in zip(millrace.Loader(run, device="cuda:0", output="dlpack", **options), host, strict=True):
        assert batch["max_seqlen"] == expected["max_seqlen"]
        for field in ("tokens", "cu_seqlens", "cu_seqlens_padded"):
            np.testing.assert_array_equal(read(batch[field]), expected[field])
        assert expected["cu_seqlens"][-1] < expected["cu_seqlens_padded"][-1]


def test_kept_arrays_stay(run, read):
    loader = millrace.Loader(run, micro_batch_size=2, device="cuda", output="dlpack", max_held=5)
    expected = [batch["labels"] for batch in millrace.Loader(run, micro_batch_size=2)]
    kept = []
    for t, batch in enumerate(loader):
        kept.append((t, batch["labels"]))
        if len(kept) > 4:
            del kept[1]  # a hole, so that slots return in another order
        for number, labels in kept:
            np.testing.assert_array_equal(read(labels), expected[number])
    kept = [next(iter(millrace.Loader(run, micro_batch_size=2, device="cuda", output="dlpack")))]
    gc.collect()  # the loader is gone
    np.testing.assert_array_equal(read(kept[0]["labels"]), expected[0])


def test_too_many_kept_batches(run, read):
    loader = millrace.Loader(run, micro_batch_size=2, device="cuda", output="dlpack", max_held=1, look_ahead=1)
    kept = []
    with pytest.raises(millrace.ConfigError, match="held"):
        for batch in loader:
            kept.append(batch)
    assert len(kept) >= 1
    served, batch = len(kept), None
    kept.clear()
    expected = list(millrace.Loader(run, micro_batch_size=2))[served]["tokens"]
    np.testing.assert_array_equal(read(next(loader)["tokens"]), expected)  # the caller has made room


def test_state_moves_between_host_and_device(run, read):
    whole = [batch["tokens"] for batch in millrace.Loader(run, micro_batch_size=3)]
    device = millrace.Loader(run, micro_batch_size=3, device="cuda", output="dlpack")
    for _ in range(7):
        next(device)
    state = device.state_dict()
    assert device.consumed_samples == 21
    host = millrace.Loader(run, micro_batch_size=3)
    host.load_state_dict(state)
    np.testing.assert_array_equal(next(host)["tokens"], whole[7])
    again = millrace.Loader(run, micro_batch_size=3, device="cuda", output="dlpack")
    again.load_state_dict(host.state_dict())
    np.testing.assert_array_equal(read(next(again)["tokens"]), whole[8])


@pytest.mark.parametrize(("options", "error", "message"), [
    (dict(output="numpy"), millrace.ConfigError, "output='numpy' is for device='cpu'"),
    (dict(dtype="source"), millrace.ConfigError, "dtype='source' is for device='cpu'"),
    (dict(names="hf"), millrace.ConfigError, "names='hf' with labels"),
    (dict(reuse=True), millrace.ConfigError, "reuse=True"),
    (dict(device="cuda:9"), millrace.ConfigError, "device is 9"),
    (dict(device="cuda:x"), millrace.ConfigError, "expected 'cpu' or 'cuda:N'"),
    (dict(micro_batch_size="2"), TypeError, "micro_batch_size is '2'"),
])
def test_refusals(run, options, error, message):
    with pytest.raises(error, match=message):
        millrace.Loader(run, **{"micro_batch_size": 2, "device": "cuda:0", "output": "dlpack", **options})


def test_arrays_do_not_move(run):
    tokens = next(millrace.Loader(run, micro_batch_size=2, device="cuda", output="dlpack"))["tokens"]
    with pytest.raises(BufferError):
        tokens.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError):
        tokens.__dlpack__(copy=True)
    with pytest.raises(millrace.ConfigError, match="stream"):
        tokens.__dlpack__(stream=0)
