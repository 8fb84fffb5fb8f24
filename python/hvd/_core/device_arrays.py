# SPDX-License-Identifier: Apache-2.0
"""Arrays on GPUs: those of others, by `__cuda_array_interface__` or DLPack, as tensors of the C
ABI, and hvd's own for results. No framework is imported, and no byte of a GPU is touched here.

Threads: any.
"""
from __future__ import annotations

import contextlib
import ctypes
import math
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypedDict

from . import abi, dlpack, driver, errors, streams
from .library import LIBRARY

if TYPE_CHECKING:
    import numpy as np

# The types that the interface has names for.
_TYPE_NAMES = {abi.UINT8: "|u1", abi.INT8: "|i1", abi.UINT16: "<u2", abi.INT16: "<i2",
               abi.UINT32: "<u4", abi.INT32: "<i4", abi.UINT64: "<u8", abi.INT64: "<i8",
               abi.FLOAT16: "<f2", abi.FLOAT32: "<f4", abi.FLOAT64: "<f8", abi.BOOL: "|b1",
               abi.COMPLEX64: "<c8", abi.COMPLEX128: "<c16"}
_CODES = {name: code for code, name in _TYPE_NAMES.items()}
_INTERFACE_VERSION = 3


class Interface(TypedDict, total=False):
    """What `__cuda_array_interface__` says; the last four need not be there."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    version: int
    strides: tuple[int, ...] | None
    stream: int | None
    mask: object
    descr: object


class HasInterface(Protocol):
    """An array that says where on a GPU it lies."""

    @property
    def __cuda_array_interface__(self) -> Interface:
        """Its place and type."""


def has_interface(tensor: object) -> bool:
    """Whether it names its place by __cuda_array_interface__, and its type, which that cannot of
    every one: DLPack may."""
    found = getattr(tensor, "__cuda_array_interface__", None)
    return found is not None and (found["typestr"] in _CODES or not hasattr(tensor, "__dlpack__"))


def read_interface(tensor: HasInterface) -> tuple[abi.TensorStruct, bool]:
    """(where it lies, whether it may be written)."""
    what, said = type(tensor).__name__, tensor.__cuda_array_interface__
    code = _CODES.get(said["typestr"])
    if code is None:
        raise errors.invalid(f"{what}: hvd has no elements of type {said['typestr']}")
    if said.get("mask") is not None:
        raise errors.invalid(f"this {what} has a mask; hvd takes whole arrays only")
    shape, (address, read_only) = tuple(said["shape"]), said["data"]
    strides = said.get("strides")
    if strides is not None and not dlpack.is_dense(shape, strides, abi.ITEM_BYTES[code]):
        raise errors.invalid(f"this {what} is not contiguous")
    stream = said.get("stream")
    place = abi.DevicePlace(_device_of(tensor, address or 0),
                            streams.chosen() if stream is None else streams.number_of(stream))
    return abi.tensor_struct(address or 0, shape, code, place), not read_only


def _device_of(tensor: object, address: int) -> int:
    if address:
        return driver.device_of(address)
    if hasattr(tensor, "__dlpack_device__"):
        return int(tensor.__dlpack_device__()[1])
    return 0


class HasAddress(Protocol):
    """Device memory, there as long as somebody refers to this."""

    address: int


class _Memory:
    """Device memory of libhvd's, given back when nobody refers to it any more and the device is
    through with it."""

    def __init__(self, address: int, device: int, release: Callable[[], object]) -> None:
        self.address = address
        # Not at exit: it may be used until the process ends, and goes with it.
        weakref.finalize(self, _release, os.getpid(), device, release).atexit = False


def _release(owner: int, device: int, release: Callable[[], object]) -> None:
    if os.getpid() != owner:
        return  # a fork's child has no GPU; the memory is its parent's
    # Nobody knows who has used it, and on which streams: the driver's own cudaFree waits for the
    # whole GPU, too, but does not promise it.
    with contextlib.suppress(errors.Error):  # a GPU that has failed is through with everything
        driver.wait_for(device)
    release()


class DeviceArray:
    """A contiguous array on a GPU, whose contents are there behind all that is on `stream`
    (a cudaStream_t; 0: the default one). CuPy, numba, torch and others take it as it is, by
    `__cuda_array_interface__` or DLPack. Its memory is hvd's, and goes with the last of them."""

    def __init__(self, memory: HasAddress | None, shape: tuple[int, ...], code: int,
                 place: abi.DevicePlace) -> None:
        """`memory` may be None when it has no elements."""
        self._memory = memory
        self._code = code
        self.shape = shape
        self.device = place.device
        self.stream = place.stream

    @property
    def dtype(self) -> np.dtype:
        """InvalidError when NumPy has no such type."""
        import numpy as np

        if self._code not in _TYPE_NAMES:
            raise errors.invalid("NumPy has no type for the elements of this array; "
                                 "take it by DLPack")
        return np.dtype(_TYPE_NAMES[self._code])

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * abi.ITEM_BYTES[self._code]

    def struct(self) -> abi.TensorStruct:
        return abi.tensor_struct(self._address(), self.shape, self._code,
                                 abi.DevicePlace(self.device, self.stream))

    @property
    def __cuda_array_interface__(self) -> Interface:
        if self._code not in _TYPE_NAMES:
            raise AttributeError("__cuda_array_interface__ has no name for the type of these "
                                 "elements; take the array by DLPack")
        return {"shape": self.shape, "typestr": _TYPE_NAMES[self._code], "strides": None,
                "data": (self._address(), False), "stream": self.stream or 1,
                "version": _INTERFACE_VERSION}

    def as_bytes(self) -> DeviceArray:
        """The same memory as a flat array of uint8."""
        return DeviceArray(self._memory, (self.nbytes,), abi.UINT8,
                           abi.DevicePlace(self.device, self.stream))

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA_DEVICE, self.device

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
        """`stream`, the consumer's, goes on behind the contents; -1: it sees to that itself."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("hvd's arrays show the memory that they have; they make no copies")
        if stream != -1:
            driver.order(self.device, self.stream, streams.number_of(stream))
        return dlpack.write(self.struct(), self._memory, max_version)

    def _address(self) -> int:
        return 0 if self._memory is None else self._memory.address

    def __repr__(self) -> str:
        return f"<hvd array of shape {self.shape} on GPU {self.device}>"


def new(shape: tuple[int, ...], code: int, place: abi.DevicePlace) -> DeviceArray:
    """Not filled."""
    size = math.prod(shape) * abi.ITEM_BYTES[code]
    if size == 0:
        return DeviceArray(None, shape, code, place)
    made = ctypes.c_void_p()
    LIBRARY.check(LIBRARY.released.hvd_alloc_on(size, abi.CUDA, place.device, ctypes.byref(made)))
    address = made.value or 0
    memory = _Memory(address, place.device, lambda: LIBRARY.released.hvd_free(address))
    return DeviceArray(memory, shape, code, place)


def adopt(struct: abi.TensorStruct) -> DeviceArray:
    """A result that libhvd allocated."""
    shape = tuple(struct.shape[i] for i in range(struct.ndim))
    place = abi.DevicePlace(struct.device_id, struct.stream or streams.DEFAULT)
    memory = _Memory(struct.data, place.device,
                     lambda: LIBRARY.released.hvd_free_result(ctypes.byref(struct)))
    return DeviceArray(memory, shape, struct.dtype, place)
