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
    worker, so it can be loaded only with the same workers, ranks and micro-batches. A state has a position, so
    `consumed_samples` does not count once one is loaded.

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
        if options.get("output", "torch") != "torch":
            raise ConfigError(f"output is {options['output']!r}, expected 'torch', as a DataLoader needs it")
        self._run = run
        self._options = {**options, "output": "torch"}
        self._loader: "Loader | None" = None  # of this process, once the iteration has begun
        self._begin: "dict[str, Any]" = {}    # the state at which the next iteration begins
        self._at: "dict[str, Any]" = {}       # the state of a worker

    def __getstate__(self) -> "dict[str, Any]":
        return {**self.__dict__, "_loader": None}

    # No generator: a call takes the loaded state, even if its iterator is never used. A StatefulDataLoader
    # makes such an iterator for a state at the end of the run, and the next one begins a new epoch.
    def __iter__(self) -> "Iterator[dict[str, Any]]":
        worker = torch.utils.data.get_worker_info()
        begin, self._begin, self._loader = self._begin, {}, None
        return self._alone(begin) if worker is None else self._share(begin, worker.id, worker.num_workers)

    def _alone(self, begin: "dict[str, Any]") -> "Iterator[dict[str, Any]]":
        loader = Loader(self._run, **self._options)
        if "share" in begin:
            raise ConfigError("the state is that of a worker process: load it with the same num_workers")
        if begin:
            loader.load_state_dict(begin["loader"])
        self._loader = loader
        return iter(loader)

    def _share(self, begin: "dict[str, Any]", worker: int, workers: int) -> "Iterator[dict[str, Any]]":
        """Micro-batches worker, worker + workers, ... The workers divide the micro-batches as more ranks
        would: rank r of W with b rows has samples t * W * b + r * b of micro-batch t, so worker i of n has
        those of rank i * W + r of n * W."""
        if begin and "share" not in begin:
            raise ConfigError("the state is that of a loader without worker processes: load it with num_workers=0")
        options = dict(self._options)
        if options.get("sampler", "single") != "single" or options.get("edits") or options.get("rampup_batch_size"):
            raise ConfigError("worker processes can share only runs of the sampler 'single' without edits and "
                              "ramp-up: use num_workers=0, or a millrace.Loader")
        if len(self._run._arguments.get("schedule") or ()) > 1 and workers > 1:
            raise ConfigError("several worker processes cannot share a run with a schedule: use num_workers=0 or 1, or "
                              "a millrace.Loader")
        rank, ranks = options.get("rank", 0), options.get("world_size", 1)
        if rank == "env" or ranks == "env":
            raise ConfigError("rank and world_size must be numbers where worker processes share a run")
        if begin:
            options["consumed_samples"] = begin["loader"]["consumed_samples"]
        # The loader of all workers together checks the options and the state.
        whole = Loader(self._run, **options)
        count, start = whole.micro_batches, begin["loader"] if begin else whole.state_dict()
        share = dict(micro_batch_size=options["micro_batch_size"], rank=rank, world_size=ranks, num_workers=workers)
        for name, value in share.items():
            if begin and begin["share"][name] != value:
                raise ConfigError(f"{name} is {value}, but was {begin['share'][name]} when the state was saved: with "
                                  "worker processes they must be equal")
        if begin:
            whole.load_state_dict(start)
        del whole
        done = begin["done"] if begin else 0  # by this worker
        self._at = {"loader": start, "share": share, "done": done}
        if count is not None and count <= done * workers + worker:
            return iter(())
        options.pop("global_batch_size", None)  # it does not change the micro-batches of the sampler "single"
        served = done * options["micro_batch_size"] * ranks * workers
        loader = Loader(self._run, **{**options, "rank": worker * ranks + rank, "world_size": ranks * workers,
                                      "consumed_samples": options.get("consumed_samples", 0) + served,
                                      "drop_last": False})
        return self._served(loader, range(done * workers + worker, sys.maxsize if count is None else count, workers))

    def _served(self, loader: Loader, micro_batches: range) -> "Iterator[dict[str, Any]]":
        for _ in micro_batches:
            batch = next(loader)
            self._at = {**self._at, "done": self._at["done"] + 1}
            yield batch

    def state_dict(self) -> "dict[str, Any]":
        """The position after the batches that were returned, in this process."""
        if self._loader is not None:
            return {"loader": self._loader.state_dict()}
        return dict(self._begin or self._at)

    def load_state_dict(self, state: "dict[str, Any]") -> None:
        """Lets the next iteration begin at a position."""
        self._loader, self._begin = None, dict(state)
