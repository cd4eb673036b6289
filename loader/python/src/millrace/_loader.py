# SPDX-License-Identifier: Apache-2.0
"""The class Loader: the micro-batches of one rank."""
import json
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from millrace import _arguments as check
from millrace import _core
from millrace._errors import ConfigError, CudaError, Error
from millrace._runs import Run

REBUILD = "pip install ./loader/python -C cmake.define.MILLRACE_CUDA=ON"


class Loader:
    """Serves one rank the micro-batches of a run. Threads of C++ prepare them in advance, without the GIL.

        for batch in millrace.Loader(run, micro_batch_size=8, rank=0, world_size=2):
            step(batch["tokens"], batch["labels"])                # [8, run.seq_length]

    A batch is a dict of arrays. It may be kept as long as the caller likes: its memory is used again only
    when the last array, view or slice of it is gone. Threads take turns in its
    calls. A process that is forked from this one cannot use it. Once a call has raised an IOError, a
    FormatError or a CudaError, each `next()` raises it again, until a state is loaded.

    Args:
      run: a `MegatronRun` or an `InstantRun`.
      micro_batch_size: rows of a micro-batch.
      rank, world_size: the data-parallel rank, and the number of ranks; "env": RANK and WORLD_SIZE of the
        environment.
      global_batch_size: samples of a step. None: micro_batch_size * world_size.
      consumed_samples: samples served before, over all ranks.
      fields: "tokens", "labels", "loss_mask", "position_ids" [micro_batch_size, seq_length]; "cu_seqlens",
        the document boundaries of all rows, concatenated; "max_seqlen", an int. In packed rows, documents
        include their padding. With "cu_seqlens_padded", which has these boundaries, "cu_seqlens" does not count
        padding: the two are then what Transformer Engine calls `cu_seqlens_q_padded` and `cu_seqlens_q`.
      device: "cpu"; or "cuda" or "cuda:N" in a build with CUDA. The arrays are then on that device, complete for
        the work that is submitted to the stream afterwards. "cuda" is torch's current device for output="torch",
        else the first one.
      output: "numpy", "torch", or "dlpack" (objects with `__dlpack__`, for any other library).
      dtype: of tokens, labels and position ids: "int64"; "int32"; or "source", the type of the datasets
        (uint16 or int32), for which tokens and labels are views of the same bytes, those that were
        read (read-only as numpy arrays; do not write to these tensors), with a stride of seq_length + 1, unless the run has a pad_id or context_parallel is more than 1, or for the
        labels of names="hf". "source" is for device="cpu".
      sampler: "single", "cyclic" (Megatron's `--dataloader-type`), which never ends, or "full_validation".
      drop_last: False: also serve the incomplete global micro-batch at the end of the run.
      data_sharding: of the sampler cyclic, as in Megatron.
      threads: threads that prepare batches. None: 1.
      look_ahead: batches prepared in advance. None: 2.
      max_held: batches that the caller may keep. None: 256, or as many as take 1 GiB if those are more; on a
        CUDA device 8, for whose arrays memory is allocated at once.
      reuse: True: a batch is valid only until the next one is asked for, and its arrays are made once for
        each slot of memory, so do not change their shape in place. Batches with cu_seqlens, cu_seqlens_padded or max_seqlen, and
        an incomplete last batch, are made anew. The fastest form, for device="cpu".
      names: "megatron"; or "hf", see `MegatronRun`. Labels of "hf" are for the host, and whole rows.
      rampup_batch_size: (start, increment, samples), as in Megatron.
      edits: changes to what the run serves, as in a state: [{"skip_samples": [10, 20], "why": "loss spike"}].
      allow_several_tokenizers: True: accept datasets of different tokenizers.
      context_parallel, cp_rank: serve this context-parallel rank its chunks of each row, as Megatron cuts them;
        arrays are then [micro_batch_size, seq_length / context_parallel]. The ranks of a tensor-parallel group
        take equal loaders.
      masks: if a dataset has a `.mask`: "label": the loss counts where the label is trained, as in Megatron-LM and
        Megatron-Bridge; "input": where the input is trained, as in Megatron-LM's pull request 5017; "ignored": the
        loss counts everywhere. Labels of names="hf" follow it.
      stream: the address of the CUDA stream (`cudaStream_t`) whose work uses the batches. None: for
        output="torch" torch's current stream at each `next()`, else the default stream. A library that takes an
        array through DLPack may use it on another stream.

    Raises:
      ConfigError: an argument is out of range; or `next()` is called while `max_held` batches are kept.
      IOError, FormatError: a dataset cannot be read.
    """

    def __init__(self, run: Run, *, micro_batch_size: int, rank: "int | Literal['env']" = 0,
                 world_size: "int | Literal['env']" = 1, global_batch_size: "int | None" = None,
                 consumed_samples: int = 0, fields: Iterable[str] = ("tokens", "labels"),
                 device: str = "cpu", output: Literal["numpy", "torch", "dlpack"] = "numpy",
                 dtype: Literal["int64", "int32", "source"] = "int64",
                 sampler: Literal["single", "cyclic", "full_validation"] = "single", drop_last: bool = True,
                 data_sharding: bool = True, threads: "int | None" = None, look_ahead: "int | None" = None,
                 max_held: "int | None" = None, reuse: bool = False,
                 names: Literal["megatron", "hf"] = "megatron",
                 rampup_batch_size: "Sequence[int] | None" = None,
                 edits: "Sequence[dict[str, Any]] | None" = None,
                 allow_several_tokenizers: bool = False, context_parallel: int = 1, cp_rank: int = 0,
                 masks: Literal["label", "input", "ignored"] = "label", stream: "int | None" = None) -> None:
        self._process = os.getpid()
        if not isinstance(run, Run):
            raise TypeError(f"run is {run!r}, expected a MegatronRun or an InstantRun")
        self._run = run
        if check.integer("micro_batch_size", micro_batch_size) < 1:
            raise ConfigError(f"micro_batch_size is {micro_batch_size}, expected 1 or more")
        if stream is not None and str(device) == "cpu":
            raise ConfigError("stream is for a CUDA device, and device is 'cpu'")
        numbers = dict(micro_batch_size=micro_batch_size, consumed_samples=consumed_samples,
                       context_parallel=context_parallel, cp_rank=cp_rank)
        may_be_none = dict(global_batch_size=global_batch_size, threads=threads, look_ahead=look_ahead,
                           max_held=max_held)
        ranks = dict(rank=rank, world_size=world_size)
        booleans = dict(drop_last=drop_last, data_sharding=data_sharding, reuse=reuse,
                        allow_several_tokenizers=allow_several_tokenizers)
        arguments: "dict[str, Any]" = dict(
            {name: check.integer(name, value) for name, value in numbers.items()},
            **{name: None if value is None else check.integer(name, value) for name, value in may_be_none.items()},
            **{name: value if isinstance(value, str) else check.integer(name, value) for name, value in ranks.items()},
            **{name: check.boolean(name, value) for name, value in booleans.items()},
            fields=check.strings("fields", fields), output=output, dtype=dtype, sampler=sampler, names=names,
            masks=masks,
            rampup_batch_size=None if rampup_batch_size is None else
            [check.integer("a number of rampup_batch_size", each) for each in rampup_batch_size],
            edits=None if edits is None else json.loads(json.dumps(list(edits), default=operator.index)))
        self._inner: "_core._HostLoader | _core._DeviceLoader"
        self._take: "Callable[[], dict[str, Any]]"
        device = str(device)  # it may be a torch.device
        if device == "cpu":
            host = self._inner = _core._HostLoader(run._order, **arguments)
            self._take = host.__next__
        else:
            index = _index_of(device, output)
            on_device = self._inner = _core._DeviceLoader(run._order, index, **arguments)
            self._take = _taker_of(on_device, index, stream, output)

    def __iter__(self) -> "Iterator[dict[str, Any]]":
        self._check_process()
        return self._inner if isinstance(self._inner, _core._HostLoader) else self  # the first is faster

    def __next__(self) -> "dict[str, Any]":
        self._check_process()
        return self._take()

    def batch_at(self, step: int, micro_batch: int = 0) -> "dict[str, Any]":
        """The batch of any step, as `next()` returns it there. Does not move the loader: use it to look at what
        this rank got, for example in the step of a loss spike. For device="cpu".

        Args:
          step: step of the run, from 0, at or after the samples that were consumed when the loader started.
          micro_batch: index of the micro-batch in the step.

        Raises:
          ConfigError: the step or the micro-batch does not exist, or is not served.
        """
        self._check_process()
        if not isinstance(self._inner, _core._HostLoader):
            raise ConfigError("batch_at is for device='cpu': make a second Loader with it")
        return self._inner.batch_at(check.integer("step", step), check.integer("micro_batch", micro_batch))

    def state_dict(self) -> "dict[str, Any]":
        """The state to save with a checkpoint: plain ints and strings, equal on every rank. It is at the
        batches that were returned, and survives a change of the number of ranks."""
        self._check_process()
        return json.loads(self._inner.state())  # type: ignore[no-any-return]

    def load_state_dict(self, state: "dict[str, Any]", *, allow: Iterable[str] = ()) -> None:
        """Resumes from a state.

        Args:
          allow: options that may differ from those of the state, such as "seed", "data" or "edits".

        Raises:
          ConfigError: the state is of another run; the message has the first difference.
          FormatError: the dict is not a state; the message names the option.
        """
        self._check_process()
        if not isinstance(state, dict):
            raise TypeError(f"state is {state!r}, expected the dict that state_dict() returned")
        self._inner.load_state(json.dumps(state, default=operator.index), check.strings("allow", allow))

    @property
    def consumed_samples(self) -> int:
        """Samples served so far, over all ranks."""
        return self._inner.consumed_samples

    @property
    def micro_batches(self) -> "int | None":
        """Micro-batches that this rank gets from the loader's start to the end of the run. None: no end."""
        return self._inner.micro_batches

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise Error("this Loader belongs to the process that this one was forked from, and its threads do "
                        "not exist here: make a new Loader in this process")


def _taker_of(loader: _core._DeviceLoader, device: int, stream: "int | None",
              output: str) -> "Callable[[], dict[str, Any]]":
    """The function that returns the next batch of a device, for the stream that uses it."""
    if output != "torch":
        return lambda: loader.next(stream or 0)
    import torch
    convert = torch.from_dlpack  # type: ignore[attr-defined, unused-ignore]

    def take() -> "dict[str, Any]":
        batch = loader.next(torch.cuda.current_stream(device).cuda_stream if stream is None else stream)
        return {name: convert(value) if isinstance(value, _core.DeviceArray) else value
                for name, value in batch.items()}
    return take


def _index_of(device: str, output: str) -> int:
    kind, colon, index = device.partition(":")
    if kind != "cuda" or (colon and not (index.isdecimal() and len(index) < 10)):
        raise ConfigError(f"device is {device!r}, expected 'cpu' or 'cuda:N'")
    if not _core.has_cuda:
        raise CudaError(f"device is {device!r}, but this build of millrace is without CUDA. To rebuild it, in a "
                        f"checkout, where there is nvcc: {REBUILD}")
    if colon or output != "torch":
        return int(index or 0)
    import torch
    return torch.cuda.current_device() if torch.cuda.is_available() else 0
