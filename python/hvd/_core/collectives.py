# SPDX-License-Identifier: Apache-2.0
"""The collectives for any kind of tensor: an adapter says where a tensor lies and makes new ones.

All submit while holding the interpreter's lock, and return a Handle; `allreduce_now` blocks.
Options are what Runtime.options gives. An output of None is made here or by libhvd.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from . import abi, errors
from .handles import LOOK_AROUND, Handle
from .library import LIBRARY
from .process_sets import ProcessSet
from .runtime import RUNTIME
from .streams import OnDevice

R = TypeVar("R")  # a call's result
T = TypeVar("T")  # a kind of tensor

_held = LIBRARY.held
_allreduce_for = LIBRARY.released.hvd_allreduce_for
_allreduce_async = _held.hvd_allreduce_async
_byref = ctypes.byref
_number = ctypes.c_uint64
_orphans = RUNTIME.orphans


class Place(Protocol):
    """Where a tensor lies."""

    @property
    def struct(self) -> abi.TensorStruct:
        """It, as libhvd takes it."""

    @property
    def reference(self) -> object:
        """To the struct, by ctypes.byref."""

    @property
    def device(self) -> OnDevice | None:
        """The call on the tensor's GPU; None: it lies in host memory."""


P = TypeVar("P", bound=Place)


class Adapter(Protocol[T, P]):
    """The facts that a kind of tensor must know of itself."""

    def describe(self, tensor: T, writable: bool = False) -> P:
        """Its Place. An Error, or a TypeError, for what hvd cannot use."""

    def empty_like(self, tensor: T, source: P, rows: int | None = None) -> T:
        """A new tensor of its shape, or of its shape with so many rows."""

    def adopt(self, struct: abi.TensorStruct, tensor: T, source: P) -> T:
        """A result that libhvd allocated, as a tensor of the same kind."""

    def check_result(self, tensor: T, source: P) -> None:
        """Raises when `adopt` could not."""


def submit(function: Callable[..., int], arguments: tuple[object, ...], kept: object,
           result: R | None, device: OnDevice | None,
           take: Callable[[int], R] | None = None) -> Handle[R]:
    """Calls the C function with the arguments and room for a handle."""
    options = arguments[-1]
    if options is RUNTIME.unseen and options is not None:
        RUNTIME.refuse_again(options)
    if _orphans:
        RUNTIME.sweep()
    number = ctypes.c_uint64()
    status = function(*arguments, _byref(number))
    if status:
        raise LIBRARY.error(status)
    RUNTIME.unseen = options
    return Handle(number.value, kept, result, take, device)


class Collectives(Generic[T, P]):
    """The collectives of one kind of tensor."""

    def __init__(self, adapter: Adapter[T, P]) -> None:
        self.adapter = adapter
        self.describe = adapter.describe

    # ---- reductions and broadcast: the output has the input's shape ----

    def allreduce_now(self, tensor: T, output: T | None, options: object) -> T:
        """Blocks. Returns the output."""
        if options is RUNTIME.unseen:
            RUNTIME.refuse_again(options)
        RUNTIME.unseen = None
        source, target, output = self._ends(tensor, output)
        if source.device is not None:  # its stream is another one, perhaps, than the waiter's
            return submit(_allreduce_async, (source.reference, target.reference, options),
                          (tensor, source, output, target), output, source.device).wait()
        number = _number()
        status = _allreduce_for(source.reference, target.reference, options, LOOK_AROUND,
                                _byref(number))
        if status:
            raise LIBRARY.error(status)
        if number.value:
            return Handle(number.value, (tensor, source, output, target), output).wait()
        return output

    def allreduce(self, tensor: T, output: T | None, options: object) -> Handle[T]:
        if output is tensor:  # as submit(); a step of training does this for each gradient
            if options is RUNTIME.unseen:
                RUNTIME.refuse_again(options)
            if _orphans:
                RUNTIME.sweep()
            place = self.describe(tensor, True)
            reference = place.reference
            number = _number()
            status = _allreduce_async(reference, reference, options, _byref(number))
            if status:
                raise LIBRARY.error(status)
            RUNTIME.unseen = options
            return Handle(number.value, (tensor, place), tensor, None, place.device)
        source, target, output = self._ends(tensor, output)
        return submit(_held.hvd_allreduce_async, (source.reference, target.reference, options),
                      (tensor, source, output, target), output, source.device)

    def broadcast(self, tensor: T, output: T | None, options: object) -> Handle[T]:
        source, target, output = self._ends(tensor, output)
        return submit(_held.hvd_broadcast_async, (source.reference, target.reference, options),
                      (tensor, source, output, target), output, source.device)

    # ---- one tensor from rank to rank ----

    def send(self, tensor: T, destination: int, tag: int, options: object) -> Handle[None]:
        source = self.describe(tensor)
        return submit(_held.hvd_send_async, (source.reference, destination, _tag(tag), options),
                      (tensor, source), None, source.device)

    def recv(self, tensor: T, sender: int, tag: int, options: object) -> Handle[T]:
        target = self.describe(tensor, True)
        return submit(_held.hvd_recv_async, (target.reference, sender, _tag(tag), options),
                      (tensor, target), tensor, target.device)

    def _ends(self, tensor: T, output: T | None) -> tuple[P, P, T]:
        if output is tensor:
            target = self.describe(tensor, True)
            return target, target, tensor
        source = self.describe(tensor)
        if output is None:
            output = self.adapter.empty_like(tensor, source)
        return source, self.describe(output, True), output

    def grouped_allreduce(self, tensors: Sequence[T], outputs: Sequence[T] | None,
                          options: object) -> Handle[list[T]]:
        """`outputs` None: new tensors."""
        sources = [self.describe(tensor) for tensor in tensors]
        if outputs is None:
            outputs = [self.adapter.empty_like(*pair)
                       for pair in zip(tensors, sources, strict=True)]
        targets = [self.describe(output, True) for output in outputs]
        return submit(_held.hvd_grouped_allreduce_async,
                      (_row(sources), _row(targets), len(sources), options),
                      (tensors, sources, outputs, targets), list(outputs),
                      _device_of(sources))

    # ---- those whose result has other rows ----

    def reducescatter(self, tensor: T, output: T | None, options: object,
                      process_set: ProcessSet) -> Handle[T]:
        source = self.describe(tensor)
        if output is None and source.struct.ndim > 0:
            rows = scattered_rows(source.struct.shape[0], process_set)
            output = self.adapter.empty_like(tensor, source, rows)
        target = None if output is None else self.describe(output, True)
        return submit(_held.hvd_reducescatter_async,
                      (source.reference, target and target.reference, options),
                      (tensor, source, output, target), output, source.device)

    def grouped_allgather_into(self, tensors: Sequence[T], outputs: Sequence[T],
                               options: object) -> Handle[list[T]]:
        sources = [self.describe(tensor) for tensor in tensors]
        targets = [self.describe(output, True) for output in outputs]
        return submit(_held.hvd_grouped_allgather_async,
                      (_row(sources), _row(targets), len(sources), options),
                      (tensors, sources, outputs, targets), list(outputs),
                      _device_of(sources))

    def grouped_reducescatter_into(self, tensors: Sequence[T], outputs: Sequence[T],
                                   options: object) -> Handle[list[T]]:
        sources = [self.describe(tensor) for tensor in tensors]
        targets = [self.describe(output, True) for output in outputs]
        return submit(_held.hvd_grouped_reducescatter_async,
                      (_row(sources), _row(targets), len(sources), options),
                      (tensors, sources, outputs, targets), list(outputs),
                      _device_of(sources))

    def grouped_reducescatter(self, tensors: Sequence[T], options: object,
                              process_set: ProcessSet) -> Handle[list[T]]:
        sources = [self.describe(tensor) for tensor in tensors]
        if any(source.struct.ndim == 0 for source in sources):
            raise errors.invalid("reducescatter works along the first dimension; one of the "
                                 "tensors is a scalar, which has none")
        outputs = [self.adapter.empty_like(
            tensor, source, scattered_rows(source.struct.shape[0], process_set))
            for tensor, source in zip(tensors, sources, strict=True)]
        targets = [self.describe(output, True) for output in outputs]
        return submit(_held.hvd_grouped_reducescatter_async,
                      (_row(sources), _row(targets), len(sources), options),
                      (tensors, sources, outputs, targets), outputs, _device_of(sources))

    def allgather(self, tensor: T, output: T | None, options: object) -> Handle[T]:
        source = self.describe(tensor)
        if output is not None:
            target = self.describe(output, True)
            return submit(_held.hvd_allgather_async, (source.reference, target.reference, options),
                          (tensor, source, output, target), output, source.device)
        self.adapter.check_result(tensor, source)

        def take(number: int) -> T:
            result = abi.empty_tensor_struct()
            LIBRARY.check(LIBRARY.released.hvd_wait_result(number, _byref(result)))
            return self.adapter.adopt(result, tensor, source)

        return submit(_held.hvd_allgather_async, (source.reference, None, options),
                      (tensor, source), None, source.device, take)

    def grouped_allgather(self, tensors: Sequence[T], options: object) -> Handle[list[T]]:
        sources = [self.describe(tensor) for tensor in tensors]
        for tensor, source in zip(tensors, sources, strict=True):
            self.adapter.check_result(tensor, source)

        def take(number: int) -> list[T]:
            row = (abi.TensorStruct * len(sources))()
            for one in row:
                one.struct_size = ctypes.sizeof(one)
            LIBRARY.check(LIBRARY.released.hvd_wait_results(number, row, len(row)))
            return [self.adapter.adopt(abi.TensorStruct.from_buffer_copy(one), tensor, source)
                    for one, tensor, source in zip(row, tensors, sources, strict=True)]

        return submit(_held.hvd_grouped_allgather_async,
                      (_row(sources), None, len(sources), options), (tensors, sources), None,
                      _device_of(sources), take)

    def alltoall_into(self, tensor: T, splits: Sequence[int], output: T,
                      options: object) -> Handle[T]:
        """As alltoall, where the caller knows how many rows come."""
        source, target = self.describe(tensor), self.describe(output, True)
        rows = (ctypes.c_int64 * len(splits))(*splits)
        return submit(_held.hvd_alltoall_async,
                      (source.reference, rows, len(splits), target.reference, options),
                      (tensor, source, rows, output, target), output, source.device)

    def barrier(self, options: object) -> Handle[None]:
        return submit(_held.hvd_barrier_async, (options,), None, None, None)

    def alltoall(self, tensor: T, splits: Sequence[int] | None, options: object,
                 process_set: ProcessSet, finish: Callable[[T, list[int]], R]) -> Handle[R]:
        """The handle's result is finish(output, rows from each rank)."""
        source = self.describe(tensor)
        self.adapter.check_result(tensor, source)
        rows = None if splits is None else (ctypes.c_int64 * len(splits))(*splits)

        def take(number: int) -> R:
            result = abi.empty_tensor_struct()
            received = (ctypes.c_int64 * (process_set.size() or 1))()
            LIBRARY.check(LIBRARY.released.hvd_wait_alltoall(number, _byref(result), received))
            return finish(self.adapter.adopt(result, tensor, source), list(received))

        return submit(_held.hvd_alltoall_async,
                      (source.reference, rows, 0 if splits is None else len(splits), None, options),
                      (tensor, source), None, source.device, take)


def _tag(tag: int) -> ctypes.c_int64:
    if not -2**63 <= tag < 2**63:
        raise errors.invalid(f"tag is {tag}; it must fit 64 bits")
    return ctypes.c_int64(tag)


def scattered_rows(rows: int, process_set: ProcessSet) -> int:
    """This rank's share of a reducescatter's rows: the first ranks get what does not divide."""
    size, rank = process_set.size() or 1, process_set.rank() or 0
    return rows // size + (1 if rank < rows % size else 0)


def _device_of(places: Sequence[Place]) -> OnDevice | None:
    return places[0].device if places else None


def _row(places: Sequence[Place]) -> ctypes.Array[abi.TensorStruct]:
    return abi.tensor_array([place.struct for place in places])
