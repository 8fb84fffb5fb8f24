# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's driver, for the little that arrays on GPUs need of it beside libhvd: events, and where
an address lies. Loaded at the first use; a process without a GPU never does.

Threads: any. Each call enters the GPU's primary context, which libhvd and frameworks use too, and
leaves it again.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_uint64, c_void_p

from . import abi, errors

_NAME = "libcuda.so.1"
_NOT_READY = 600
_WITHOUT_TIMING = 2
_DEVICE_OF_POINTER = 9

_CALLS: tuple[tuple[str, list[type[ctypes._CDataType]]], ...] = (
    ("cuInit", [c_uint]), ("cuDeviceGet", [POINTER(c_int), c_int]),
    ("cuGetErrorName", [c_int, POINTER(c_char_p)]),
    ("cuDevicePrimaryCtxRetain", [POINTER(c_void_p), c_int]),
    ("cuDevicePrimaryCtxRelease_v2", [c_int]), ("cuCtxPushCurrent_v2", [c_void_p]),
    ("cuCtxPopCurrent_v2", [POINTER(c_void_p)]), ("cuCtxSynchronize", []),
    ("cuPointerGetAttribute", [c_void_p, c_int, c_uint64]),
    ("cuEventCreate", [POINTER(c_void_p), c_uint]), ("cuEventRecord", [c_void_p, c_void_p]),
    ("cuEventQuery", [c_void_p]), ("cuEventSynchronize", [c_void_p]),
    ("cuEventDestroy_v2", [c_void_p]), ("cuStreamWaitEvent", [c_void_p, c_void_p, c_uint]))


class Driver:
    """The library. UnsupportedError when there is none; InternalError names a call that fails."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(_NAME)
        except OSError as error:
            raise errors.unsupported(f"arrays on GPUs need NVIDIA's driver, which this process "
                                     f"cannot load: {error}") from None
        for name, arguments in _CALLS:
            function = getattr(self._library, name)
            function.restype, function.argtypes = c_int, arguments
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: object) -> None:
        result = getattr(self._library, name)(*arguments)
        if result:
            raise self._error(name, result)

    def ask(self, name: str, *arguments: object) -> bool:
        """False: not yet."""
        result: int = getattr(self._library, name)(*arguments)
        if result not in (0, _NOT_READY):
            raise self._error(name, result)
        return result == 0

    def _error(self, name: str, result: int) -> errors.Error:
        said = c_char_p()
        self._library.cuGetErrorName(result, byref(said))
        words = said.value.decode() if said.value else f"error {result}"
        return errors.make(abi.ERR_INTERNAL, "HVD_ERR_INTERNAL",
                           f"NVIDIA's driver: {name} fails: {words}")

    @contextlib.contextmanager
    def entered(self, device: int) -> Iterator[None]:
        """Within, the calling thread's context is the GPU's."""
        number, context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(number), device)
        self.call("cuDevicePrimaryCtxRetain", byref(context), number)
        try:
            self.call("cuCtxPushCurrent_v2", context)
            try:
                yield
            finally:
                self.call("cuCtxPopCurrent_v2", byref(context))
        finally:
            self.call("cuDevicePrimaryCtxRelease_v2", number)


@functools.cache
def driver() -> Driver:
    """The process's one."""
    return Driver()


class Event:
    """The work on `stream`, a cudaStream_t, at the moment. To be ended by close()."""

    __slots__ = ("device", "_event")

    def __init__(self, device: int, stream: int) -> None:
        self.device = device
        self._event = c_void_p()
        with driver().entered(device):
            driver().call("cuEventCreate", byref(self._event), _WITHOUT_TIMING)
            driver().call("cuEventRecord", self._event, stream)

    def has_happened(self) -> bool:
        with driver().entered(self.device):
            return driver().ask("cuEventQuery", self._event)

    def wait(self) -> bool:
        """The host waits; Python's lock is free meanwhile. Returns True."""
        with driver().entered(self.device):
            driver().call("cuEventSynchronize", self._event)
        return True

    def make_wait(self, stream: int) -> None:
        """Puts what is asked of `stream` from now on after it."""
        with driver().entered(self.device):
            driver().call("cuStreamWaitEvent", stream, self._event, 0)

    def close(self) -> None:
        with driver().entered(self.device):
            driver().call("cuEventDestroy_v2", self._event)


def order(device: int, first: int, then: int) -> None:
    """Puts what is asked of stream `then` from now on after what is on `first`."""
    if first == then:
        return
    event = Event(device, first)
    try:
        event.make_wait(then)
    finally:
        event.close()


def wait_for(device: int) -> None:
    """The host waits for all that is on the GPU, whoever has put it there. Python's lock is free
    meanwhile."""
    with driver().entered(device):
        driver().call("cuCtxSynchronize")


def device_of(address: int) -> int:
    """The GPU where it lies. InternalError for what is no memory that the driver knows."""
    number = c_int()
    driver().call("cuPointerGetAttribute", byref(number), _DEVICE_OF_POINTER, address)
    return number.value
