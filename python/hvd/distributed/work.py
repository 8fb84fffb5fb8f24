# SPDX-License-Identifier: Apache-2.0
"""The work that a collective of backend "hvd" returns, and who completes its future.

A future is completed by threads of its own (hvd_queue_* tells them which calls are done): the
thread that waits for a future may be C++, which can only sleep. They start with the first call that
may be asked for its future.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

from .._core import abi
from .._core.errors import Error
from .._core.handles import Handle
from .._core.library import LIBRARY
from .._torch.cuda import DeviceCall, new_future, on_stream_of
from .forms import NO_TIMEOUT, Timeout, as_time
from .tensors import Landings

_Future = torch.futures.Future[list[torch.Tensor]]
_AT_ONCE = 64
_FREE_THREADS = 2


class Work(dist.Work):
    """A collective under way. Any thread may wait for it, several at once too."""

    def __init__(self, what: str, timeout: timedelta, value: list[torch.Tensor],
                 landings: Landings) -> None:
        """`value` is what the future gives; `landings` are done first."""
        super().__init__()
        self._what = what
        self._timeout = timeout
        self._value = value
        self._landings = landings
        self._handle: Handle[object] | None = None
        self._device: DeviceCall | None = None  # of tensors on a GPU
        # A future that is completed here, whether it went well or not, and what is shown of it,
        # with the error.
        self._ended: _Future | None = None
        self._future: _Future | None = None
        self.queued = False  # whether the queue will tell
        self._told = False  # by the queue
        self._claimed = False  # by the thread that completes the future
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def start(self, submit: Callable[[], Handle[object]]) -> Work:
        """Submits the call. It may be done, and `complete` be called, before this returns."""
        with self._lock:
            self._handle = submit()
            device = self._handle.device
            assert device is None or isinstance(device, DeviceCall)  # torch tensors have no other
            self._device = device
        return self

    def wait(self, timeout: Timeout = NO_TIMEOUT) -> bool:
        """Waits until the results are in their tensors. Raises the collective's error; DistBackend-
        Error when it takes longer than the timeout, or the group's: it stays under way then.
        On a GPU the current stream goes on behind the results, which are on their way then."""
        given = as_time(timeout)
        limit = given if given > NO_TIMEOUT else self._timeout
        handle = self._handle  # another thread may take it away
        if handle is not None and not handle.wait_for(limit.total_seconds()):
            raise dist.DistBackendError(
                f"{self._what} is not done after {limit.total_seconds():g} s. A rank that has not "
                "called it, or is slow, holds it up; hvdrun's warnings say which.")
        self._settle()
        if self._device is not None:
            self._device.wait_again()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """As wait()."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the results are in their tensors, or it has failed."""
        handle = self._handle
        if handle is not None and not handle.done():
            return False
        self._settle()
        return True

    def is_success(self) -> bool:
        """Whether it is done and has not failed."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """The error of a collective that is done."""
        return self._error

    def result(self) -> list[torch.Tensor]:
        """The outputs, when it is done."""
        self.wait()
        return self._value

    def get_future(self) -> _Future:
        """Completed with the outputs, or the error, by a thread of hvd's or one that waits for the
        work: when wait() has returned it is done. Whoever waits for it gets the error as a
        RuntimeError (hvd.torch.error_of)."""
        with self._lock:
            if self._future is None:
                self._ended = new_future(self._device)
                # An exception that a future is given by set_exception is an error for Python alone.
                # C++ takes it for a value, as DDP's reducer does, and ends by SIGSEGV. An exception
                # that a callback raises is an error for both.
                self._future = self._ended.then(self._value_or_error)
                if not self.queued and self._handle is not None:  # rare: of a send or recv
                    threading.Thread(target=self._wait_and_tell, daemon=True).start()
            future, ended = self._future, self._ended
            is_done = self._told or self._handle is None
        if is_done and ended is not None:
            self._tell(ended)
            if not future.done():  # another thread is completing it
                with contextlib.suppress(RuntimeError):  # the work's error
                    future.wait()
        return future

    def _value_or_error(self, _: object) -> list[torch.Tensor]:
        if isinstance(self._error, Error):  # only a text gets through C++
            raise RuntimeError(f"{self._error.status}: {self._error}")
        if self._error is not None:
            raise self._error
        return self._value

    def _wait_and_tell(self) -> None:
        with contextlib.suppress(Exception):  # the future tells it
            self.wait()
        self.complete()

    def complete(self) -> None:
        """The queue says that the call is done."""
        with self._lock:  # start() has it until the handle is known
            self._told = True
            ended = self._ended
        if ended is not None:
            self._tell(ended)

    def _settle(self) -> None:
        """Takes what is done, and sees to it that the future says so: another thread may be about
        to."""
        self._finish()
        with self._lock:
            future, ended = self._future, self._ended
        if future is None or ended is None:
            return
        self._tell(ended)
        if not future.done():
            with contextlib.suppress(RuntimeError):  # the work's error
                future.wait()

    def _tell(self, ended: _Future) -> None:
        self._finish()
        with self._lock:
            if self._claimed:
                return
            self._claimed = True
        with on_stream_of(self._device):  # where who waits for the future finds the results
            ended.set_result([] if self._error is not None else self._value)

    def _finish(self) -> None:
        """Takes what is done; never waits for other ranks."""
        handle = self._handle
        if handle is None:
            return
        with self._lock:
            if self._handle is None:
                return
            try:
                handle.wait()
                with on_stream_of(self._device):
                    landed = self._landings.land()
                if self._device is not None:
                    self._device.keep(landed)
            except Exception as error:  # whoever waits gets it
                self._error = error
            self._handle = None


class Completions:
    """Tells each Work that was entered when its call is done. Until then it keeps
    the Work, and so its tensors."""

    def __init__(self) -> None:
        self._queue = ctypes.c_void_p()
        self._works: dict[int, Work] = {}
        self._last = 0
        self._lock = threading.Lock()
        self._owner = 0
        self._done: deque[Work] = deque()
        self._turn = threading.Lock()  # who takes from the queue
        self._free = 0  # threads that are not completing a future

    def enter(self, options: object, work: Work) -> object:
        """The options with the queue and a tag of the work's."""
        if self._owner != os.getpid():
            self._start()
        made = abi.OptionsStruct.from_buffer_copy(abi.options_in(options))
        made.queue = self._queue
        with self._lock:
            self._last += 1
            made.tag = self._last
            work.queued = True
            self._works[self._last] = work
        return ctypes.byref(made)

    def leave(self, options: object) -> None:
        """The call with these options was refused."""
        with self._lock:
            self._works.pop(abi.options_in(options).tag, None)

    def _start(self) -> None:
        with self._lock:
            if self._owner == os.getpid():
                return
            LIBRARY.check(LIBRARY.held.hvd_queue_create(ctypes.byref(self._queue)))
            self._works.clear()
            self._done.clear()
            self._owner = os.getpid()
            self._turn = threading.Lock()
            self._free = 0
            self._add_thread()

    def _add_thread(self) -> None:
        self._free += 1
        threading.Thread(target=self._serve, name="hvd futures", daemon=True).start()

    def _serve(self) -> None:
        # Code that waits for a future's end may itself wait for another future (PowerSGD's hook
        # does). A thread that is about to run such code therefore sees to it that another one is
        # free.
        while True:
            with self._turn:
                work = self._next()
            with self._lock:
                self._free -= 1
                if self._free == 0:
                    self._add_thread()
            work.complete()
            del work  # and its tensors, until there is another
            with self._lock:
                if self._free >= _FREE_THREADS:
                    return
                self._free += 1

    def _next(self) -> Work:
        row = (abi.CompletionStruct * _AT_ONCE)()
        count = ctypes.c_int32()
        poll = select.poll()
        poll.register(LIBRARY.held.hvd_queue_fd(self._queue), select.POLLIN)
        while not self._done:
            poll.poll()
            LIBRARY.held.hvd_queue_next(self._queue, row, _AT_ONCE, ctypes.byref(count))
            with self._lock:
                works = [self._works.pop(one.tag, None) for one in row[: count.value]]
            self._done.extend(work for work in works if work is not None)
        return self._done.popleft()


COMPLETIONS = Completions()
