# SPDX-License-Identifier: Apache-2.0
"""The operators on torch tensors: the one place where hvd.torch meets libhvd.

Written over the C ABI by ctypes; a compiled module that offers the same names can take its place.
All take and return plain tensors, know nothing of autograd, and return Handles.

Tensors must be dense and contiguous, in host memory or on a GPU (see `cuda`); ValueError
otherwise. A tensor's address is asked for, never its NumPy array: so bfloat16 works, and NumPy need
not be there.
"""
from __future__ import annotations

import ctypes
import math

import torch

from .._core import abi, device_arrays, errors, memory
from .._core.collectives import Collectives
from .._core.handles import Handle
from .._core.runtime import RUNTIME
from . import cuda

__all__ = ["Handle", "collectives", "options", "tensor_over"]

_CODES = {torch.uint8: abi.UINT8, torch.int8: abi.INT8, torch.int16: abi.INT16,
          torch.int32: abi.INT32, torch.int64: abi.INT64, torch.float16: abi.FLOAT16,
          torch.float32: abi.FLOAT32, torch.float64: abi.FLOAT64, torch.bool: abi.BOOL,
          torch.bfloat16: abi.BFLOAT16, torch.complex64: abi.COMPLEX64,
          torch.complex128: abi.COMPLEX128, torch.float8_e4m3fn: abi.FLOAT8_E4M3FN,
          torch.float8_e5m2: abi.FLOAT8_E5M2}
_CODES.update({getattr(torch, name): code for name, code in (
    ("uint16", abi.UINT16), ("uint32", abi.UINT32), ("uint64", abi.UINT64))
    if hasattr(torch, name)})  # which torch has since 2.3
_MOST_CACHED = 8192
_STRIDED = torch.strided


class Place:
    """Where a tensor lies: `struct`, a `reference` to it for calls, and the `device` of a call."""

    __slots__ = ("struct", "reference", "device")

    def __init__(self, struct: abi.TensorStruct, device: cuda.DeviceCall | None = None) -> None:
        self.struct = struct
        self.device = device
        self.reference = ctypes.byref(struct)


def has_type(tensor: torch.Tensor) -> bool:
    """Whether hvd has the tensor's type."""
    return tensor.dtype in _CODES


def dtype_code(tensor: torch.Tensor) -> int:
    """The hvd_dtype_t; ValueError when hvd has none."""
    code = _CODES.get(tensor.dtype)
    if code is None:
        raise errors.invalid(f"Tensor type {tensor.dtype} is not supported.")
    return code


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy, whose memory holds its numbers in their order. (Backward makes views
    of complex tensors that are conjugated when they are read.)"""
    return tensor.contiguous().resolve_conj().resolve_neg()


class Tensors:
    """The adapter for torch; see collectives.Adapter. It remembers descriptions: training uses the
    same tensors in each step."""

    def __init__(self) -> None:
        # The keys of tensors on a GPU have its number and the stream's, too.
        self._places: dict[tuple[object, ...], Place] = {}

    def describe(self, tensor: torch.Tensor, writable: bool = False) -> Place:
        if not tensor.is_cpu:
            return self._describe_on_gpu(tensor)
        if tensor.layout is _STRIDED and tensor.is_contiguous():
            key = (tensor.data_ptr(), tensor.shape, tensor.dtype)
            found = self._places.get(key)
            if found is not None and not (tensor.is_neg() or tensor.is_conj()):
                return found
        self._check(tensor)
        return self._remember(key, Place(
            abi.tensor_struct(key[0], tuple(key[1]), dtype_code(tensor))))

    def _describe_on_gpu(self, tensor: torch.Tensor) -> Place:
        self._check(tensor)
        call = cuda.DeviceCall(tensor.device)
        key = (tensor.data_ptr(), tensor.shape, tensor.dtype, *call.place())
        return self._places.get(key) or self._remember(key, Place(
            abi.tensor_struct(key[0], tuple(tensor.shape), dtype_code(tensor), call.place()), call))

    def _remember(self, key: tuple[object, ...], place: Place) -> Place:
        if len(self._places) >= _MOST_CACHED:
            self._places.clear()
        return self._places.setdefault(key, place)

    def _check(self, tensor: torch.Tensor) -> None:
        if tensor.layout is not torch.strided:
            raise errors.invalid("Tensor is required to be dense; for sparse ones there is "
                                 "sparse_allreduce_async.")
        if not tensor.is_contiguous():
            raise errors.invalid("Tensor is required to be contiguous.")
        if tensor.device.type not in ("cpu", "cuda"):
            raise errors.invalid(f"Tensor is on {tensor.device}; hvd takes tensors in host memory "
                                 "and on CUDA GPUs.")
        if tensor.is_neg() or tensor.is_conj():
            raise errors.invalid("Tensor is conjugated or negated lazily: its memory holds other "
                                 "numbers. tensor.resolve_conj().resolve_neg() copies it.")

    def empty_like(self, tensor: torch.Tensor, source: Place,
                   rows: int | None = None) -> torch.Tensor:
        shape = tensor.shape if rows is None else (rows, *tensor.shape[1:])
        if source.device is None:
            return torch.empty(shape, dtype=tensor.dtype)
        return torch.empty(shape, dtype=tensor.dtype, device=tensor.device)

    def adopt(self, struct: abi.TensorStruct, tensor: torch.Tensor,
              source: Place) -> torch.Tensor:
        if source.device is not None:
            array = device_arrays.adopt(struct)
            return cuda.tensor_over(array, tensor, array.shape)
        shape, _, buffer = memory.take_result(struct)
        return tensor_over(buffer, shape, tensor.dtype)

    def check_result(self, tensor: torch.Tensor, source: Place) -> None:
        """Whatever hvd can gather is a torch tensor."""


def tensor_over(buffer: memory.Buffer | None, shape: tuple[int, ...] | torch.Size,
                dtype: torch.dtype) -> torch.Tensor:
    """A tensor in a ctypes buffer, which it keeps alive. `buffer` may be None when it has no
    elements."""
    count = math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(buffer, dtype=dtype, count=count).view(shape)


collectives = Collectives(Tensors())

options = RUNTIME.options
