# SPDX-License-Identifier: Apache-2.0
"""libhvd's state of this process: tensors and bytes by name, which a commit keeps on each host."""
from __future__ import annotations

import contextlib
import ctypes
import weakref
from dataclasses import dataclass

from .._core import abi, errors, patience
from .._core.library import LIBRARY


@dataclass
class Entry:
    """A tensor's memory. `kept` keeps it; `kind` is an abi.STATE_…"""

    struct: abi.TensorStruct
    kept: object
    kind: int

    def place(self) -> tuple[object, ...]:
        """The values that tell whether libhvd has been told of it."""
        struct = self.struct
        shape = tuple(struct.shape[i] for i in range(struct.ndim))
        return struct.data, shape, struct.dtype, struct.device_id, struct.stream, self.kind


class Box:
    """One at a time in a process; `close` makes room for another."""

    def __init__(self) -> None:
        made = ctypes.c_void_p()
        LIBRARY.check(LIBRARY.held.hvd_state_create(ctypes.byref(made)))
        self._state = made.value or 0
        self._entries: dict[str, Entry] = {}
        self._places: dict[str, tuple[object, ...]] = {}
        self._may_hold = False  # tensors that nobody has added

    def close(self) -> None:
        """The commits that hosts keep stay."""
        LIBRARY.released.hvd_state_destroy(self._state)
        self._state = 0
        self._entries.clear()

    def replace(self, entries: dict[str, Entry]) -> None:
        """From now on these are the state's tensors, and no others. Held ones are given up: who
        wants them has copied them."""
        # A commit asks libhvd for no names: each would be a call.
        there = self._names() if self._may_hold else self._places.keys()
        for name in there - entries.keys():
            LIBRARY.check(LIBRARY.held.hvd_state_remove(self._state, name.encode()))
            self._places.pop(name, None)
        for name, entry in entries.items():
            place = entry.place()
            if self._places.get(name) != place:
                LIBRARY.check(LIBRARY.held.hvd_state_add(
                    self._state, name.encode(), ctypes.byref(entry.struct), entry.kind))
                self._places[name] = place
        self._entries = entries
        self._may_hold = False

    def put(self, name: str, data: bytes) -> None:
        """Bytes under a name."""
        LIBRARY.check(LIBRARY.held.hvd_state_put(self._state, name.encode(), data, len(data)))

    def get(self, name: str) -> bytes:
        """The bytes under a name; b"" when there are none."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        LIBRARY.check(LIBRARY.held.hvd_state_get(self._state, name.encode(), ctypes.byref(data),
                                                 ctypes.byref(size)))
        return ctypes.string_at(data.value, size.value) if data.value else b""

    def commit(self, synced: bool = False) -> bool:
        """All ranks call it. Whether the members are to change. `synced`: what a sync has made of
        the state, by which the program gets no further."""
        library = LIBRARY.released
        keep = library.hvd_state_keep if synced else library.hvd_state_commit
        try:
            patience.call(lambda: keep(self._state, None))
        except errors.HostsUpdatedInterrupt:
            return True
        return False

    def restore(self) -> None:
        """The newest commit, into the tensors. InvalidError when there is none."""
        self._may_hold = True
        patience.call(lambda: LIBRARY.released.hvd_state_restore(self._state, None))

    def sync(self) -> None:
        """All ranks call it when they have joined an epoch. That the members are to change is no
        error of it: all have the state then, and the next commit tells it again."""
        self._may_hold = True
        with contextlib.suppress(errors.HostsUpdatedInterrupt):
            patience.call(lambda: LIBRARY.released.hvd_state_sync(self._state))

    def held(self) -> dict[str, abi.TensorStruct]:
        """Tensors that came by restore or sync and that nobody has added. libhvd owns them, until
        the next call but `get`."""
        return {name: entry.tensor for name, entry in self._each() if entry.held}

    def _names(self) -> set[str]:
        return {name for name, _ in self._each()}

    def _each(self) -> list[tuple[str, abi.StateEntryStruct]]:
        count = ctypes.c_int32()
        LIBRARY.check(LIBRARY.held.hvd_state_count(self._state, ctypes.byref(count)))
        found = []
        for index in range(count.value):
            entry = abi.StateEntryStruct(ctypes.sizeof(abi.StateEntryStruct))
            entry.tensor.struct_size = ctypes.sizeof(abi.TensorStruct)
            LIBRARY.check(LIBRARY.held.hvd_state_entry(self._state, index, ctypes.byref(entry)))
            found.append((entry.name.decode(), entry))
        return found


class _Owner:
    """The owner of the process's box."""

    def __init__(self) -> None:
        self.box: Box | None = None
        self.whose: object = None
        self.committed: weakref.ref[object] | None = None  # who has committed last
        self.synced = 0


_OWNER = _Owner()


def box_of(owner: object) -> Box:
    """The process's box, which is the owner's from now on: another state's tensors leave it."""
    if _OWNER.box is not None and _OWNER.whose is not owner:
        _OWNER.box.close()
        _OWNER.box = None
    if _OWNER.box is None:
        _OWNER.box, _OWNER.whose = Box(), owner
    return _OWNER.box


def set_committed(owner: object) -> None:
    """The newest commit is the owner's."""
    _OWNER.committed = weakref.ref(owner)


def check_committed(owner: object) -> None:
    """InvalidError when the newest commit is another's of this process. Where it has made none, the
    newest is what its host keeps for it."""
    if _OWNER.committed is not None and _OWNER.committed() is not owner:
        raise errors.invalid("another state of this process has committed since this one did: the "
                             "commits that are kept are those of one state")


def synced() -> int:
    """The number of the epoch in which some state of this process has synced last."""
    return _OWNER.synced


def set_synced(epoch: int) -> None:
    """One has, in this epoch."""
    _OWNER.synced = epoch
