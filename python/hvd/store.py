# SPDX-License-Identifier: Apache-2.0
"""The job's key-value store, for small agreements of a program's own.

    store = hvd.Store()
    if os.environ["RANK"] == "0":
        store.set("run", b"2026-11")
    run = store.get("run")

Every process of the job sees the same keys, on all hosts; they lie in hvdrun, need no port, and
end with the job. It works before init(), after shutdown() and without either. Without hvdrun the
process has a store of its own.
"""
from __future__ import annotations

import ctypes
from collections.abc import Iterable
from datetime import timedelta

from ._core import abi, errors, patience
from ._core.library import LIBRARY

__all__ = ["Store", "Timeout"]

# Seconds; None: until the job ends.
Timeout = float | timedelta | None

_FOREVER = float("inf")
# The longest time that a signal waits for its handler.
_LOOK_AROUND_US = 100_000
_lib = LIBRARY.released
_byref = ctypes.byref


class _Own:
    """The store's own timeout is meant."""


_OWN = _Own()


class Store:
    """Any thread may use it, several at once; all objects of a job see the same keys.

    Keys are text of 1 to 4096 bytes without NUL, values any bytes up to 16 MiB, and the whole
    store holds 256 MiB (InvalidError and UnsupportedError name the limits). `timeout` is for get()
    and wait(): TimedOutError names the keys that nobody has set. A job that is being stopped ends
    every call, and the end of an epoch those that wait: AbortedError names the cause. While a call
    waits, other threads run, and signals have their handlers called.
    """

    def __init__(self, timeout: Timeout = 300.0) -> None:
        self.timeout = timeout

    def set(self, key: str, value: bytes | str) -> None:
        """Sets the key, whether it is there or not. Text is UTF-8."""
        data = _bytes(value)
        name = _key(key)
        patience.call(lambda: _lib.hvd_store_set(name, data, len(data)))

    def get(self, key: str, timeout: Timeout | _Own = _OWN) -> bytes:
        """Waits until the key is there, and returns its value."""
        call = ctypes.c_void_p()
        LIBRARY.check(_lib.hvd_store_begin_get(_key(key), self._seconds(timeout), _byref(call)))
        value = _finish(call)
        assert value is not None
        return value

    def add(self, key: str, amount: int) -> int:
        """Adds to the number that the key has as decimal text, 0 if it is not there, and returns
        the sum. All ranks together may count with it: no addition is lost."""
        total = ctypes.c_int64()
        name, more = _key(key), _int64(amount)
        patience.call(lambda: _lib.hvd_store_add(name, more, _byref(total)))
        return total.value

    def compare_set(self, key: str, expected: bytes | str, desired: bytes | str) -> bytes | None:
        """Sets the key to `desired` if it is `expected`, where a key that is not there counts as
        empty: of several that ask, one wins. Returns what is there afterwards; None: still
        nothing."""
        old, new = _bytes(expected), _bytes(desired)
        now = abi.StoreValueStruct()
        name = _key(key)
        patience.call(lambda: _lib.hvd_store_compare_set(
            name, _byref(_value(old)), _byref(_value(new)), _byref(now)))
        return _take(now)

    def delete(self, key: str) -> bool:
        """Whether it was there."""
        existed = ctypes.c_int32()
        name = _key(key)
        patience.call(lambda: _lib.hvd_store_delete(name, _byref(existed)))
        return existed.value == 1

    def wait(self, keys: Iterable[str], timeout: Timeout | _Own = _OWN) -> None:
        """Waits until all keys are there at one time."""
        if isinstance(keys, str):
            raise errors.invalid("keys are several texts; write [key] for one")
        names = [_key(key) for key in keys]
        call = ctypes.c_void_p()
        LIBRARY.check(_lib.hvd_store_begin_wait(
            (ctypes.c_char_p * len(names))(*names), len(names), self._seconds(timeout),
            _byref(call)))
        _finish(call)

    def check(self, keys: Iterable[str]) -> bool:
        """Whether all keys are there now."""
        try:
            self.wait(keys, 0)
        except errors.TimedOutError:
            return False
        return True

    def num_keys(self) -> int:
        """How many there are."""
        count = ctypes.c_int64()
        patience.call(lambda: _lib.hvd_store_count(_byref(count)))
        return count.value

    def _seconds(self, timeout: Timeout | _Own) -> float:
        wanted = self.timeout if isinstance(timeout, _Own) else timeout
        if wanted is None:
            return _FOREVER
        return wanted.total_seconds() if isinstance(wanted, timedelta) else float(wanted)


def _finish(call: ctypes.c_void_p) -> bytes | None:
    """Waits for its end and takes its value; a signal's handler may run meanwhile, and raise."""
    done = ctypes.c_int32()
    try:
        while not done.value:
            LIBRARY.check(_lib.hvd_store_wait_for(call, _LOOK_AROUND_US, _byref(done)))
    except BaseException:
        _lib.hvd_store_end(call, None)
        raise
    value = abi.StoreValueStruct()
    LIBRARY.check(_lib.hvd_store_end(call, _byref(value)))
    return _take(value)


def _take(value: abi.StoreValueStruct) -> bytes | None:
    try:
        return ctypes.string_at(value.data, value.bytes) if value.data else None
    finally:
        _lib.hvd_store_free(_byref(value))


def _value(data: bytes) -> abi.StoreValueStruct:
    """It points into `data`, which the caller keeps."""
    return abi.StoreValueStruct(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))


def _key(key: str) -> bytes:
    data = key.encode()
    if b"\0" in data:
        raise errors.invalid("a key has no NUL in it")
    return data


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _int64(number: int) -> int:
    if not -2**63 <= number < 2**63:
        raise errors.invalid(f"{number} does not fit 64 bits")
    return number
