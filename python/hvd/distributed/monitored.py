# SPDX-License-Identifier: Apache-2.0
"""monitored_barrier: rank 0 waits for each rank, and says which have not come.

Each barrier has a tag of its own, so that what a failed one leaves behind meets nobody later.
"""
from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from .work import Work

# Programs' tags are below.
_FIRST_TAG = 1 << 62


class Patience(NamedTuple):
    """How long all wait, and whether rank 0 looks for all that are missing, not for the first."""

    timeout: timedelta
    all_ranks: bool


class Group(Protocol):
    """The methods that a barrier needs of a process group."""

    def rank(self) -> int: ...

    def size(self) -> int: ...

    def send(self, tensors: list[torch.Tensor], rank: int, tag: int) -> Work: ...

    def recv(self, tensors: list[torch.Tensor], rank: int, tag: int) -> Work: ...


def barrier(group: Group, number: int, patience: Patience) -> None:
    """RuntimeError on rank 0 names who is missing; the others' says that they waited for it."""
    tag = _FIRST_TAG + number
    end = time.monotonic() + patience.timeout.total_seconds()
    if group.rank() == 0:
        _gather(group, tag, end, patience)
        for rank in range(1, group.size()):
            group.send([torch.zeros(0)], rank, tag)
        return
    group.send([torch.zeros(0)], 0, tag)
    if not _came(group.recv([torch.zeros(0)], 0, tag), end):
        raise RuntimeError(
            f"Rank {group.rank()}: monitored_barrier is not done after "
            f"{patience.timeout.total_seconds():g} s. Rank 0's error says which rank is missing, "
            "if rank 0 has called it")


def _gather(group: Group, tag: int, end: float, patience: Patience) -> None:
    coming = [(rank, group.recv([torch.zeros(0)], rank, tag)) for rank in range(1, group.size())]
    missing = []
    for rank, work in coming:
        if not _came(work, end):
            missing.append(str(rank))
            if not patience.all_ranks:
                break
    if missing:
        many = "ranks " if len(missing) > 1 else "rank "
        raise RuntimeError(f"Rank 0: {many}{', '.join(missing)} failed to pass monitoredBarrier in "
                           f"{patience.timeout.total_seconds() * 1000:g} ms")


def _came(work: Work, end: float) -> bool:
    left = max(end - time.monotonic(), 0.001)
    try:
        return work.wait(timedelta(seconds=left))
    except dist.DistBackendError:
        return False
