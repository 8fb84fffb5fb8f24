# SPDX-License-Identifier: Apache-2.0
"""Arrays of any kind as tensors of the C ABI: NumPy's, and what NumPy, DLPack or
`__cuda_array_interface__` can look into. Nothing is copied.

Results that hvd allocates are NumPy arrays, or DeviceArrays of those on GPUs.
"""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from . import abi, device_arrays, dlpack, errors, memory, streams

if TYPE_CHECKING:
    from typing_extensions import Buffer

Array: TypeAlias = Any  # NumPy's, or a DeviceArray: as the input lies
# What NumPy, DLPack or `__cuda_array_interface__` can look into.
ArrayLike: TypeAlias = (
    "np.ndarray | np.generic | Buffer | dlpack.HasDLPack | device_arrays.HasInterface")

_CODES: dict[np.dtype, int] = {
    np.dtype(kind): code for kind, code in (
        ("uint8", abi.UINT8), ("int8", abi.INT8), ("int16", abi.INT16), ("int32", abi.INT32),
        ("int64", abi.INT64), ("float16", abi.FLOAT16), ("float32", abi.FLOAT32),
        ("float64", abi.FLOAT64), ("bool", abi.BOOL), ("uint16", abi.UINT16),
        ("uint32", abi.UINT32), ("uint64", abi.UINT64), ("complex64", abi.COMPLEX64),
        ("complex128", abi.COMPLEX128))}
# The types of the package ml_dtypes, which need not be there.
_FURTHER = {"bfloat16": abi.BFLOAT16, "float8_e4m3fn": abi.FLOAT8_E4M3FN,
            "float8_e5m2": abi.FLOAT8_E5M2}
_MOST_CACHED = 4096
_DTYPES = {code: dtype for dtype, code in _CODES.items()}


class Described:
    """A tensor's place: `struct`, a `reference` to it for calls, and what keeps it alive."""

    __slots__ = ("struct", "reference", "kept", "dtype", "device")

    def __init__(self, struct: abi.TensorStruct, kept: object, dtype: np.dtype | None) -> None:
        self.struct = struct
        self.reference = ctypes.byref(struct)
        self.kept = kept
        self.dtype = dtype
        self.device: streams.DeviceCall | None = None
        if struct.device_type != abi.CPU:
            self.device = streams.DeviceCall(struct.device_id, struct.stream or streams.DEFAULT)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.struct.shape[i] for i in range(self.struct.ndim))


def code_of(dtype: np.dtype) -> int:
    """The code by which libhvd knows elements of this type."""
    code = _CODES.get(dtype)
    if code is not None:
        return code
    code = _FURTHER.get(dtype.name)
    if code is not None and dtype.itemsize == abi.ITEM_BYTES[code]:
        return code
    raise errors.invalid(f"hvd has no collectives for elements of type {dtype}")


def _check_array(array: np.ndarray, writable: bool) -> None:
    flags = array.flags
    if writable and not flags.writeable:
        raise errors.invalid("the output is a read-only array")
    if not flags.c_contiguous:
        raise errors.invalid("the array is not contiguous; numpy.ascontiguousarray() copies it")


def _describe_array(array: np.ndarray, kept: object) -> Described:
    struct = abi.tensor_struct(array.__array_interface__["data"][0], array.shape,
                                code_of(array.dtype))
    return Described(struct, kept, array.dtype)


class Arrays:
    """The adapter for NumPy and its like; see collectives.Adapter. It remembers where arrays lie:
    programs use the same ones again and again."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, tuple[int, ...], np.dtype], Described] = {}

    def describe(self, tensor: Array, writable: bool = False) -> Described:
        if isinstance(tensor, np.ndarray):
            _check_array(tensor, writable)
            return self._place_of(tensor)
        if isinstance(tensor, np.generic):
            return self._describe_view(tensor, writable)
        if isinstance(tensor, device_arrays.DeviceArray):
            return Described(tensor.struct(), tensor, None)
        if device_arrays.has_interface(tensor):
            return self._describe_foreign(tensor, writable, device_arrays.read_interface(tensor))
        if hasattr(tensor, "__dlpack__"):
            return self._describe_foreign(tensor, writable, dlpack.read(tensor))
        try:
            view = memoryview(tensor)
        except TypeError:
            raise TypeError("hvd takes NumPy arrays and objects with __dlpack__, the buffer "
                            "protocol or __cuda_array_interface__, not "
                            f"{type(tensor).__name__}") from None
        return self._describe_view(view, writable)

    def _place_of(self, array: np.ndarray) -> Described:
        # Without the array: whoever asks keeps that.
        key = (array.__array_interface__["data"][0], array.shape, array.dtype)
        found = self._places.get(key)
        if found is not None:
            return found
        if len(self._places) >= _MOST_CACHED:
            self._places.clear()
        return self._places.setdefault(key, _describe_array(array, None))

    @staticmethod
    def _describe_foreign(tensor: Array, writable: bool, read: tuple[abi.TensorStruct, bool]
                          | tuple[abi.TensorStruct, bool, object]) -> Described:
        struct, may_write, *capsule = read
        if writable and not may_write:
            raise errors.invalid(f"the output, a {type(tensor).__name__}, is read-only")
        return Described(struct, (tensor, *capsule), _DTYPES.get(struct.dtype))

    @staticmethod
    def _describe_view(source: object, writable: bool) -> Described:
        array = np.asarray(source)
        _check_array(array, writable)
        return _describe_array(array, array)

    def empty_like(self, tensor: Array, source: Described, rows: int | None = None) -> Array:
        shape = source.shape if rows is None else (rows, *source.shape[1:])
        if source.device is not None:
            return device_arrays.new(shape, source.struct.dtype, abi.DevicePlace(
                source.device.device, source.device.stream))
        return np.empty(shape, self._dtype_of(tensor, source))

    def adopt(self, struct: abi.TensorStruct, tensor: Array, source: Described) -> Array:
        if source.device is not None:
            return device_arrays.adopt(struct)
        shape, count, buffer = memory.take_result(struct)
        dtype = self._dtype_of(tensor, source)
        if buffer is None:
            return np.empty(shape, dtype)
        # NumPy's stubs know no buffers of ctypes.
        flat = np.frombuffer(buffer, dtype, count)  # type: ignore[call-overload]
        return flat.reshape(shape)

    def check_result(self, tensor: Array, source: Described) -> None:
        """Before a call whose result will be adopted: there must be a type for it."""
        if source.device is None:
            self._dtype_of(tensor, source)

    @staticmethod
    def _dtype_of(tensor: Array, source: Described) -> np.dtype:
        if source.dtype is None:
            raise errors.invalid(
                f"NumPy has no type for the elements of this {type(tensor).__name__}; give output=")
        return source.dtype
