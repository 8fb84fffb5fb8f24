"""Reads DLPack capsules: where another library's tensor lies, without copying it."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

from . import abi, errors

_READ_ONLY = 1
_CPU_DEVICES = (1, 3)  # plain memory, and what CUDA has pinned

# (kind, bits) of DLDataType. Kinds: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool,
# 10 and 12 the floats of 8 bits.
_DTYPES = {(1, 8): abi.UINT8, (0, 8): abi.INT8, (0, 16): abi.INT16, (0, 32): abi.INT32,
           (0, 64): abi.INT64, (2, 16): abi.FLOAT16, (2, 32): abi.FLOAT32,
           (2, 64): abi.FLOAT64, (4, 16): abi.BFLOAT16, (6, 8): abi.BOOL,
           (1, 16): abi.UINT16, (1, 32): abi.UINT32, (1, 64): abi.UINT64,
           (5, 64): abi.COMPLEX64, (5, 128): abi.COMPLEX128,
           (10, 8): abi.FLOAT8_E4M3FN, (12, 8): abi.FLOAT8_E5M2}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("kind", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def read(source: Any) -> tuple[abi.TensorStruct, bool, object]:
    """(where it lies, whether it may be written, what keeps it alive) of anything with
    `__dlpack__`. InvalidError for what is not a dense, contiguous tensor in host memory."""
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:  # older than versions
        capsule = source.__dlpack__()
    if _is_valid(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        tensor, writable = whole.tensor, not whole.flags & _READ_ONLY
    else:
        tensor, writable = _Tensor.from_address(_pointer(capsule, b"dltensor")), True
    return _struct_of(tensor, source), writable, capsule


def _struct_of(tensor: _Tensor, source: object) -> abi.TensorStruct:
    what = type(source).__name__
    if tensor.device_type not in _CPU_DEVICES:
        raise errors.invalid(f"this {what} is not in host memory; hvd has CPU collectives only")
    dtype = _DTYPES.get((tensor.kind, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise errors.invalid(f"{what}: hvd has no such type of elements "
                             f"(DLPack kind {tensor.kind}, {tensor.bits} bits)")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and 0 not in shape:
        expected = 1
        for i in reversed(range(tensor.ndim)):
            if shape[i] != 1 and tensor.strides[i] != expected:
                raise errors.invalid(f"this {what} is not contiguous")
            expected *= shape[i]
    return abi.tensor_struct((tensor.data or 0) + tensor.byte_offset, shape, dtype)
