# SPDX-License-Identifier: Apache-2.0
"""The members of a c10d group, and how its process set comes and goes."""
from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from .._core import errors
from .._core.library import LIBRARY
from .._core.runtime import RUNTIME
from ..process_sets import ProcessSet

if TYPE_CHECKING:  # torch's stubs do not say that dist has them
    from torch._C._distributed_c10d import Store, _DistributedBackendOptions


@dataclass
class Place:
    """A rank's place in a group. `ranks`: the members' ranks in the job, by their group rank."""

    store: Store
    rank: int
    size: int
    timeout: timedelta
    name: str
    ranks: Sequence[int]
    process_set: ProcessSet
    description: str = field(default="undefined")
    began_job: bool = field(default=False)
    left: bool = field(default=False)

    def described(self) -> str:
        """For messages."""
        return f'group "{self.name}" of {self.size} ranks'


_LOCK = threading.Lock()


def join(options: _DistributedBackendOptions) -> Place:
    """Called by the members of a new group, and by them alone. Joins the job for the first one."""
    rank, size = int(options.group_rank), int(options.group_size)
    began = not LIBRARY.held.hvd_is_initialized()
    if began:
        RUNTIME.init(None, None)
    ranks = [int(one) for one in options.global_ranks_in_group]
    try:
        if not ranks:
            _check_whole_job(rank, size)
        process_set = _set_of(ranks or list(range(size)), str(options.group_id))
    except errors.Error:
        if began:
            RUNTIME.shutdown()
        raise
    return Place(options.store, rank, size, options.timeout, str(options.group_id),
                 ranks or range(size), process_set, began_job=began)


def leave(place: Place) -> None:
    """Gives the group's set back, which all members do; the group that began the job leaves it.
    Again: nothing."""
    if not give_up(place):
        return
    if not LIBRARY.held.hvd_is_initialized():
        return
    if place.began_job:
        RUNTIME.shutdown()
    elif place.process_set.process_set_id:
        RUNTIME.sets.remove(place.process_set)


def give_up(place: Place) -> bool:
    """Without the other members: the set stays until the job is left. False: it was done before."""
    with _LOCK:
        before, place.left = place.left, True
    return not before


def _check_whole_job(rank: int, size: int) -> None:
    """The default group has the ranks as the job has them."""
    job_rank, job_size = RUNTIME.rank(), int(LIBRARY.held.hvd_size())
    if (rank, size) != (job_rank, job_size):
        raise errors.invalid(
            f'backend "hvd" has the ranks of hvdrun: this process is rank {job_rank} of '
            f"{job_size} there, and init_process_group says rank {rank} of {size}. Leave out rank "
            "and world_size, or start the program as hvdrun -np N python train.py")


def _set_of(ranks: list[int], key: str) -> ProcessSet:
    """A set of the group's own, also of all ranks: so that its calls are told apart from those that
    the program makes by hvd itself."""
    if ranks != sorted(ranks):
        raise errors.unsupported(f"the ranks of a group must ascend; these are {ranks}")
    return RUNTIME.sets.add(ranks, members_only=True, key=f"c10d {key}")
