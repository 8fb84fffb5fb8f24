# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules: reads where another library's tensor lies, and shows where one of hvd's does.
Nothing is copied.
"""
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Protocol

from . import abi, errors, streams

_READ_ONLY = 1
_CPU_DEVICES = (1, 3)  # plain memory, and what CUDA has pinned
CUDA_DEVICE = 2
_VERSION = (1, 0)
_OLD, _NEW = b"dltensor", b"dltensor_versioned"

# (kind, bits) of DLDataType. Kinds: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool,
# 10 and 12 the floats of 8 bits.
_DTYPES = {(1, 8): abi.UINT8, (0, 8): abi.INT8, (0, 16): abi.INT16, (0, 32): abi.INT32,
           (0, 64): abi.INT64, (2, 16): abi.FLOAT16, (2, 32): abi.FLOAT32,
           (2, 64): abi.FLOAT64, (4, 16): abi.BFLOAT16, (6, 8): abi.BOOL,
           (1, 16): abi.UINT16, (1, 32): abi.UINT32, (1, 64): abi.UINT64,
           (5, 64): abi.COMPLEX64, (5, 128): abi.COMPLEX128,
           (10, 8): abi.FLOAT8_E4M3FN, (12, 8): abi.FLOAT8_E5M2}


class Strides(Protocol):
    """A tuple's, or ctypes'."""

    def __getitem__(self, index: int, /) -> int:
        """The steps from one element to the next of a dimension."""


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("kind", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


class HasDLPack(Protocol):
    """A tensor of any library's."""

    @property
    def __dlpack__(self) -> Callable[..., object]:
        """Makes a capsule of it. Libraries that are older than versions know no max_version."""


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def read(source: HasDLPack) -> tuple[abi.TensorStruct, bool, object]:
    """(where it lies, whether it may be written, what keeps it alive) of anything with
    `__dlpack__`. On a GPU what it holds is there behind the stream that streams.chosen() says.
    InvalidError for what is not a dense, contiguous tensor."""
    stream = streams.chosen()
    capsule = _ask(source, {"stream": stream or 1} if _is_on_gpu(source) else {})
    if _is_valid(capsule, _NEW):
        whole = _Versioned.from_address(_pointer(capsule, _NEW))
        tensor, writable = whole.tensor, not whole.flags & _READ_ONLY
    else:
        tensor, writable = _Tensor.from_address(_pointer(capsule, _OLD)), True
    return _struct_of(tensor, source, stream), writable, capsule


def _is_on_gpu(source: object) -> bool:
    if not hasattr(source, "__dlpack_device__"):
        return False
    return int(source.__dlpack_device__()[0]) == CUDA_DEVICE


def _ask(source: HasDLPack, how: dict[str, int]) -> object:
    try:
        return source.__dlpack__(max_version=_VERSION, **how)
    except TypeError:  # older than versions
        return source.__dlpack__(**how)


def _struct_of(tensor: _Tensor, source: object, stream: int) -> abi.TensorStruct:
    what = type(source).__name__
    if tensor.device_type not in (*_CPU_DEVICES, CUDA_DEVICE):
        raise errors.invalid(f"this {what} is neither in host memory nor on an NVIDIA GPU "
                             f"(DLPack's device {tensor.device_type}); hvd takes no other")
    dtype = _DTYPES.get((tensor.kind, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise errors.invalid(f"{what}: hvd has no such type of elements "
                             f"(DLPack kind {tensor.kind}, {tensor.bits} bits)")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and not is_dense(shape, tensor.strides, 1):
        raise errors.invalid(f"this {what} is not contiguous")
    on_gpu = tensor.device_type == CUDA_DEVICE
    return abi.tensor_struct((tensor.data or 0) + tensor.byte_offset, shape, dtype,
                             abi.DevicePlace(tensor.device_id, stream) if on_gpu else None)


def is_dense(shape: Sequence[int], strides: Strides, step: int) -> bool:
    """Whether elements follow one another, row by row. `step`: from one to the next."""
    if 0 in shape:
        return True
    expected = step
    for i in reversed(range(len(shape))):
        if shape[i] != 1 and strides[i] != expected:
            return False
        expected *= shape[i]
    return True


# ---- capsules of hvd's own ----

# Tensors that were shown and not yet given back, by the number in their `context`: the struct
# itself, and what it points at.
_shown: dict[int, tuple[object, ...]] = {}
_numbers = itertools.count(1)
_KINDS = {code: pair for pair, code in _DTYPES.items()}
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
# These take a capsule that is being destroyed: nobody may refer to it again.
_dying_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi))
_dying_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


# Both functions have what they need bound: tensors may go when the interpreter has taken the
# modules apart.
def _forget_old(address: int, shown: dict[int, tuple[object, ...]] = _shown,
                kind: type[_Managed] = _Managed) -> None:
    shown.pop(kind.from_address(address).context, None)


def _forget_new(address: int, shown: dict[int, tuple[object, ...]] = _shown,
                kind: type[_Versioned] = _Versioned) -> None:
    shown.pop(kind.from_address(address).context, None)


def _end(capsule: int) -> None:
    # A consumer that has taken the tensor has given the capsule another name, and gives the tensor
    # back.
    if _dying_is_valid(capsule, _NEW):
        _give_back_new(_dying_pointer(capsule, _NEW))
    elif _dying_is_valid(capsule, _OLD):
        _give_back_old(_dying_pointer(capsule, _OLD))


_give_back_old = ctypes.CFUNCTYPE(None, c_void_p)(_forget_old)
_give_back_new = ctypes.CFUNCTYPE(None, c_void_p)(_forget_new)
_end_capsule = ctypes.PYFUNCTYPE(None, c_void_p)(_end)


def write(struct: abi.TensorStruct, kept: object, max_version: tuple[int, int] | None) -> object:
    """A capsule of a tensor on a GPU, which keeps `kept` alive."""
    number = next(_numbers)
    strides, step = (c_int64 * max(struct.ndim, 1))(), 1
    for i in reversed(range(struct.ndim)):
        strides[i] = step
        step *= max(struct.shape[i], 1)
    kind, bits = _KINDS[struct.dtype]
    tensor = _Tensor(struct.data, CUDA_DEVICE, struct.device_id, struct.ndim, kind, bits, 1,
                     struct.shape, ctypes.cast(strides, POINTER(c_int64)), 0)
    versioned = max_version is not None and max_version >= _VERSION
    made: ctypes.Structure
    if versioned:
        made = _Versioned(*_VERSION, number, ctypes.cast(_give_back_new, c_void_p), 0, tensor)
    else:
        made = _Managed(tensor, number, ctypes.cast(_give_back_old, c_void_p))
    _shown[number] = (made, struct, strides, kept)
    return _new_capsule(ctypes.addressof(made), _NEW if versioned else _OLD,
                        ctypes.cast(_end_capsule, c_void_p))
