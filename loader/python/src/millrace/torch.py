# SPDX-License-Identifier: Apache-2.0
"""A run as the dataset of a torch DataLoader.

A `millrace.Loader` with `output="torch"` needs no DataLoader: it prepares batches with threads of its own.
Wrap a run only where a trainer insists on a DataLoader. With worker processes, each batch is copied through
shared memory, which takes longer than making it.
"""
import sys
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from millrace._errors import ConfigError
from millrace._loader import Loader
from millrace._runs import Run


class Batches(torch.utils.data.IterableDataset["dict[str, Any]"]):
    """The micro-batches of a rank, for `DataLoader(Batches(run, micro_batch_size=8), batch_size=None)`.

    With n workers, worker i makes micro-batches i, i + n, ..., which the DataLoader returns in their order.
    The state of a `torchdata` StatefulDataLoader is that of the loader. With workers there is one state for each
    worker, so it can be loaded only with the same number of workers.

    Args:
      run: a `MegatronRun` or an `InstantRun`.
      options: those of `millrace.Loader`, but not `output`, which is "torch", and not `reuse`, because a DataLoader
        keeps batches.
    """

    def __init__(self, run: Run, **options: Any) -> None:
        super().__init__()
        if options.get("reuse"):
            raise ConfigError("reuse=True is for a millrace.Loader: a DataLoader keeps batches after it asked for the "
                              "next one")
        self._run = run
        self._options = {**options, "output": "torch"}
        self._loader: "Loader | None" = None  # of this process, once the iteration has begun
        self._begin: "dict[str, Any]" = {}    # the state at which the next iteration begins
        self._at: "dict[str, Any]" = {}       # the state of a worker

    def __getstate__(self) -> "dict[str, Any]":
        return {**self.__dict__, "_loader": None}

    def __iter__(self) -> "Iterator[dict[str, Any]]":
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            yield from self._alone()
        else:
            yield from self._share(worker.id, worker.num_workers)

    def _alone(self) -> "Iterator[dict[str, Any]]":
        loader = Loader(self._run, **self._options)
        if "done" in self._begin:
            raise ConfigError("the state is that of a worker process: load it with the same num_workers")
        if "loader" in self._begin:
            loader.load_state_dict(self._begin["loader"])
        self._loader, self._begin = loader, {}
        yield from loader

    def _share(self, worker: int, workers: int) -> "Iterator[dict[str, Any]]":
        """Micro-batches worker, worker + workers, ... The workers divide the micro-batches as more ranks
        would: rank r of W with b rows has samples t * W * b + r * b of micro-batch t, so worker i of n has
        those of rank i * W + r of n * W."""
        self._loader = None  # of the process that this one was forked from
        if "loader" in self._begin:
            raise ConfigError("the state is that of a loader without worker processes: load it with num_workers=0")
        options = dict(self._options)
        if options.get("sampler", "single") != "single" or options.get("edits") or options.get("rampup_batch_size"):
            raise ConfigError("worker processes can share only runs of the sampler 'single' without edits and "
                              "ramp-up: use num_workers=0, or a millrace.Loader")
        rank, ranks = options.get("rank", 0), options.get("world_size", 1)
        if rank == "env" or ranks == "env":
            raise ConfigError("rank and world_size must be numbers where worker processes share a run")
        options.pop("global_batch_size", None)  # it does not change the micro-batches of the sampler "single"
        whole = self._micro_batches()
        self._at = dict(self._begin)
        done = self._begin.get("done", 0)  # by this worker
        served = done * options["micro_batch_size"] * ranks * workers
        if whole is not None and 0 <= whole <= done * workers + worker:  # the loader refuses what is below 0
            return
        loader = Loader(self._run, **{**options, "rank": worker * ranks + rank, "world_size": ranks * workers,
                                      "consumed_samples": options.get("consumed_samples", 0) + served,
                                      "drop_last": False})
        for _ in range(done * workers + worker, sys.maxsize if whole is None else whole, workers):
            batch = next(loader)
            done += 1
            self._begin, self._at = {}, {"done": done}
            yield batch

    def _micro_batches(self) -> "int | None":
        """How many micro-batches each rank gets, or None if the run does not end."""
        try:
            left: int = len(self._run) - self._options.get("consumed_samples", 0)
        except TypeError:
            return None
        of_all_ranks: int = self._options["micro_batch_size"] * self._options.get("world_size", 1)
        return left // of_all_ranks if self._options.get("drop_last", True) else -(-left // of_all_ranks)

    def state_dict(self) -> "dict[str, Any]":
        """The position after the batches that were returned, in this process."""
        if self._loader is not None:
            return {"loader": self._loader.state_dict()}
        return dict(self._begin or self._at)

    def load_state_dict(self, state: "dict[str, Any]") -> None:
        """Lets the next iteration begin at a position."""
        self._loader, self._begin = None, dict(state)
