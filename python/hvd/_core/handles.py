# SPDX-License-Identifier: Apache-2.0
"""The handle that an asynchronous call returns."""
from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

from . import abi
from .library import LIBRARY
from .runtime import RUNTIME
from .streams import OnDevice

R = TypeVar("R", covariant=True)

_wait = LIBRARY.held.hvd_wait  # of what is done
_wait_for = LIBRARY.released.hvd_wait_for
_poll = LIBRARY.held.hvd_poll
_done = ctypes.c_int32
_byref = ctypes.byref
# The most microseconds that a signal waits for its handler.
_LOOK_AROUND_US = 100_000
LOOK_AROUND = ctypes.c_int64(_LOOK_AROUND_US)


class Handle(Generic[R]):
    """A collective under way, whose result is an R. It keeps its tensors alive until the work is
    done, also when the handle itself is dropped.

    Any thread may wait for it, several at once too: all of them get the result, or the error.
    """

    __slots__ = ("_number", "_kept", "_take", "_lock", "_result", "_error", "_device",
                 "__weakref__")

    def __init__(self, number: int, kept: object, result: R | None,
                 take: Callable[[int], R] | None = None, device: OnDevice | None = None) -> None:
        """`kept` is what libhvd reads and writes. `take(number)` waits and gives the result where
        that is not known before. `device`: of tensors on a GPU."""
        self._number = number
        self._kept = kept
        self._take = take
        self._lock = threading.Lock()
        self._result: Any = result  # an R as soon as the work is done
        self._error: Exception | None = None
        self._device = device

    def wait(self) -> R:
        """Waits until the work is done and returns its result: the output tensor, or what the call
        says. Raises the work's error. Again: the same. On a GPU it is done when the result is on
        its way; the stream goes on behind it."""
        RUNTIME.unseen = None
        mine = False
        if self._number:
            with self._lock:
                mine = self._number != 0
                if mine:
                    self._finish()
        if self._device is not None and not mine:
            self._device.wait_again()
        if self._error is not None:
            raise self._error
        result: R = self._result
        return result

    def wait_for(self, seconds: float) -> bool:
        """Whether wait() would return at once, after so long a time at most."""
        RUNTIME.unseen = None
        end = time.monotonic() + seconds
        done = _done()
        reference = _byref(done)
        while not done.value:
            left = int(1e6 * (end - time.monotonic()))
            number = self._number
            if not number or _wait_for(number, max(0, min(left, _LOOK_AROUND_US)), reference):
                return True  # another thread has taken the result; or the wait says why not
            if left <= 0:
                break
        return bool(done.value)

    def done(self) -> bool:
        """Whether wait() would return at once."""
        RUNTIME.unseen = None
        if not self._number:
            return True
        answer = ctypes.c_int32()
        status = _poll(self._number, ctypes.byref(answer))
        if status == abi.ERR_INVALID:
            with self._lock:  # another thread has waited for it, and is about to say so
                return not self._number
        # Any other error is the wait's to tell.
        return bool(status) or answer.value != 0

    def _finish(self) -> None:
        # A signal's handler may raise between two of these: then the work goes on, and so does this
        # handle.
        number = self._number
        done = _done()
        reference = _byref(done)
        while not done.value:
            if _wait_for(number, _LOOK_AROUND_US, reference):
                break  # the wait says why
        try:
            if self._device is None:
                self._take_result(number)
            else:
                try:
                    self._device.before_wait(number)
                finally:
                    self._take_result(number)
        except Exception as error:
            self._error = error
            self._result = None
        self._number = 0
        if self._device is not None:
            self._device.keep(self._kept)
        self._kept = None
        self._take = None

    def _take_result(self, number: int) -> None:
        if self._take is not None:
            self._result = self._take(number)
            return
        status = _wait(number)
        if status:
            raise LIBRARY.error(status)

    def __del__(self, orphans: deque[tuple[int, object, OnDevice | None]] = RUNTIME.orphans
                ) -> None:
        # One whose making has failed has nothing.
        if getattr(self, "_number", 0):
            orphans.append((self._number, self._kept, self._device))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a handle is of a call under way, and cannot be copied or pickled; "
                        "synchronize(handle), and copy the result")

    @property
    def device(self) -> OnDevice | None:
        """The `device` that a call on tensors of a GPU was given; None for other calls."""
        return self._device

    def __repr__(self) -> str:
        if not hasattr(self, "_error"):
            return "<hvd.Handle, half-made>"
        if self._number:
            return f"<hvd.Handle {self._number}, pending>"
        state = "done" if self._error is None else f"failed: {self._error}"
        return f"<hvd.Handle, {state}>"
