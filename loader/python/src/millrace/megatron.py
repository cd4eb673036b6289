# SPDX-License-Identifier: Apache-2.0
"""millrace in Megatron-LM, in one of two ways.

`external_provider` is a datasets provider for `--dataloader-type external`: batches come from a
`millrace.Loader` in each process that needs data, prepared by its threads.

`GPTDataset` takes the place of Megatron's class of that name in `BlendedMegatronDatasetBuilder`: the order
is computed by millrace; blending, DataLoader and samplers stay Megatron's. No index cache is written.
"""
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from megatron.core.datasets.gpt_dataset import GPTDataset as MegatronGPTDataset

from millrace._errors import ConfigError
from millrace._loader import Loader
from millrace._runs import MegatronRun, Run


class GPTDataset(MegatronGPTDataset):  # type: ignore[misc]
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


class BatchIterator:
    """What Megatron iterates over: the batches of a loader, as dicts of torch tensors.

    `save_state` is called by `--dataloader-save`; give what it returned to `restore_state` before the first
    batch.
    """

    def __init__(self, loader: Loader, *, length: "int | None" = None) -> None:
        self._loader = loader
        self._length = length

    @property
    def iterable(self) -> "BatchIterator":
        """Megatron asks train_iterator.iterable for save_state."""
        return self

    def __iter__(self) -> "Iterator[dict[str, Any]]":
        return self

    def __next__(self) -> "dict[str, Any]":
        batch = next(self._loader)
        if "cu_seqlens" in batch:  # Megatron concatenates the rows of a micro-batch
            batch["cu_seqlens"] = batch["cu_seqlens"].unsqueeze(0)
        if "max_seqlen" in batch:
            batch["max_seqlen"] = torch.tensor([batch["max_seqlen"]], dtype=torch.int32)
        return batch

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("this iterator has no length")
        return self._length

    def save_state(self) -> "dict[str, Any]":
        return self._loader.state_dict()

    def restore_state(self, state: "dict[str, Any]") -> None:
        self._loader.load_state_dict(state)


def external_provider(make_runs: "Callable[[list[int]], tuple[Run | None, Run | None, Run | None]]", *,
                      micro_batch_size: int, data_parallel_rank: int, data_parallel_size: int,
                      consumed_train_samples: int = 0, consumed_valid_samples: int = 0,
                      reads_data: bool = True, state: "dict[str, Any] | None" = None,
                      **options: Any) -> "Callable[..., tuple[BatchIterator | None, ...]]":
    """A `train_valid_test_datasets_provider` for Megatron's `--dataloader-type external`.

    Args:
      make_runs: called with the numbers of samples of train, valid and test; returns the runs of the parts.
      micro_batch_size, data_parallel_rank, data_parallel_size: as Megatron's `args.micro_batch_size`, and
        `mpu.get_data_parallel_rank()` and `mpu.get_data_parallel_world_size()`.
      consumed_train_samples, consumed_valid_samples: `args.consumed_train_samples`, ...
      reads_data: whether this process needs data: those of tensor-parallel rank 0 on the first and the last
        pipeline stage. Elsewhere the provider returns None three times.
      state: what `save_state` returned, to resume the train part from.
      options: more options of `millrace.Loader`, e.g. `threads`, `rampup_batch_size`, `device`.
    """
    fields = options.pop("fields", ("tokens", "labels", "loss_mask", "position_ids"))

    def provider(train_val_test_num_samples: "list[int]",
                 vp_stage: "int | None" = None) -> "tuple[BatchIterator | None, ...]":
        if not reads_data:
            return None, None, None
        made: "list[BatchIterator | None]" = []
        for number, run in enumerate(make_runs(list(train_val_test_num_samples))):
            if run is None:
                made.append(None)
                continue
            consumed = (consumed_train_samples, consumed_valid_samples, 0)[number]
            loader = Loader(run, micro_batch_size=micro_batch_size, rank=data_parallel_rank,
                            world_size=data_parallel_size, consumed_samples=consumed, fields=fields, output="torch",
                            **options)
            if number == 0 and state is not None:
                loader.load_state_dict(state)
            made.append(BatchIterator(loader, length=loader.micro_batches))
        return tuple(made)

    provider.is_distributed = True  # type: ignore[attr-defined]
    return provider
