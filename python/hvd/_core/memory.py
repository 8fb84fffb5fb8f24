# SPDX-License-Identifier: Apache-2.0
"""Memory that libhvd allocated, as Python sees it: a ctypes buffer that gives it back when the last
tensor in it is gone."""
from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable

from . import abi
from .library import LIBRARY

Buffer = ctypes.Array[ctypes.c_char]


def own(address: int, size: int, release: Callable[[], object]) -> Buffer:
    """A buffer that begins at `address` and holds at least `size` bytes; `release()` is called when
    nobody refers to it any more.

    It may seem longer than it is: ctypes keeps a type for each length that it has ever seen, so
    lengths are rounded up to powers of two. Whoever uses it must count for themselves.
    """
    buffer = (ctypes.c_char * (1 << (size - 1).bit_length())).from_address(address)
    # Not at exit: tensors may be used until the process ends, and its memory goes with it.
    weakref.finalize(buffer, release).atexit = False
    return buffer


def take_result(struct: abi.TensorStruct) -> tuple[tuple[int, ...], int, Buffer | None]:
    """A result that libhvd allocated: its shape, number of elements, and memory (None when it has
    no elements)."""
    shape = tuple(struct.shape[i] for i in range(struct.ndim))
    count = 1
    for length in shape:
        count *= length
    if count == 0:
        LIBRARY.held.hvd_free_result(ctypes.byref(struct))
        return shape, 0, None
    address = struct.data
    size = count * abi.ITEM_BYTES[struct.dtype]
    return shape, count, own(
        address, size, lambda: LIBRARY.held.hvd_free_result(ctypes.byref(struct)))


def allocate(size: int) -> Buffer:
    """`size` bytes, at least one, that all ranks of this host see; 64-byte aligned.
    UnsupportedError when there is no room."""
    memory = ctypes.c_void_p()
    LIBRARY.check(LIBRARY.released.hvd_alloc(size, ctypes.byref(memory)))
    address = memory.value or 0
    return own(address, size, lambda: LIBRARY.held.hvd_free(address))
