# SPDX-License-Identifier: Apache-2.0
"""Finds that compiled programs of different ranks wait for one another for ever, and ends that.

XLA runs steps of a program one after the other where it has given them the same memory: always the
loops (scan, while, fori, map) that have calls in them, and now and then what stands around a call.
Ranks that have such calls in different orders wait for each other. Nothing but the runs themselves
shows that, so each process has a thread that looks at its programs now and then. Where calls have
been under way for a while, and nothing has gone on, it tells the job's store so: which calls its
programs wait in, and which they have besides. The lowest of the ranks concerned judges: each call
that one of them waits in is one that another has not come to, since that waits itself. When all of
them have agreed that nothing has gone on there, they end these calls with one MismatchError.

Threads: one for the process, from its first compiled program with calls on.
"""
from __future__ import annotations

import json
import os
import sys
import threading
import time
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._core import errors
from .._core.library import LIBRARY
from .._core.runtime import RUNTIME
from ..store import Store
from . import handlers
from .deadlock import Place, explain, find

# How long calls are under way with nothing going on before it is looked into; 0: never. It is as
# long as a program may wait for something that this thread cannot see.
SETTING = "HVD_JAX_ORDER_SECONDS"
_SECONDS = 20.0
_LOOKS = 8  # in that time
# The time is so many times as long where some thread of the process computes, which may be XLA's:
# longer than any step of a program takes between two of its calls.
_WHERE_ANOTHER_COMPUTES = 30
# All look several times in this.
_AGREEMENT_S = 60.0

_KEY = "hvd.jax.orders"
_BETWEEN_PARTS = "\x1e"
_lock = threading.Lock()
_watching: list[int] = []  # the process that has the thread: a fork's child has none


def watch() -> None:
    """From now on, if that is wanted."""
    with _lock:
        seconds = _seconds()
        if seconds <= 0 or os.getpid() in _watching:
            return
        _watching[:] = [os.getpid()]
        threading.Thread(target=Watch(seconds).run, name="hvd-jax-orders", daemon=True).start()


def _seconds() -> float:
    told = os.environ.get(SETTING, "")
    try:
        return float(told) if told else _SECONDS
    except ValueError:
        raise errors.invalid(f"{SETTING} is '{told}'; give seconds, or 0 for never") from None


@dataclass
class _Seen:
    """The facts that a look has shown."""

    changes: int  # how often anything has changed
    waits: frozenset[str]  # the keys of the calls under way
    has: frozenset[str]  # of all calls of their programs


class Watch:
    """The thread's own."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.store = Store()
        self.told = 0  # how often this rank has told the store what it waits in
        self.posted = ""  # the key under which it stands there; empty: it does not

    def run(self) -> None:
        still = _Still(self.seconds)
        pause = self.seconds / _LOOKS
        while True:
            time.sleep(pause)
            try:
                seen = _look()
                if not still.looked(seen):
                    pause = self.seconds / _LOOKS
                    self._withdraw()
                elif LIBRARY.held.hvd_is_initialized() and LIBRARY.held.hvd_size() > 1:
                    pause = min(pause * 1.5, self.seconds)  # the store has many to answer
                    self._stands(seen)
            except errors.Error:  # the job or the epoch ends, which its calls are told
                self.posted = ""

    def _stands(self, seen: _Seen) -> None:
        """Nothing goes on here, and perhaps nowhere."""
        rank, mine = LIBRARY.held.hvd_rank(), _place(seen)
        if not self.posted:
            self.told += 1
            self.posted = f"{_epoch()}/{rank}"
            self.store.set(f"{_KEY}/place/{self.posted}", json.dumps(
                {"number": self.told, "place": mine.as_json()}))
        if rank == min(mine.concerned(), default=-1):
            self._judge(rank)
        self._obey(rank, seen)

    def _withdraw(self) -> None:
        if self.posted:
            posted, self.posted = self.posted, ""
            self.store.delete(f"{_KEY}/place/{posted}")

    def _judge(self, rank: int) -> None:
        numbers: dict[int, int] = {}

        def place_of(other: int) -> Place | None:
            told = self._read(f"place/{_epoch()}/{other}")
            if told is None:
                return None
            numbers[other] = told["number"]
            return Place.of_json(told["place"])

        places = find(rank, place_of)
        if not places or min(places) != rank:
            return
        told = {"id": f"{_epoch()}/{rank}/{self.told}", "ranks": len(places),
                "keys": sorted({key for place in places.values() for key in place.waits}),
                "text": explain(places)}
        for other in places:
            self.store.set(f"{_KEY}/judgement/{_epoch()}/{other}",
                           json.dumps({"number": numbers[other], **told}))

    def _obey(self, rank: int, seen: _Seen) -> None:
        """Does what the judge says, when all whom it concerns have agreed."""
        at = f"judgement/{_epoch()}/{rank}"
        told = self._read(at)
        if told is None or told["number"] != self.told:
            return
        self.store.delete(f"{_KEY}/{at}")
        handlers.judge(told["keys"], told["text"])
        agreed = False
        try:
            agreed = self._all_agree(told, _look().changes == seen.changes)
        finally:
            if agreed:
                # Not what ends here meanwhile, since others do the same.
                handlers.end(set(told["keys"]) - seen.waits)
            else:
                handlers.acquit(told["keys"])
        if not agreed:
            self._withdraw()

    def _all_agree(self, told: Any, agree: bool) -> bool:
        """That the calls are to end. It is decided once, for all of them."""
        decision = f"{_KEY}/ends/{told['id']}"
        if agree:
            if self.store.add(f"{_KEY}/agreed/{told['id']}", 1) == told["ranks"]:
                return self.store.compare_set(decision, b"", b"yes") == b"yes"
            try:
                return self.store.get(decision, _AGREEMENT_S) == b"yes"
            except errors.TimedOutError:
                pass
        return self.store.compare_set(decision, b"", b"no") == b"yes"

    def _read(self, key: str) -> Any:
        name = f"{_KEY}/{key}"
        try:
            return json.loads(self.store.get(name, 0))
        except errors.TimedOutError:
            return None


class _Still:
    """Whether nothing has gone on for long enough."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.changes = -1
        self.since = 0.0
        self.looks = 0
        self.computed = 0

    def looked(self, seen: _Seen) -> bool:
        now = time.monotonic()
        if not seen.waits or seen.changes != self.changes or _calls_python():
            self.changes = seen.changes
            self._begin(now)
            return False
        self.looks += 1
        self.computed += _computes()
        if now - self.since < self.seconds:
            return False
        if self.computed * 4 <= self.looks:
            return True
        return now - self.since >= self.seconds * _WHERE_ANOTHER_COMPUTES

    def _begin(self, now: float) -> None:
        self.since, self.looks, self.computed = now, 0, 0


def _look() -> _Seen:
    changes, text = handlers.look()
    waits, has = (part.split(handlers.BETWEEN_KEYS) for part in text.split(_BETWEEN_PARTS))
    return _Seen(changes, *(frozenset(filter(None, keys)) for keys in (waits, has)))


def _place(seen: _Seen) -> Place:
    ranks = RUNTIME.sets.by_id()
    members = {key: ranks.get(int(key.partition(":")[0]), []) for key in seen.waits}
    return Place(seen.waits, seen.has - seen.waits, members)


def _epoch() -> int:
    return int(RUNTIME.epoch_now().number)


def _calls_python() -> bool:
    """Whether a program is within a function of Python's (io_callback), which may wait for
    anything."""
    end = os.path.join("jax", "_src", "callback.py")
    return any(_is_within(frame, end) for frame in sys._current_frames().values())


def _is_within(frame: types.FrameType | None, end: str) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith(end):
            return True
        frame = frame.f_back
    return False


def _computes() -> bool:
    """Whether a thread runs, or could if it had a core, that is not libhvd's. (hvd-jax: of a
    program's rest.)"""
    mine = threading.get_native_id()
    for task in _tasks():
        if task == str(mine):
            continue
        try:
            with open(f"/proc/self/task/{task}/stat") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
        except OSError:
            continue  # it has ended
        if rest[1:2] in ("R", "D") and (name == "hvd-jax" or not name.startswith("hvd")):
            return True
    return False


def _tasks() -> Iterable[str]:
    try:
        return os.listdir("/proc/self/task")
    except OSError:
        return ()
