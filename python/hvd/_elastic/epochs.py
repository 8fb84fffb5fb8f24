# SPDX-License-Identifier: Apache-2.0
"""The epoch that this process is in, and whether the job's members are to change."""
from __future__ import annotations

from dataclasses import dataclass

from .._core import patience
from .._core.library import LIBRARY
from .._core.runtime import RUNTIME


@dataclass(frozen=True)
class Epoch:
    """The launcher's word on an epoch: the same on all ranks but for `rank`, `is_new` and
    `needs_state`. `commit`: with which it begins, 0: there is none. `survivors`: ranks that were in
    the one before. `is_new`: this process was in none. `sync`: some ranks need the state of rank
    `root`, -1: nobody has any. `rolls_back`: the one before broke. `needs_state`: this rank gets
    the root's."""

    number: int
    commit: int
    rank: int
    size: int
    survivors: int
    is_new: bool
    sync: bool
    root: int
    rolls_back: bool
    needs_state: bool


def current() -> Epoch:
    """The one that this process has joined; NotInitializedError when there is none."""
    read = RUNTIME.epoch_now()
    return Epoch(read.number, read.commit, read.rank, read.size, read.survivors, bool(read.is_new),
                 bool(read.sync), read.root, bool(read.rolls_back), bool(read.needs_state))


def is_elastic() -> bool:
    """Whether this process is in an elastic job, whose members come and go."""
    return RUNTIME.is_elastic()


def slot() -> int:
    """Which share of its host this process has, from 0: the same for its life, whatever its rank,
    and that of the process that it replaces. GPUs are pinned by it. -1 before init()."""
    return int(LIBRARY.held.hvd_slot())


def check_hosts() -> None:
    """All ranks call it. HostsUpdatedInterrupt, on all of them, when members are to change."""
    patience.call(LIBRARY.released.hvd_check_hosts)
