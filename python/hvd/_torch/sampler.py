# SPDX-License-Identifier: Apache-2.0
"""A sampler that knows which samples of an epoch are done, over all ranks and all members that come
and go."""
from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sized
from typing import Any

import torch
import torch.utils.data

from .._core.runtime import RUNTIME
from ..basics import rank, size
from .operators import collectives


class Progress:
    """Which positions of an epoch's order are done: all before `first`, and those in `beyond`."""

    def __init__(self, first: int = 0, beyond: Iterable[int] = ()) -> None:
        self.first = first
        self.beyond: set[int] = set()
        self.add(beyond)

    def add(self, positions: Iterable[int]) -> None:
        self.beyond.update(one for one in positions if one >= self.first)
        while self.first in self.beyond:
            self.beyond.remove(self.first)
            self.first += 1

    def __contains__(self, position: int) -> bool:
        return position < self.first or position in self.beyond

    def __len__(self) -> int:
        return self.first + len(self.beyond)


class ElasticSampler(torch.utils.data.Sampler[int]):
    """Shares out an epoch's samples to the ranks; after a reset, those that are not done yet.

    Put it into the TorchState; call record_batch (or record_indices) after each batch, and
    set_epoch(epoch + 1) at the end of each epoch. Ranks tell one another at each commit what they
    have recorded; with a commit goes back what was recorded after it. As with DistributedSampler
    all ranks have equally many samples: some come twice at the end of an epoch, and count once."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        """`seed` must be the same on all ranks; `dataset` keeps its length."""
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self._progress = Progress()
        self._fresh: set[int] = set()  # recorded here, and not known to the other ranks
        self._order: list[int] = []
        self._mine: list[int] = []  # its share
        self._given: list[int] | None = None  # what the iteration under way has; None: the share
        self._batch_size = 0  # in that
        self._ordered_for: tuple[int, int] | None = None
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Another epoch begins, with no sample done. To be called at the end of the one before."""
        self.epoch = epoch
        self._progress = Progress()
        self._fresh.clear()
        self.reset()
        self._begin_batches(None)

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """This rank is done with its batch `batch_idx`, counted from where the iteration under way
        began: a restore() within does not change what its batches are. A last batch may be shorter
        than those before."""
        self._batch_size = max(self._batch_size, batch_size)
        start = batch_idx * self._batch_size
        mine = self._mine if self._given is None else self._given
        self._fresh.update(at for at in mine[start:start + batch_size] if at not in self._progress)

    def _begin_batches(self, given: list[int] | None) -> None:
        self._given = given
        self._batch_size = 0

    def record_indices(self, indices: Iterable[int]) -> None:
        """This rank is done with these samples of the dataset."""
        wanted = {int(index) for index in indices}
        self._fresh.update(at for at in self._mine if self._order[at] in wanted)
        rest = wanted - {self._order[at] for at in self._fresh}
        if rest:  # another rank's, or of an earlier share
            self._fresh.update(at for at, index in enumerate(self._order) if index in rest)

    @property
    def processed_indices(self) -> set[int]:
        """Samples of the dataset that are done, as far as this rank knows."""
        progress = self._progress
        done = {*range(progress.first), *progress.beyond, *self._fresh}
        return {self._order[at] for at in done}

    @property
    def processed_num(self) -> int:
        """How many these are."""
        return len(self._progress) + sum(at not in self._progress for at in self._fresh)

    def state_dict(self) -> dict[str, Any]:
        """For checkpoints: the epoch, and what is done in it as far as this rank knows."""
        known = Progress(self._progress.first, self._progress.beyond | self._fresh)
        return {"epoch": self.epoch, "first": known.first, "beyond": sorted(known.beyond)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what state_dict() gave; or Horovod's, which has the number of samples that are
        done, or the samples."""
        if self.epoch != state_dict["epoch"]:
            self._begin_batches(None)  # another order
        self.epoch = state_dict["epoch"]
        self._fresh.clear()
        self._put_in_order()
        if "processed_indices" in state_dict:
            done = set(state_dict["processed_indices"])
            self._progress = Progress(0, [at for at, one in enumerate(self._order) if one in done])
        else:
            first = state_dict.get("first", state_dict.get("processed_num", 0))
            self._progress = Progress(first, state_dict.get("beyond", ()))
        self.reset()

    def meet(self) -> None:
        """All ranks call it: what each has recorded becomes known to all."""
        fresh = torch.tensor(sorted(self._fresh), dtype=torch.int64)
        options = RUNTIME.options("allgather", None, RUNTIME.sets.world)
        self._progress.add(collectives.allgather(fresh, None, options).wait().tolist())
        self._fresh.clear()

    def reset(self) -> None:
        """Shares out what is not done, as far as all ranks know, to the ranks there are now."""
        self.num_replicas = size()
        self.rank = rank()
        if self._given is None:
            self._batch_size = 0
        self._put_in_order()
        count = len(self._order)
        left = [at for at in range(min(self._progress.first, count), count)
                if at not in self._progress.beyond]
        self.remaining_indices = [self._order[at] for at in left]
        self.num_samples = -(-len(left) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        missing = self.total_size - len(left)
        whole = left + (left * (missing // max(len(left), 1) + 1))[:missing]
        self._mine = whole[self.rank:self.total_size:self.num_replicas]
        self.indices = [self._order[at] for at in self._mine]

    def _put_in_order(self) -> None:
        key = (self.epoch, len(self.dataset))
        if self._ordered_for == key:
            return
        self._order = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(self._order)
        self._ordered_for = key

    def __iter__(self) -> Iterator[int]:
        self._begin_batches(list(self._mine))
        return iter(list(self.indices))

    def __len__(self) -> int:
        return self.num_samples
