# SPDX-License-Identifier: Apache-2.0
"""Sets of ranks that run collectives among themselves, and which of them this process has."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence

from . import abi, errors, patience
from .library import LIBRARY


class ProcessSet:
    """Ranks that run collectives among themselves: `ProcessSet([0, 2])`.

    Usable once it has been given to init() or add_process_set(); until then, and after
    remove_process_set() or shutdown(), `process_set_id` is None.
    """

    def __init__(self, ranks_or_comm: Sequence[int]) -> None:
        if not hasattr(ranks_or_comm, "__iter__"):
            raise errors.invalid("a ProcessSet is made of global ranks, as [0, 2]; hvd uses no "
                                 "MPI, and knows no communicators")
        self.process_set_id: int | None = None
        self.ranks: list[int] = sorted(int(rank) for rank in ranks_or_comm)
        self.mpi_comm = None

    def included(self) -> bool | None:
        """Whether this rank is a member. None when the set is not registered."""
        rank = self.rank()
        return None if rank is None else rank >= 0

    def rank(self) -> int | None:
        """This rank's index among the members: -1 when it is none. None when not registered."""
        if self._id_in_force() is None:
            return None
        return int(LIBRARY.held.hvd_process_set_rank(self.process_set_id))

    def size(self) -> int | None:
        """The number of members. None when the set is not registered."""
        if self._id_in_force() is None:
            return None
        return int(LIBRARY.held.hvd_process_set_size(self.process_set_id))

    def _id_in_force(self) -> int | None:
        return self.process_set_id if LIBRARY.held.hvd_is_initialized() else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProcessSet):
            return NotImplemented
        return self.ranks == other.ranks and self.process_set_id == other.process_set_id

    # Frameworks that compile programs keep what these were compiled for.
    def __hash__(self) -> int:
        return hash(tuple(self.ranks))

    def __repr__(self) -> str:
        # As Horovod writes it.
        return (f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, "
                f"mpi_comm={self.mpi_comm})")


class ProcessSets:
    """The process sets that this process has registered. `world` is the set of all ranks."""

    def __init__(self) -> None:
        self.world = ProcessSet([])
        self.world.process_set_id = abi.OK
        self._registered: dict[int, ProcessSet] = {}

    def entered(self, first: Sequence[ProcessSet]) -> None:
        """The job has been joined with these sets, which have the numbers 1, 2, …"""
        self.world.ranks = list(range(LIBRARY.held.hvd_size()))
        for number, process_set in enumerate(first, 1):
            self._register(number, process_set)

    def left(self) -> None:
        """The job has been left: no set is in force any more."""
        for process_set in self._registered.values():
            process_set.process_set_id = None
        self._registered.clear()

    def add(self, process_set: ProcessSet | Sequence[int], members_only: bool = False,
            key: str = "") -> ProcessSet:
        """See add_process_set."""
        made = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
        if made.process_set_id is not None:
            raise errors.invalid(f"{made} is registered already")
        ranks = (ctypes.c_int32 * max(len(made.ranks), 1))(*made.ranks)
        number = ctypes.c_int32()
        if key and not members_only:
            raise errors.invalid("key is for sets that only their members make: members_only=True")

        def make() -> int:
            if members_only:
                status = LIBRARY.released.hvd_add_process_set_members(
                    ranks, len(made.ranks), key.encode(), ctypes.byref(number))
            else:
                status = LIBRARY.released.hvd_add_process_set(ranks, len(made.ranks),
                                                              ctypes.byref(number))
            if not status:  # also when a signal's handler has raised, and nobody waits any more
                self._register(number.value, made)
            return int(status)

        patience.call(make)
        return made

    def remove(self, process_set: ProcessSet) -> bool:
        """See remove_process_set."""
        number = process_set.process_set_id
        if number is None or number == 0 or number not in self._registered:
            return False

        def drop(gone: int = number) -> int:
            status = int(LIBRARY.released.hvd_remove_process_set(gone))
            if not status:
                self._registered.pop(gone).process_set_id = None
            return status

        patience.call(drop)
        return True

    def by_id(self) -> dict[int, list[int]]:
        """All sets in force, also those registered by init()'s caller: number → global ranks."""
        count = ctypes.c_int32()
        ids = (ctypes.c_int32 * 128)()
        LIBRARY.check(LIBRARY.held.hvd_process_set_ids(ids, len(ids), ctypes.byref(count)))
        return {number: _ranks_of(number) for number in ids[: count.value]}

    def _register(self, number: int, process_set: ProcessSet) -> None:
        process_set.process_set_id = number
        process_set.ranks = _ranks_of(number)
        self._registered[number] = process_set


def _ranks_of(number: int) -> list[int]:
    ranks = (ctypes.c_int32 * max(LIBRARY.held.hvd_process_set_size(number), 1))()
    LIBRARY.check(LIBRARY.held.hvd_process_set_ranks(number, ranks))
    return list(ranks)


def as_sets(given: object, world: ProcessSet) -> list[ProcessSet]:
    """The process sets that init() was given, as a list. "dynamic" is Horovod's word for what hvd
    always can: adding sets later."""
    if given is None or (isinstance(given, str) and given.lower() == "dynamic"):
        return []
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise errors.invalid('process_sets must be a list of ProcessSet, or "dynamic"')
    made = [one if isinstance(one, ProcessSet) else ProcessSet(one) for one in given]
    if any(one is world for one in made):
        raise errors.invalid("global_process_set is there anyhow; leave it out of process_sets")
    return made
