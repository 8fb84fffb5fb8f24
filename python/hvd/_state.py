# SPDX-License-Identifier: Apache-2.0
"""States of elastic jobs: what a program goes on with when the job's members change."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ._core import abi, errors
from ._elastic import epochs
from ._elastic.box import Box, Entry, box_of, check_committed, set_committed, set_synced, synced
from .basics import rank
from .objects import broadcast_bytes, broadcast_object, pickler

_OBJECTS = "hvd.objects"


class State:
    """The base of all states, as Horovod's. A program's own overrides save(), restore() and sync().

    `bcast_object` and `get_rank` are what Horovod's states are told: functions that broadcast an
    object from rank 0, and give the rank; hvd has its own."""

    def __init__(self, bcast_object: Callable[..., object] | None = None,
                 get_rank: Callable[[], int] | None = None) -> None:
        self._bcast_object = bcast_object or broadcast_object
        self._rank = get_rank or rank
        self._reset_callbacks: list[Callable[[], object]] = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], object]]) -> None:
        """Functions to call when this process has come into another epoch, to scale a learning rate
        by the new number of ranks, say. A process that is new calls none, and gets what they have
        done by sync()."""
        self._reset_callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """This process has come into another epoch: reset(), and the callbacks."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def on_hosts_updated(self, timestamp: float = 0, update_res: int = 0) -> None:
        """Called when check_host_updates() is about to raise; a program's own state may override
        it. Calling it raises nothing later, other than in Horovod: the launcher's word counts."""

    def commit(self) -> None:
        """Saves the state, and looks whether members are to change. All ranks call it at the same
        point. HostsUpdatedInterrupt: they are; HorovodInternalError: the epoch has broken."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """HostsUpdatedInterrupt, on all ranks alike, when members are to change. All call it."""
        try:
            epochs.check_hosts()
        except errors.HostsUpdatedInterrupt:
            self.on_hosts_updated()
            raise

    def save(self) -> None:
        """Keeps a copy of the state."""
        raise NotImplementedError

    def restore(self) -> None:
        """Goes back to what was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """All ranks get the state of rank 0, which always has the newest."""
        raise NotImplementedError

    def restores_in_sync(self) -> bool:
        """Whether sync() goes back, where the epoch says so, without restore()."""
        return False

    def reset(self) -> None:
        """Whatever depends on rank and size is made anew."""


class Part(Protocol):
    """A piece of a state that is kept in the box."""

    def entries(self) -> dict[str, Entry]:
        """Its tensors."""

    def outline(self) -> object:
        """The rest, to be pickled."""

    def load(self, outline: Any, held: dict[str, abi.TensorStruct]) -> None:
        """Becomes what the outline says. Tensors that it has contain the right numbers already;
        what it lacks is in `held`, or is made empty and filled by `level`."""

    def level(self, root: int, all_of_it: bool) -> None:
        """All ranks call it: tensors that may differ between hosts, or all, become root's."""

    def meet(self) -> None:
        """All ranks call it: what each has noted for itself becomes known to all."""


class KeptState(State):
    """A state that is kept in the hosts' memory: a commit is an agreement of all ranks, and
    outlives any of them. save(), commit() and sync() are called by all ranks."""

    def __init__(self, bcast_object: Callable[..., object] | None = None,
                 get_rank: Callable[[], int] | None = None) -> None:
        super().__init__(bcast_object, get_rank)
        self._told: bool | None = None  # by the last save: whether members are to change
        self._resets = False  # on_reset() is due
        self._syncs = False  # save() is called by sync()

    def _parts(self) -> dict[str, Part]:
        raise NotImplementedError

    def save(self) -> None:
        """All ranks call it: the state is kept on each host."""
        self._meet()
        self._stage()
        self._told = self._box().commit(synced=self._syncs)
        set_committed(self)

    def commit(self) -> None:
        """See State. All ranks have heard in save() whether members are to change: it asks nobody
        again."""
        self._told = None
        self.save()
        if self._told is not False:
            self.check_host_updates()

    def check_host_updates(self) -> None:
        """See State."""
        told, self._told = self._told, None
        try:
            if told:
                self.on_hosts_updated()
                raise errors.HostsUpdatedInterrupt
            super().check_host_updates()
        except errors.HostsUpdatedInterrupt:
            self._meet()  # those who are to go have noted things, too
            raise

    def restore(self) -> None:
        """Goes back to the last commit. InvalidError when another state has committed since: the
        process keeps one state's."""
        check_committed(self)
        epoch = epochs.current()
        if epoch.needs_state and synced() != epoch.number:
            return  # this host has none: sync() brings it
        staged = self._stage()
        self._box().restore()
        self._load(staged)

    def sync(self) -> None:
        """All ranks call it in each epoch: those who have to go back do, and those who need the
        state get it. When it returns all have the same. Again in an epoch: all get the root's."""
        epoch = epochs.current()
        if synced() == epoch.number:
            self._meet()
            self._level(max(epoch.root, 0), True)
        else:
            self._enter(epoch)
        self._syncs = True
        try:
            self.save()  # each epoch begins with what can be gone back to
        finally:
            self._syncs = False

    def _enter(self, epoch: epochs.Epoch) -> None:
        if not epoch.rolls_back:
            self._meet()
        staged = self._stage()
        self._box().sync()
        self._load(staged)
        resets = self.reset_if_due()
        self._level(max(epoch.root, 0), resets and epoch.survivors < epoch.size)
        set_synced(epoch.number)

    def reset_when_synced(self) -> None:
        """on_reset() belongs between going back and what others are sent: sync() calls it."""
        self._resets = True

    def reset_if_due(self) -> bool:
        """Whether it was: on_reset() has been called now."""
        due, self._resets = self._resets, False
        if due:
            self.on_reset()
        return due

    def restores_in_sync(self) -> bool:
        """See State. A program's own restore() has more to do."""
        return type(self).restore is KeptState.restore

    def _box(self) -> Box:
        return box_of(self)

    def _meet(self) -> None:
        for part in self._parts().values():
            part.meet()

    def _objects(self) -> bytes:
        return bytes(pickler.dumps({name: part.outline() for name, part in self._parts().items()}))

    def _stage(self) -> bytes:
        self._box().replace({_start(name) + key: entry for name, part in self._parts().items()
                             for key, entry in part.entries().items()})
        objects = self._objects()
        self._box().put(_OBJECTS, objects)
        return objects

    def _load(self, mine: bytes) -> None:
        theirs = self._box().get(_OBJECTS)
        if theirs and theirs != mine:
            self._take(theirs, self._box().held())
            self._stage()

    def _take(self, objects: bytes, held: dict[str, abi.TensorStruct]) -> None:
        outlines = pickler.loads(objects)
        if outlines.keys() != self._parts().keys():
            raise errors.invalid(f"the commit is another state's: of {', '.join(outlines)}, not "
                                 f"{', '.join(self._parts())}")
        for name, part in self._parts().items():
            start = _start(name)
            part.load(outlines[name], {key[len(start):]: struct for key, struct in held.items()
                                       if key.startswith(start)})

    def _level(self, root: int, all_of_it: bool) -> None:
        """Replaces what callbacks have changed, and what each host has its own of, by root's."""
        mine = self._objects()
        said = broadcast_bytes(bytes([all_of_it]) + mine, root, None)
        if said[1:] != mine:
            self._take(said[1:], {})
        for part in self._parts().values():
            part.level(root, said[0] == 1)


def _start(part: str) -> str:
    """With what the names of a part's tensors begin, and no other's."""
    return part.replace("\\", "\\\\").replace("/", "\\|") + "/"


class Attributes:
    """A part: attributes of the state, which are pickled."""

    def __init__(self, state: object, names: Iterable[str]) -> None:
        self._state = state
        self._names = list(names)

    def entries(self) -> dict[str, Entry]:
        return {}

    def outline(self) -> dict[str, object]:
        return {name: getattr(self._state, name) for name in self._names}

    def load(self, outline: dict[str, object], held: dict[str, abi.TensorStruct]) -> None:
        if outline.keys() != set(self._names):
            raise errors.invalid(f"the commit is another state's: with {', '.join(outline)}, not "
                                 f"{', '.join(self._names)}")
        for name, value in outline.items():
            setattr(self._state, name, value)

    def level(self, root: int, all_of_it: bool) -> None:
        """They are within the outlines."""

    def meet(self) -> None:
        """Each rank has the same."""


class ObjectState(KeptState):
    """A state of plain objects: each keyword becomes an attribute, which is pickled."""

    def __init__(self, bcast_object: Callable[..., object] | None = None,
                 get_rank: Callable[[], int] | None = None, **kwargs: object) -> None:
        super().__init__(bcast_object, get_rank)
        self._attributes = Attributes(self, kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            """The keyword's value."""

        def __setattr__(self, name: str, value: Any) -> None:
            """It may be changed."""

    def _parts(self) -> dict[str, Part]:
        return {"hvd.attributes": self._attributes}
