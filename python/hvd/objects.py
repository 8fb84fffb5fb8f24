# SPDX-License-Identifier: Apache-2.0
"""Python objects that travel between ranks: pickled, by cloudpickle where that is installed.

Only ranks of the same job are heard, and what they send is run as code is: trust the job's ranks.
"""
from __future__ import annotations

import contextlib
import ctypes
import pickle
from types import ModuleType
from typing import TypeVar

from ._core import abi
from ._core.collectives import Collectives
from ._core.runtime import RUNTIME
from .basics import global_process_set
from .process_sets import ProcessSet

pickler: ModuleType = pickle
with contextlib.suppress(ImportError):
    import cloudpickle

    pickler = cloudpickle

_SIZE_BYTES = 8
T = TypeVar("T")
Data = bytes | bytearray


class _Place:
    """Where a bytearray lies. `kept` also forbids that it changes its length."""

    __slots__ = ("struct", "reference", "kept")
    device = None  # host memory

    def __init__(self, data: Data) -> None:
        self.kept = (ctypes.c_char * len(data)).from_buffer(data) if data else None
        address = ctypes.addressof(self.kept) if self.kept is not None else 0
        self.struct = abi.tensor_struct(address, (len(data),), abi.UINT8)
        self.reference = ctypes.byref(self.struct)


class _Bytes:
    """The adapter for bytearrays, tensors of one dimension; see collectives.Adapter."""

    def describe(self, tensor: Data, writable: bool = False) -> _Place:
        return _Place(tensor)

    def empty_like(self, tensor: Data, source: _Place, rows: int | None = None) -> Data:
        return bytearray(len(tensor) if rows is None else rows)

    def adopt(self, struct: abi.TensorStruct, tensor: Data, source: _Place) -> Data:
        from ._core import memory

        _, count, buffer = memory.take_result(struct)
        return b"" if buffer is None else ctypes.string_at(buffer, count)

    def check_result(self, tensor: Data, source: _Place) -> None:
        """Bytes can always be adopted."""


_collectives: Collectives[Data, _Place] = Collectives(_Bytes())


def broadcast_bytes(data: bytes, root_rank: int, name: str | None,
                    process_set: ProcessSet = global_process_set) -> bytes:
    """The bytes of `root_rank`, a global rank; what others give is not used."""
    length = bytearray(len(data).to_bytes(_SIZE_BYTES, "little"))
    options = RUNTIME.options("broadcast", name and name + ".sz", process_set,
                              root=root_rank)
    _collectives.broadcast(length, length, options).wait()
    body = bytearray(data) if RUNTIME.rank() == root_rank else bytearray(
        int.from_bytes(length, "little"))
    options = RUNTIME.options("broadcast", name and name + ".t", process_set,
                              root=root_rank)
    _collectives.broadcast(body, body, options).wait()
    return bytes(body)


def broadcast_object(obj: T, root_rank: int = 0, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> T:
    """The object of `root_rank`, a global rank, on all ranks. There it is the same object."""
    mine = RUNTIME.rank() == root_rank
    data = broadcast_bytes(pickler.dumps(obj) if mine else b"", root_rank, name, process_set)
    if mine:
        return obj
    theirs: T = pickle.loads(data)
    return theirs


def allgather_object(obj: T, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> list[T]:
    """The objects of all ranks, in rank order."""
    data = bytearray(pickler.dumps(obj))
    sizes = _collectives.allgather(
        bytearray(len(data).to_bytes(_SIZE_BYTES, "little")), None,
        RUNTIME.options("allgather", name and name + ".sz", process_set))
    whole = _collectives.allgather(data, None, RUNTIME.options(
        "allgather", name and name + ".t", process_set)).wait()
    lengths = sizes.wait()
    objects, at = [], 0
    for index in range(0, len(lengths), _SIZE_BYTES):
        end = at + int.from_bytes(lengths[index:index + _SIZE_BYTES], "little")
        objects.append(pickle.loads(whole[at:end]))
        at = end
    return objects
