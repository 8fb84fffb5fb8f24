# SPDX-License-Identifier: Apache-2.0
"""hvd.h in ctypes: its structs and numbers. Their meaning is said in hvd.h.

Made by hand and compared with the header by tests/test_abi.py.
"""
from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import NamedTuple

OK = 0
ERR_INVALID = 1
ERR_NOT_INITIALIZED = 2
ERR_MISMATCH = 3
ERR_DUPLICATE = 4
ERR_ABORTED = 5
ERR_UNSUPPORTED = 6
ERR_TIMEOUT = 7
ERR_LAUNCH = 8
ERR_INTERNAL = 9
ERR_HOSTS_UPDATED = 10
ERR_REMOVED = 11

UINT8 = 0
INT8 = 1
UINT16 = 2
INT16 = 3
INT32 = 4
INT64 = 5
FLOAT16 = 6
FLOAT32 = 7
FLOAT64 = 8
BOOL = 9
BFLOAT16 = 10
UINT32 = 11
UINT64 = 12
FLOAT8_E4M3FN = 13
FLOAT8_E5M2 = 14
COMPLEX64 = 15
COMPLEX128 = 16

# Bytes of an element.
ITEM_BYTES = {UINT8: 1, INT8: 1, INT16: 2, INT32: 4, INT64: 8, FLOAT16: 2, FLOAT32: 4,
              FLOAT64: 8, BOOL: 1, BFLOAT16: 2, UINT16: 2, UINT32: 4, UINT64: 8,
              FLOAT8_E4M3FN: 1, FLOAT8_E5M2: 1, COMPLEX64: 8, COMPLEX128: 16}

AVERAGE = 0
SUM = 1
ADASUM = 2
MIN = 3
MAX = 4
PRODUCT = 5
BAND = 6
BOR = 7
BXOR = 8

COMPRESSION_NONE = 0
COMPRESSION_FP16 = 1
COMPRESSION_BF16 = 2

AVERAGE_OVER_CONTRIBUTORS = 1
REFUSE_JOINED = 2
WAIT_ON_HOST = 4
BUCKET_COMPARED = 1
STATE_REPLICATED = 0
STATE_FIRST = 1
STATE_PRIVATE = 2
CPU = 0
CUDA = 1


class TensorStruct(ctypes.Structure):
    """hvd_tensor_t. `shape_memory` keeps the shape alive."""

    shape_memory: object
    _fields_ = [
        ("struct_size", c_size_t),
        ("data", c_void_p),
        ("shape", POINTER(c_int64)),
        ("ndim", c_int32),
        ("dtype", c_int32),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("stream", c_void_p),
    ]


class OptionsStruct(ctypes.Structure):
    """hvd_options_t."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("process_set", c_int32),
        ("op", c_int32),
        ("root", c_int32),
        ("reserved", c_int32),
        ("prescale", c_double),
        ("postscale", c_double),
        ("compression", c_int32),
        ("flags", c_int32),
        ("done", c_void_p),
        ("done_arg", c_void_p),
        ("queue", c_void_p),
        ("tag", c_uint64),
        ("result_fn", c_void_p),
        ("result_arg", c_void_p),
        ("ready_event", c_void_p),
        ("contents", c_char_p),
    ]


class CompletionStruct(ctypes.Structure):
    """hvd_completion_t."""

    _fields_ = [
        ("tag", c_uint64),
        ("handle", c_uint64),
        ("status", c_int32),
        ("reserved", c_int32),
    ]


class ErrorInfoStruct(ctypes.Structure):
    """hvd_error_info_t."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("code", c_int32),
        ("rank", c_int32),
        ("host", c_char_p),
        ("name", c_char_p),
        ("message", c_char_p),
    ]


class InitOptionsStruct(ctypes.Structure):
    """hvd_init_options_t."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("process_sets", POINTER(POINTER(c_int32))),
        ("process_set_sizes", POINTER(c_int32)),
        ("process_set_count", c_int32),
        ("reserved", c_int32),
    ]


class BucketOptionsStruct(ctypes.Structure):
    """hvd_bucket_options_t."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("chunk_bytes", c_size_t),
        ("reduction", POINTER(OptionsStruct)),
        ("dtype", c_int32),
        ("flags", c_int32),
        ("device_type", c_int32),
        ("device_id", c_int32),
    ]


class StoreValueStruct(ctypes.Structure):
    """hvd_store_value_t."""

    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class EpochStruct(ctypes.Structure):
    """hvd_epoch_t."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("number", c_uint64),
        ("commit", c_uint64),
        ("rank", c_int32),
        ("size", c_int32),
        ("survivors", c_int32),
        ("is_new", c_int32),
        ("sync", c_int32),
        ("root", c_int32),
        ("rolls_back", c_int32),
        ("needs_state", c_int32),
        ("is_over", c_int32),
    ]


class StateEntryStruct(ctypes.Structure):
    """hvd_state_entry_t."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("tensor", TensorStruct),
        ("kind", c_int32),
        ("held", c_int32),
    ]


class DevicePlace(NamedTuple):
    """A GPU among those that this process sees, and a stream there (a cudaStream_t)."""

    device: int
    stream: int


def options_in(reference: object) -> OptionsStruct:
    """The options that a reference, made by ctypes.byref, refers to."""
    found: OptionsStruct = reference._obj  # type: ignore[attr-defined]  # ctypes' stubs hide it
    return found


def tensor_struct(address: int, shape: tuple[int, ...], dtype: int,
                  place: DevicePlace | None = None) -> TensorStruct:
    """A contiguous tensor: in host memory, or on a GPU."""
    made = TensorStruct()
    made.struct_size = ctypes.sizeof(TensorStruct)
    made.data = address or None
    memory = (c_int64 * max(len(shape), 1))(*shape)
    made.shape = ctypes.cast(memory, POINTER(c_int64))
    made.shape_memory = memory
    made.ndim = len(shape)
    made.dtype = dtype
    made.device_type = CPU
    if place is not None:
        made.device_type = CUDA
        made.device_id = place.device
        made.stream = place.stream or None
    return made


def empty_tensor_struct() -> TensorStruct:
    """Room for a result that libhvd allocates."""
    made = TensorStruct()
    made.struct_size = ctypes.sizeof(TensorStruct)
    return made


def tensor_array(tensors: list[TensorStruct]) -> ctypes.Array[TensorStruct]:
    """The structs in a row, as groups take them. The list must live as long."""
    made = (TensorStruct * len(tensors))()
    for index, tensor in enumerate(tensors):
        ctypes.memmove(ctypes.byref(made, index * ctypes.sizeof(TensorStruct)),
                       ctypes.byref(tensor), ctypes.sizeof(TensorStruct))
    return made
