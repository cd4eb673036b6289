# SPDX-License-Identifier: Apache-2.0
"""The orders of samples: MegatronRun and InstantRun."""
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from millrace import _arguments as check
from millrace import _core
from millrace._arguments import Path

DataPath: TypeAlias = "Path | Sequence[Path | float]"
Blend: TypeAlias = "tuple[Sequence[Path], Sequence[float] | None]"
Packing: TypeAlias = Literal["none", "best_fit", "first_fit_decreasing", "first_fit_shuffle",
                             "modified_first_fit_decreasing", "one_per_row"]
FIELDS = ("tokens", "labels", "loss_mask", "position_ids")


class Run:
    """The order of samples over one dataset or a blend; see `MegatronRun` and `InstantRun`.

    `run[k]` is sample k: a dict of numpy arrays of shape [seq_length]. Any number of threads and loaders may
    use a run. A run can be pickled; unpickling opens the datasets and builds the indices again.
    """
    _order: _core._Run
    _arguments: "dict[str, Any]"

    def __init__(self, order: _core._Run, arguments: "dict[str, Any]") -> None:
        self._order = order
        self._arguments = arguments

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, k: int) -> "dict[str, np.ndarray[Any, Any]]":
        return self._order[check.integer("the number of a sample", k)]

    @property
    def seq_length(self) -> int:
        """Tokens per sample."""
        return self._order.seq_length

    @property
    def prefixes(self) -> "list[str]":
        """The datasets, in the order of the blend."""
        return self._order.prefixes

    def __reduce__(self) -> "tuple[Any, ...]":
        return _rebuilt, (type(self), self._arguments)

    def __repr__(self) -> str:
        # Equal arguments give equal text, also in another process.
        return f"millrace.{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._arguments.items())})"


def _checked(given: "dict[str, Any]") -> "dict[str, Any]":
    """The arguments of a run, each of the type that it should have."""
    checks: "dict[str, Callable[[str, Any], Any]]" = {
        "data_path": check.words, "blend": lambda _, value: check.blend(value), "split": check.string,
        "part": check.string, "packing": check.string, "names": check.string, "fields": check.strings,
        "data_cache_path": check.path, "tokenizer_identifiers": _mapping, "schedule": _schedule,
        "reset_position_ids": check.boolean, "reset_attention_mask": check.boolean,
        "eod_mask_loss": check.boolean, "drop_last_partial_validation_sequence": check.boolean,
        "leave_out_overlong": check.boolean, "last_token_as_label": check.boolean}
    may_be_none = ("data_path", "blend", "train_samples", "valid_samples", "test_samples", "pad_id", "eod_id",
                   "data_cache_path", "tokenizer_identifiers", "schedule", "global_batch_size")
    checked = {}
    for name, value in given.items():
        look: "Callable[[str, Any], Any]" = checks.get(name, check.integer)
        checked[name] = None if value is None and name in may_be_none else look(name, value)
    return checked


def _mapping(name: str, value: Any) -> "dict[str, Any]":
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is {value!r}, expected a dict")
    return dict(value)


def _schedule(name: str, value: Any) -> "list[tuple[int, list[float]]]":
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{name} is {value!r}, expected a list of (first_step, weights)")
    segments = []
    for each in value:
        if not isinstance(each, Sequence) or len(each) != 2 or not isinstance(each[1], Iterable):
            raise TypeError(f"{name} has {each!r}, expected (first_step, weights)")
        weights = [check.number(f"the weights of {name}", weight) for weight in each[1]]
        segments.append((check.integer(f"a step of {name}", each[0]), weights))
    return segments


def _rebuilt(kind: "type[Run]", arguments: "dict[str, Any]") -> Run:
    return kind(**arguments)


class MegatronRun(Run):
    """Megatron's order of one part of a run, to the last index, as its GPTDataset and BlendedDataset have it.

    `run[k]` is sample k of the part: a dict of numpy arrays of shape [seq_length]: `tokens`, `labels` and
    `position_ids` int64, `loss_mask` float32. Building the run takes memory for Megatron's indices, as
    in Megatron, and Ctrl-C waits for it; nothing is written unless `data_cache_path` is given.

    Args:
      data_path: a list of prefixes, or of alternating weights and prefixes, as Megatron's `--data-path`.
      blend: instead of `data_path`: (prefixes, weights), where weights may be None.
      split: shares of each dataset's sequences for train, valid and test.
      part: the part to serve: "train", "valid" or "test".
      seq_length: tokens per sample.
      seed: 0 to 2^32 - 1.
      train_samples, valid_samples, test_samples: samples of each part, rounded up to whole epochs of a single
        dataset, as in Megatron; `len(run)` has the number. None: one epoch of a single dataset; all samples of
        a blend without weights. A blend with weights needs a number.
      pad_id: tokens with this id are padding: input 0, label 0, no loss. None: no id is padding.
      eod_id: the id that ends documents, for the three flags after it.
      reset_position_ids: positions begin again after each eod.
      reset_attention_mask: as in Megatron; no attention mask is made, so it changes nothing here.
      eod_mask_loss: no loss where the input is an eod.
      drop_last_partial_validation_sequence: False: the last sample of the part "valid" may be padded.
      data_cache_path: the folder of Megatron's index caches. They are read, or written if they are missing.
      tokenizer_identifiers: the `unique_identifiers` of Megatron's tokenizer, which are part of the names of
        the caches. Needed to share caches with Megatron.
      fields: the arrays of a sample: "tokens", "labels", "loss_mask", "position_ids"; "cu_seqlens", the
        document boundaries by the index, int32; "cu_seqlens_padded", see `Loader`; "max_seqlen", the longest
        document, an int.
      names: "megatron"; or "hf" for models of Hugging Face: `input_ids`, and `labels` that are the input ids
        themselves (such models shift them), and -100 where the loss does not count.

    Raises:
      ConfigError: an argument is out of range, or the part has no data.
      IOError, FormatError: a dataset cannot be opened.
    """

    def __init__(self, *, data_path: "DataPath | None" = None, blend: "Blend | None" = None,
                 split: str = "969, 30, 1", part: str = "train", seq_length: int, seed: int = 1234,
                 train_samples: "int | None" = None, valid_samples: "int | None" = 0,
                 test_samples: "int | None" = 0, pad_id: "int | None" = None, eod_id: "int | None" = None,
                 reset_position_ids: bool = False, reset_attention_mask: bool = False,
                 eod_mask_loss: bool = False, drop_last_partial_validation_sequence: bool = True,
                 data_cache_path: "Path | None" = None,
                 tokenizer_identifiers: "Mapping[str, Any] | None" = None,
                 fields: Iterable[str] = FIELDS, names: Literal["megatron", "hf"] = "megatron") -> None:
        arguments = _checked({key: value for key, value in locals().items() if key not in ("self", "__class__")})
        inner = dict(arguments, tokenizer_identifiers=json.dumps(arguments["tokenizer_identifiers"] or {}))
        super().__init__(_core.MegatronRun(**inner), arguments)


class InstantRun(Run):
    """An order that needs no index: the shuffle of each dataset and the blend are computed by arithmetic.

    `run[k]` is sample k, as in `MegatronRun`. Without `train_samples`, the run never ends, and `len(run)`
    raises TypeError.

    Args:
      data_path, blend: as in `MegatronRun`. Without weights, datasets are weighted by their length.
      seq_length: tokens per sample.
      seed: 0 to 2^63 - 1.
      train_samples: number of samples. None: without end.
      packing: "none": a sample is a window of seq_length tokens. Otherwise, a sample is a row of whole
        documents; attention must not cross their boundaries, which are the field "cu_seqlens". "best_fit"
        cuts longer documents. "first_fit_decreasing" and "first_fit_shuffle" pack as Megatron-Bridge does,
        "modified_first_fit_decreasing" as Megatron-LM's pull request 5017 and NeMo RL. "one_per_row" gives each
        document a row of its own.
      pad_documents_to: with packing: each document takes a multiple of this many tokens.
      leave_out_overlong: with packing, except "best_fit": leave out documents that are longer than a row.
        If False, they are an error.
      last_token_as_label: with packing, except "best_fit": a document of n tokens takes n - 1 positions, each of
        which has a label, as in Megatron-Bridge. The padding at the end of a row is a range of its own.
      schedule: [(first_step, weights), ...]: from each step on, one weight per dataset; 0 leaves one out.
        Steps have `global_batch_size` samples.
      pad_id and the following: as in `MegatronRun`.

    Raises: as `MegatronRun`.
    """
    _order: _core.InstantRun

    def __init__(self, *, data_path: "DataPath | None" = None, blend: "Blend | None" = None, seq_length: int,
                 seed: int = 1234, train_samples: "int | None" = None,
                 packing: Packing = "none", pad_documents_to: int = 1, leave_out_overlong: bool = False,
                 last_token_as_label: bool = False,
                 schedule: "Sequence[tuple[int, Sequence[float]]] | None" = None,
                 global_batch_size: "int | None" = None, pad_id: "int | None" = None,
                 eod_id: "int | None" = None, reset_position_ids: bool = False,
                 reset_attention_mask: bool = False, eod_mask_loss: bool = False,
                 fields: Iterable[str] = FIELDS, names: Literal["megatron", "hf"] = "megatron") -> None:
        arguments = _checked({key: value for key, value in locals().items() if key not in ("self", "__class__")})
        super().__init__(_core.InstantRun(**arguments), arguments)

    def packing_report(self) -> "list[dict[str, int]]":
        """How documents fill the rows, a dict per dataset: `rows`; `documents`, of which `left_out` are longer than
        a row; `tokens` in the rows, and `padding` in them. Empty without packing. Reads the lengths of all documents.
        """
        return self._order.packing_report()
