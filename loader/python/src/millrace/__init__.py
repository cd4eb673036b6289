# SPDX-License-Identifier: Apache-2.0
"""Text to GPU batches, through Megatron's mmap datasets.

    import millrace

    millrace.preprocess("corpus.jsonl", "out/corpus", tokenizer="tokenizer.json", append_eod=True)
    run = millrace.MegatronRun(data_path=["out/corpus_text_document"], seq_length=4096, train_samples=1000)
    for batch in millrace.Loader(run, micro_batch_size=8, output="torch"):
        train(batch["tokens"], batch["labels"])
"""
from typing import TYPE_CHECKING, Any

from millrace._core import IndexedDataset, Tokenizer, cuda_version, has_cuda
from millrace._core import version as __version__
from millrace._errors import ConfigError, CudaError, Error, FormatError
from millrace._errors import IOError as IOError  # noqa: A004  # type checkers take this form as public
from millrace._loader import Loader
from millrace._runs import InstantRun, MegatronRun, Run

# Without IOError, so that `from millrace import *` leaves Python's own name alone.
__all__ = [
    "ConfigError", "CudaError", "Error", "FormatError", "IndexedDataset", "InstantRun", "Loader", "MegatronRun",
    "Run", "Tokenizer", "__version__", "audit", "convert", "cuda_version", "diff", "diff_runs", "filter", "has_cuda",
    "info", "merge", "plan", "preprocess", "repair", "report", "search", "stats", "verify", "where",
]

if TYPE_CHECKING:
    from millrace._programs import (
        audit, convert, diff, diff_runs, filter, info, merge, plan, preprocess, repair, report, search, stats,
        verify, where)


def __getattr__(name: str) -> Any:
    # A process that only loads batches need not import what runs programs, which takes longer than all the rest.
    if name not in ("audit", "convert", "diff", "diff_runs", "filter", "info", "merge", "plan", "preprocess", "repair",
                    "report", "search", "stats", "verify", "where"):
        raise AttributeError(f"module 'millrace' has no attribute {name!r}")
    from millrace import _programs
    return getattr(_programs, name)


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
