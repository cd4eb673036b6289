# SPDX-License-Identifier: Apache-2.0
"""A run as a data source of Grain, as MaxText and other trainers in JAX use it."""
from typing import Any, SupportsIndex

import numpy as np

from millrace._runs import Run


class RunSource:
    """A `grain` RandomAccessDataSource: `source[k]` is sample k of a run, a dict of numpy arrays.

        data = grain.MapDataset.source(millrace.grain.RunSource(run)).batch(8)

    The run has its own shuffled order, so do not shuffle it once more.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._length = len(run)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, k: SupportsIndex) -> "dict[str, np.ndarray[Any, Any]]":
        return self._run[k.__index__()]

    def __repr__(self) -> str:
        # Grain stores this text in checkpoints and compares it when it resumes.
        return f"millrace.grain.RunSource({self._run!r})"
