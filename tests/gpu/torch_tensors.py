#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes batches into torch as DLPack tensors, uses them on two streams, and compares their contents.

usage: torch_tensors.py [FOLDER_OF_LIBGPU_TENSORS]

Exit status: 77 without torch, or if torch finds no GPU.
"""
import ctypes
import pathlib
import sys

BATCHES, ROWS, SEQ_LEN = 300, 4, 500


def skip(why):
    print(f"torch_tensors: skipped, {why}")
    sys.exit(77)


def opened_library(folder):
    library = ctypes.CDLL(str(folder / "libgpu_tensors.so"))
    library.gpu_tensors_error.restype = ctypes.c_char_p
    library.gpu_tensors_open.restype = ctypes.c_void_p
    library.gpu_tensors_open.argtypes = [ctypes.c_int64] * 3
    library.gpu_tensors_next.argtypes = [ctypes.c_void_p, ctypes.c_void_p,
                                         ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p)]
    library.gpu_tensors_expected.restype = ctypes.POINTER(ctypes.c_int64)
    library.gpu_tensors_expected.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
    library.gpu_tensors_close.restype = None
    library.gpu_tensors_close.argtypes = [ctypes.c_void_p]
    return library


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    folder = folder if folder.is_dir() else folder.parent
    try:
        import torch
        from torch.utils.dlpack import from_dlpack
    except ImportError as e:
        skip(f"there is no torch here: {e}")
    if not torch.cuda.is_available():
        skip("torch finds no GPU")
    torch.cuda.set_device(0)
    library = opened_library(folder)
    pipe = library.gpu_tensors_open(BATCHES, ROWS, SEQ_LEN)
    if not pipe:
        sys.exit(f"torch_tensors: {library.gpu_tensors_error().decode()}")

    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype = ctypes.py_object
    new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    def tensor_of(managed):
        return from_dlpack(new_capsule(managed, b"dltensor", None))

    stream, beside = torch.cuda.Stream(), torch.cuda.Stream()
    found = []
    with torch.cuda.stream(stream):
        for _ in range(BATCHES):
            tokens_at, labels_at = ctypes.c_void_p(), ctypes.c_void_p()
            got = library.gpu_tensors_next(pipe, stream.cuda_stream, ctypes.byref(tokens_at),
                                           ctypes.byref(labels_at))
            if got != 1:
                sys.exit(f"torch_tensors: next returned {got}: {library.gpu_tensors_error().decode()}")
            tokens, labels = tensor_of(tokens_at.value), tensor_of(labels_at.value)
            if not tokens.is_cuda or tuple(tokens.shape) != (ROWS, SEQ_LEN) or tokens.dtype != torch.int64:
                sys.exit(f"torch_tensors: unexpected tensor on {tokens.device}, {tokens.shape}, {tokens.dtype}")
            beside.wait_stream(stream)
            with torch.cuda.stream(beside):
                torch.cuda._sleep(200_000)  # the second stream is late
                copy_of_labels = labels.clone()
            copy_of_tokens = tokens.clone()
            stream.wait_stream(beside)  # before the tensors, and so the batch, end
            found.append((copy_of_tokens, copy_of_labels))
            del tokens, labels
    torch.cuda.synchronize()
    if library.gpu_tensors_next(pipe, stream.cuda_stream, ctypes.byref(ctypes.c_void_p()),
                                ctypes.byref(ctypes.c_void_p())) != 0:
        sys.exit("torch_tensors: there are more batches than expected")
    for i, copies in enumerate(found):
        for field, copy in enumerate(copies):
            expected = library.gpu_tensors_expected(pipe, i, field)[:ROWS * SEQ_LEN]
            if copy.flatten().tolist() != expected:
                sys.exit(f"torch_tensors: {('tokens', 'labels')[field]} of batch {i} are wrong")
    library.gpu_tensors_close(pipe)
    print(f"torch_tensors: {BATCHES} batches are right in torch {torch.__version__}")


main()
