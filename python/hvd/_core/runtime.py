# SPDX-License-Identifier: Apache-2.0
"""This process's part in a job: joining and leaving, process sets, and what dropped handles keep.

One object, RUNTIME: Horovod's interface is functions without a subject.

Threads: any may call. A fork's child has a copy that knows its parent's place in the job, and
answers all else with NotInitializedError.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import warnings
from collections import Counter, deque
from collections.abc import Callable, Sequence

from . import abi, errors, patience
from .library import LIBRARY
from .process_sets import ProcessSet, ProcessSets, as_sets
from .streams import LINGERING, OnDevice

_MOST_CACHED = 8192
# Every later call fails with these as well.
_PLACE = ("hvd_rank", "hvd_size", "hvd_local_rank", "hvd_local_size", "hvd_cross_rank",
          "hvd_cross_size", "hvd_is_homogeneous")
_TOLD_BY_OTHERS = (abi.ERR_ABORTED, abi.ERR_NOT_INITIALIZED)


class Runtime:
    """The process's one; see the module."""

    def __init__(self) -> None:
        self.sets = ProcessSets()
        # Number, what it keeps, and its OnDevice or None.
        self.orphans: deque[tuple[int, object, OnDevice | None]] = deque()
        # Options of the last call that returned a handle, while nobody has asked for its end.
        self.unseen: object = None
        self.buckets: list[int] = []  # that were dropped in the middle of a step
        self.epoch = 0  # how often this process has joined
        self.before_leaving: list[Callable[[], object]] = []  # called then, by whoever leaves
        self.after_joining: list[Callable[[], object]] = []  # called then, by whoever joins
        self.after_join: list[Callable[[], object]] = []  # called when join() has ended
        self._owner = os.getpid()
        self._place: dict[str, int] = {}  # what _PLACE answered when this process joined
        self._at_exit = False
        self._first_sets: list[ProcessSet] = []  # that init() was given
        self._options: dict[tuple[object, ...], object] = {}
        self._buckets_made: Counter[tuple[int, ...]] = Counter()

    # ---- joining and leaving ----

    def init(self, comm: object, process_sets: object) -> None:
        """See hvd.init."""
        sets = as_sets(process_sets, self.sets.world)
        again = bool(LIBRARY.held.hvd_is_initialized())
        if again and self.epoch_now().is_over:
            self.shutdown()
            again = False
        if again and not sets:
            return
        if again:
            raise errors.invalid("hvd is initialized already; add_process_set() adds more sets")
        options, kept = _init_options(sets)
        if not self._at_exit:  # a handler of a signal may raise before init returns
            atexit.register(self.leave_at_exit)
            self._at_exit = True
        patience.call(lambda: LIBRARY.released.hvd_init(ctypes.byref(options)))
        del kept
        try:
            _check_comm(comm)
        except errors.Error:
            patience.call(LIBRARY.released.hvd_shutdown)
            raise
        self._joined(sets)

    def _joined(self, sets: list[ProcessSet]) -> None:
        self.epoch += 1
        self._place = {name: int(getattr(LIBRARY.held, name)()) for name in _PLACE}
        self._owner = os.getpid()
        self._first_sets = sets
        self.sets.entered(sets)
        if self.is_elastic():
            self._buckets_made.clear()  # members that are new have made none
        for tell in self.after_joining:
            tell()

    def reset(self) -> None:
        """Leaves the epoch, broken or not, and joins the next with the sets that init() was given.
        RemovedError: there is none for this process."""
        self._prepare_to_leave()
        options, kept = _init_options(self._first_sets)
        sets = self._first_sets
        try:
            patience.call(lambda: LIBRARY.released.hvd_reset(ctypes.byref(options), None))
        finally:
            self._left()
        del kept
        self._joined(sets)

    def epoch_now(self) -> abi.EpochStruct:
        """The epoch that this process has joined."""
        made = abi.EpochStruct(ctypes.sizeof(abi.EpochStruct))
        LIBRARY.check(LIBRARY.held.hvd_epoch(ctypes.byref(made)))
        return made

    def is_elastic(self) -> bool:
        """Whether members may come and go."""
        return bool(LIBRARY.held.hvd_is_elastic())

    def shutdown(self) -> None:
        """See hvd.shutdown."""
        self._prepare_to_leave()
        try:
            patience.call(LIBRARY.released.hvd_shutdown)
        finally:
            if not LIBRARY.held.hvd_is_initialized():  # a handler of a signal may have raised
                self._left()

    def _left(self) -> None:
        self._place.clear()
        self.sets.left()
        self.orphans.clear()  # nothing is in flight any more
        self.unseen = None
        while self.buckets:
            LIBRARY.released.hvd_bucket_destroy(self.buckets.pop())

    def rank(self) -> int:
        """This rank; NotInitializedError outside a job."""
        rank = int(LIBRARY.held.hvd_rank())
        if rank < 0:
            raise errors.not_initialized()
        return rank

    def place(self, name: str) -> int:
        """The answer of libhvd's function `name` about this process' place in the job. The child of
        a fork has its parent's: a data loader's worker asks which part of the data is its rank's.
        NotInitializedError outside a job."""
        value = int(getattr(LIBRARY.held, name)())
        if value < 0:
            if not self.is_inherited():
                raise errors.not_initialized()
            value = self._place[name]
        return value

    def is_inherited(self) -> bool:
        """Whether this is the child of a fork whose parent was in a job then."""
        return bool(self._place) and os.getpid() != self._owner

    def leave_at_exit(self) -> None:
        """The others see this rank leave, and hvdrun reports why. A fork's child has no part.
        Again: does nothing. A signal's handler that asks here for the end gets it: that is what
        this process is at."""
        if os.getpid() != self._owner:
            return
        for leave in (self._prepare_to_leave, LIBRARY.released.hvd_shutdown, self.orphans.clear):
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                leave()

    def _prepare_to_leave(self) -> None:
        LINGERING.wait()
        for tell in self.before_leaving:
            tell()

    # ---- handles that nobody holds any more ----

    def sweep(self) -> None:
        """Lets go of the tensors of dropped handles whose work is done, and says what failed."""
        done = ctypes.c_int32()
        for _ in range(len(self.orphans)):
            try:
                number, kept, device = self.orphans.popleft()
            except IndexError:
                return  # another thread is at it
            status = LIBRARY.held.hvd_poll(number, ctypes.byref(done))
            if not status and not done.value:
                self.orphans.append((number, kept, device))
                continue
            if device is None:
                status = status or LIBRARY.held.hvd_wait(number)
            else:
                status = status or device.end_dropped(number, kept)
            if status and status not in _TOLD_BY_OTHERS:
                warnings.warn(f"hvd: a call whose handle was dropped failed: "
                              f"{LIBRARY.error(status)}", RuntimeWarning, stacklevel=4)

    def refuse_again(self, options: object) -> None:
        """A name is free again when a program can know that its call is done. The call before this
        one had these very options, and nobody has asked for its end since: whether it is over by
        now is luck, so the same name is refused whether it is or not. DuplicateError, where they
        have a name."""
        name: bytes | None = abi.options_in(options).name
        if name is not None:
            raise errors.make(abi.ERR_DUPLICATE, "HVD_ERR_DUPLICATE", (
                f"tensor '{name.decode(errors='replace')}' has just been submitted by this rank; "
                "wait for it before submitting the same name again"))

    # ---- options ----

    def options(self, kind: str, name: str | None, process_set: ProcessSet,
                op: int = abi.AVERAGE, root: int = 0, prescale: float = 1.0,
                postscale: float = 1.0, compression: int = abi.COMPRESSION_NONE,
                contents: str = "") -> object:
        """A reference to an hvd_options_t of these values. Remembered: training asks for the same
        ones in each step. Each kind of collective has names of its own, as in Horovod, so that an
        allgather may be called as an allreduce is; "" adds nothing to the name."""
        key = (kind, name, process_set.process_set_id, op, root, prescale, postscale, compression,
               contents)
        found = self._options.get(key)
        if found is not None:
            return found
        if process_set.process_set_id is None:
            raise errors.invalid(f"{process_set} is not registered: give it to hvd.init() or "
                                 "hvd.add_process_set() first")
        if len(self._options) >= _MOST_CACHED:
            self._options.clear()
        whole = f"{kind}.{name}" if kind and name else name
        made = abi.OptionsStruct(
            ctypes.sizeof(abi.OptionsStruct), whole.encode() if whole else None,
            process_set.process_set_id, op, root, 0, prescale, postscale, compression, 0)
        made.contents = contents.encode() or None
        return self._options.setdefault(key, ctypes.byref(made))

    def next_bucket_name(self, process_set: ProcessSet) -> str:
        """libhvd counts buckets by process; members of a set may have made different numbers of
        them on other sets, and must agree all the same."""
        ranks = tuple(process_set.ranks)
        self._buckets_made[ranks] += 1
        name = f"bucket.{process_set.process_set_id}.{self._buckets_made[ranks]}"
        # Buckets of the epochs before may be there still.
        return f"{name}.{self.epoch_now().number}" if self.is_elastic() else name


def _init_options(sets: Sequence[ProcessSet]) -> tuple[abi.InitOptionsStruct, object]:
    lists = [(ctypes.c_int32 * max(len(one.ranks), 1))(*one.ranks) for one in sets]
    pointers = (ctypes.POINTER(ctypes.c_int32) * max(len(sets), 1))(
        *[ctypes.cast(one, ctypes.POINTER(ctypes.c_int32)) for one in lists])
    sizes = (ctypes.c_int32 * max(len(sets), 1))(*[len(one.ranks) for one in sets])
    options = abi.InitOptionsStruct()
    options.struct_size = ctypes.sizeof(abi.InitOptionsStruct)
    if sets:
        options.process_sets = ctypes.cast(
            pointers, ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)))
        options.process_set_sizes = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int32))
        options.process_set_count = len(sets)
    return options, (lists, pointers, sizes)


def _check_comm(comm: object) -> None:
    """Horovod may be told which ranks, or which MPI communicator, make the world. Here hvdrun says
    so; what means the same is accepted."""
    size = int(LIBRARY.held.hvd_size())
    if comm is None:
        return
    if hasattr(comm, "Get_size"):
        same = comm.Get_size() == size
    elif isinstance(comm, Sequence):
        same = len(comm) in (0, size) and sorted(comm) == list(range(len(comm)))
    else:
        same = False
    if not same:
        raise errors.unsupported("hvd.init(comm=…) cannot leave ranks out: start fewer with "
                                 "hvdrun -np, or make a process set of these ranks")


RUNTIME = Runtime()
