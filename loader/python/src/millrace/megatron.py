# SPDX-License-Identifier: Apache-2.0
"""millrace in Megatron-LM, in one of two ways.

`external_provider` is a datasets provider for `--dataloader-type external`: batches come from a
`millrace.Loader` in each process that needs data, prepared by its threads.

`GPTDataset` takes the place of Megatron's class of that name in `BlendedMegatronDatasetBuilder`: the order
is computed by millrace; blending, DataLoader and samplers stay Megatron's. No index cache is written.
"""
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from megatron.core.datasets.gpt_dataset import GPTDataset as MegatronGPTDataset

from millrace._errors import ConfigError
from millrace._loader import Loader
from millrace._runs import MegatronRun, Run


class GPTDataset(MegatronGPTDataset):  # type: ignore[misc, unused-ignore]
    """Megatron's GPTDataset, whose samples are found by millrace. Pass it as `cls`:

        BlendedMegatronDatasetBuilder(millrace.megatron.GPTDataset, sizes, is_built_on_rank, config).build()

    Tokens and fields are those of Megatron. Nothing is written to `path_to_cache` for it.
    """

    def _build_document_sample_shuffle_indices(self) -> "tuple[None, None, None]":
        if not self.config.add_extra_token_to_sequence:
            raise ConfigError("add_extra_token_to_sequence is False, which millrace.megatron.GPTDataset does not "
                              "support: use Megatron's GPTDataset")
        part = self.index_split.name
        own_data = self.config.blend is None  # each part has its own datasets, which it uses whole
        split = "1" if own_data else self.config.split
        options: "dict[str, Any]" = {}
        if own_data and part == "valid" and not self.config.drop_last_partial_validation_sequence:
            split = "0,1"
        elif own_data:
            part = "train"
        options[f"{part}_samples"] = self.num_samples
        self._run = MegatronRun(data_path=[self.dataset.path_prefix], split=split, part=part,
                                seq_length=self.config.sequence_length, seed=self.config.random_seed,
                                drop_last_partial_validation_sequence=self.config.drop_last_partial_validation_sequence,
                                **options)
        return None, None, None

    def __len__(self) -> int:
        return len(self._run)

    def _query_document_sample_shuffle_indices(self, idx: int) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
        return self._run._order.text(int(idx), self._pad_token_id)


def _boundaries_by_row(joined: torch.Tensor, rows: int, seq_length: int,
                       of: "torch.Tensor | None" = None) -> torch.Tensor:
    """The boundaries of each row, [rows, seq_length + 1], where the last one repeats, as Megatron's datasets have
    them, from those of the concatenated rows.

    Args:
      of: the same boundaries without padding, whose entries to return instead.
    """
    begins = torch.arange(rows + 1, device=joined.device, dtype=joined.dtype) * seq_length
    first = torch.searchsorted(joined, begins)
    entries = first[:-1, None] + torch.arange(seq_length + 1, device=joined.device)
    values = joined if of is None else of
    return values[torch.minimum(entries, first[1:, None])] - values[first[:-1, None]]


class BatchIterator:
    """What Megatron iterates over: the batches of a loader, as dicts of torch tensors.

    `save_state` is called by `--dataloader-save`; give what it returned to `restore_state` before the first
    batch.

    Args:
      length: what `len()` returns. None: there is no length.
      repeat: begin again after the last batch, as Megatron does with a full validation.
    """

    def __init__(self, loader: Loader, *, length: "int | None" = None, repeat: bool = False) -> None:
        self._loader = loader
        self._length = length
        self._begin = loader.state_dict() if repeat else None

    @property
    def iterable(self) -> "BatchIterator":
        """Megatron asks train_iterator.iterable for save_state."""
        return self

    def __iter__(self) -> "Iterator[dict[str, Any]]":
        return self

    def __next__(self) -> "dict[str, Any]":
        try:
            batch = next(self._loader)
        except StopIteration:
            if self._begin is None:
                raise
            self._loader.load_state_dict(self._begin)
            batch = next(self._loader)
        given = batch.pop("cu_seqlens", None)
        padded = batch.pop("cu_seqlens_padded", None)
        if given is None and padded is None:
            return batch
        joined = given if padded is None else padded
        seq_length = self._loader._run.seq_length
        of_rows = [value for value in batch.values() if isinstance(value, torch.Tensor)]
        rows = of_rows[0].shape[0] if of_rows else int(joined[-1]) // seq_length
        by_row = _boundaries_by_row(joined, rows, seq_length)
        if "max_seqlen" in batch:
            batch["max_seqlen"] = by_row.diff(dim=1).amax(dim=1)
        if padded is not None:
            batch["cu_seqlens_padded"] = by_row
            if given is None:
                return batch
            by_row = _boundaries_by_row(joined, rows, seq_length, of=given)
        batch["cu_seqlens"] = by_row
        return batch

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("this iterator has no length")
        return self._length

    def save_state(self) -> "dict[str, Any]":
        return self._loader.state_dict()

    def restore_state(self, state: "dict[str, Any]") -> None:
        self._loader.load_state_dict(state)


def external_provider(make_runs: "Callable[[list[int]], Sequence[Run | Sequence[Run] | None]]", *,
                      micro_batch_size: int, data_parallel_rank: int, data_parallel_size: int,
                      consumed_train_samples: int = 0, consumed_valid_samples: int = 0,
                      reads_data: "bool | Callable[[int | None], bool]" = True,
                      full_validation: bool = False, state: "dict[str, Any] | None" = None,
                      **options: Any) -> "Callable[..., tuple[Any, Any, Any]]":
    """A `train_valid_test_datasets_provider` for Megatron's `--dataloader-type external`.

    Args:
      make_runs: called with the numbers of samples of train, valid and test; returns the runs of the parts. That
        of valid may be a list, as with `--multiple-validation-sets`.
      micro_batch_size, data_parallel_rank, data_parallel_size: as Megatron's `args.micro_batch_size`, and
        `mpu.get_data_parallel_rank()` and `mpu.get_data_parallel_world_size()`.
      consumed_train_samples, consumed_valid_samples: `args.consumed_train_samples`, ...
      reads_data: whether this process needs data: those of tensor-parallel rank 0 on the first and the last
        pipeline stage, and on every stage with "cu_seqlens". With virtual pipeline stages, Megatron asks for each
        of them: a function of `vp_stage`. Elsewhere the provider returns None three times.
      full_validation: as Megatron's `--full-validation`: each validation serves its whole part once, one sample
        at a time.
      state: what `save_state` returned, to resume the train part from.
      options: more options of `millrace.Loader`, e.g. `threads`, `rampup_batch_size`, `device`. `edits` and
        `rampup_batch_size` are those of the train part.
    """
    if options.setdefault("output", "torch") != "torch":
        raise ConfigError(f"output is {options['output']!r}, expected 'torch', as Megatron needs it")
    of_training = dict(edits=None, rampup_batch_size=None)
    fields = options.pop("fields", ("tokens", "labels", "loss_mask", "position_ids"))
    given = dict(micro_batch_size=micro_batch_size, rank=data_parallel_rank, world_size=data_parallel_size,
                 fields=fields)

    def iterator_of(run: Run, *, repeat: bool = False, **more: Any) -> BatchIterator:
        loader = Loader(run, **{**given, **options, **more})
        return BatchIterator(loader, length=loader.micro_batches, repeat=repeat)

    def one_of(part: str, run: "Run | Sequence[Run] | None", **more: Any) -> "BatchIterator | None":
        if run is None:
            return None
        if not isinstance(run, Run):
            raise TypeError(f"make_runs returned {run!r} for {part}, expected a run or None")
        return iterator_of(run, **more)

    def valid_of(run: "Run | Sequence[Run] | None") -> "BatchIterator | list[BatchIterator] | None":
        if run is None:
            return None
        more: "dict[str, Any]" = dict(of_training, consumed_samples=consumed_valid_samples)
        if full_validation:
            more.update(sampler="full_validation", micro_batch_size=1, global_batch_size=None, consumed_samples=0,
                        drop_last=True)
        if isinstance(run, Run):
            return iterator_of(run, repeat=full_validation, **more)
        return [iterator_of(each, repeat=full_validation, **more) for each in run]

    def provider(train_val_test_num_samples: "Sequence[int]", vp_stage: "int | None" = None) -> "tuple[Any, Any, Any]":
        if not (reads_data(vp_stage) if callable(reads_data) else reads_data):
            return None, None, None
        train, valid, test = make_runs(list(train_val_test_num_samples))
        trained = one_of("train", train, consumed_samples=consumed_train_samples)
        if trained is not None and state is not None:
            trained.restore_state(state)
        return trained, valid_of(valid), one_of("test", test, **of_training)

    provider.is_distributed = True  # type: ignore[attr-defined]
    return provider
