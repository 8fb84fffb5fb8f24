# SPDX-License-Identifier: Apache-2.0
"""Which CUDA stream a call belongs to, and what is kept until the device is through with it.

A call begins behind what is on its stream, and once it has been waited for, the stream goes on
behind it. That is the stream which the array names; else the one of `on_stream`; else the default
one. Streams are numbers here, cudaStream_t; 0 is the default stream.

Threads: any. `on_stream` is the calling thread's (or task's) own.
"""
from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Protocol

from . import driver, errors
from .library import LIBRARY

DEFAULT = 0
_LEGACY = 1  # another name of the default stream

_chosen: ContextVar[int | None] = ContextVar("hvd.on_stream", default=None)


def number_of(stream: object) -> int:
    """The number of a stream as frameworks have them: a number; an object with __cuda_stream__;
    torch's, CuPy's and numba's."""
    if hasattr(stream, "__cuda_stream__"):
        asked = stream.__cuda_stream__
        stream = (asked() if callable(asked) else asked)[1]
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            stream = getattr(stream, name)
            break
    stream = getattr(stream, "value", stream)  # numba's handle is a c_void_p
    if stream is None:
        return DEFAULT
    if not isinstance(stream, int):
        raise TypeError(f"{type(stream).__name__} is no CUDA stream: hvd.on_stream takes its "
                        "number (cudaStream_t), or an object of torch, CuPy, numba or cuda.core")
    if stream < 0:
        raise errors.invalid(f"{stream} is no CUDA stream")
    return DEFAULT if stream == _LEGACY else stream


@contextlib.contextmanager
def on_stream(stream: object) -> Iterator[None]:
    """Within, arrays on GPUs that name no stream of their own belong to this one; and a wait has it
    go on behind the result, besides the call's own."""
    token = _chosen.set(number_of(stream))
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen() -> int:
    """The stream of arrays that name none."""
    found = _chosen.get()
    return DEFAULT if found is None else found


class OnDevice(Protocol):
    """A call on tensors of a GPU, where a result is there behind a stream and not for the host."""

    def before_wait(self, number: int) -> None:
        """It is done: the waiter's stream is to go on behind it. The handle stays."""

    def wait_again(self) -> None:
        """The same, when the handle has gone."""

    def keep(self, tensors: object) -> None:
        """It has been waited for; the device may still be at its tensors."""

    def end_dropped(self, number: int, tensors: object) -> int:
        """It is done, and nobody will wait for it. Returns how it went, as hvd_wait."""


class DeviceCall:
    """The GPU and stream of a call on arrays; see OnDevice."""

    __slots__ = ("device", "stream")

    def __init__(self, device: int, stream: int) -> None:
        self.device = device
        self.stream = stream

    def before_wait(self, number: int) -> None:
        """The call is done, and about to be waited for."""
        stream = _chosen.get()
        if stream is not None and stream != self.stream:
            LIBRARY.check(LIBRARY.released.hvd_wait_on(number, stream))

    def wait_again(self) -> None:
        """It has been waited for before, perhaps by another thread."""
        stream = _chosen.get()
        if stream is not None:
            driver.order(self.device, self.stream, stream)

    def keep(self, tensors: object) -> None:
        """It has been waited for. Its tensors are kept until the device is through with them."""
        LINGERING.add(self.device, self.stream, tensors)

    def end_dropped(self, number: int, tensors: object) -> int:
        """It is done, and nobody will wait for it. Returns how it went, as hvd_wait."""
        # By the default stream: the call's own may have been destroyed.
        status = int(LIBRARY.held.hvd_wait_on(number, DEFAULT))
        LIBRARY.held.hvd_release(number)
        LINGERING.add(self.device, DEFAULT, tensors)
        return status


class Lingering:
    """Tensors that nobody but the device needs any more. Any thread."""

    def __init__(self) -> None:
        self._kept: deque[tuple[driver.Event, object]] = deque()
        self._lock = threading.Lock()  # of who takes from it

    def add(self, device: int, stream: int, tensors: object) -> None:
        """Until what is on the stream has happened."""
        self.sweep()
        with contextlib.suppress(errors.Error):  # a GPU that has failed is through with everything
            self._kept.append((driver.Event(device, stream), tensors))

    def sweep(self) -> None:
        """Lets go of those that the device is through with."""
        self._empty(driver.Event.has_happened)

    def wait(self) -> None:
        """Waits for the device, and lets go of all."""
        self._empty(driver.Event.wait)

    def _empty(self, is_over: Callable[[driver.Event], bool]) -> None:
        if not self._lock.acquire(blocking=False):
            return  # another thread is at it, or this one: a tensor that is dropped may call hvd
        over = []
        try:
            while self._kept and _ends(self._kept[0][0], is_over):
                over.append(self._kept.popleft())
        finally:
            self._lock.release()
        del over  # when the lock is free


def _ends(event: driver.Event, is_over: Callable[[driver.Event], bool]) -> bool:
    """Whether it is over; it is ended then."""
    with contextlib.suppress(errors.Error):  # a GPU that has failed is through with everything
        if not is_over(event):
            return False
        event.close()
    return True


LINGERING = Lingering()
