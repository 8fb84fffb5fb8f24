# SPDX-License-Identifier: Apache-2.0
"""Collectives on NumPy arrays and on anything with DLPack, the buffer protocol or
`__cuda_array_interface__`: in host memory, or on a GPU.

Nothing is copied on the way in. Arrays must be contiguous. Results are NumPy arrays (on a GPU:
objects of hvd's that CuPy, torch and others take as they are), or `output`, which must be
contiguous, writable and of the result's type. `*_` work in place; `*_async` return a
Handle at once, and until its wait() returns, the tensors belong to hvd. Any thread may call.

Names tell which calls of different ranks belong together; ranks may submit in different orders.
Calls without a name are matched by their order. All members of the process set must call.

On a GPU calls keep the order of streams, as kernels do: see `on_stream` for which. A wait returns
when the result is on its way, and the stream goes on behind it.

Raises InvalidError (a ValueError) for arguments that make no sense, DuplicateError when the name is
pending here (or is that of the call just before, about whose end nobody has asked),
NotInitializedError outside a job; MismatchError when the ranks asked for different things,
AbortedError when one died, which names it. With a Handle the last two come from wait().
"""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, overload

from ._core import abi, patience
from ._core.collectives import Collectives, submit
from ._core.handles import Handle
from ._core.library import LIBRARY
from ._core.runtime import RUNTIME
from ._core.streams import on_stream as on_stream
from .basics import global_process_set
from .process_sets import ProcessSet

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ._core.arrays import Array, ArrayLike, Described

A = TypeVar("A", bound="ArrayLike")  # an array that is written
R = TypeVar("R")

Average = abi.AVERAGE
Sum = abi.SUM
Adasum = abi.ADASUM
Min = abi.MIN
Max = abi.MAX
Product = abi.PRODUCT
# These three take integers and bools, whose results are bools; without scales.
BitwiseAnd = abi.BAND
BitwiseOr = abi.BOR
BitwiseXor = abi.BXOR

_options = RUNTIME.options


@functools.cache
def _collectives() -> Collectives[Array, Described]:
    """The collectives of arrays. hvd.torch can be used where there is no NumPy."""
    from ._core.arrays import Arrays

    return Collectives(Arrays())


def allreduce_async(tensor: ArrayLike, name: str | None = None, op: int = Average,
                    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set, *,
                    output: ArrayLike | None = None, contents: str = "") -> Handle[Array]:
    """Reduces elementwise over the ranks; all get the same bits. The input is multiplied by
    `prescale_factor`, the result by `postscale_factor`. The result has the input's shape.
    `contents`: what the tensor is to the program; MismatchError on all ranks where they do not say
    the same."""
    return _collectives().allreduce(tensor, output, _options(
        "allreduce", name, process_set, op, 0, prescale_factor, postscale_factor,
        contents=contents))


def allreduce(tensor: ArrayLike, name: str | None = None, op: int = Average,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set, *,
              output: ArrayLike | None = None, contents: str = "") -> Array:
    """allreduce_async, and waits."""
    return _collectives().allreduce_now(tensor, output, _options(
        "allreduce", name, process_set, op, 0, prescale_factor, postscale_factor,
        contents=contents))


def allreduce_async_(tensor: A, name: str | None = None, op: int = Average,
                     prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> Handle[A]:
    """allreduce_async in place."""
    return _collectives().allreduce(tensor, tensor, _options(
        "allreduce", name, process_set, op, 0, prescale_factor, postscale_factor))


def allreduce_(tensor: A, name: str | None = None, op: int = Average,
               prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> A:
    """allreduce in place. Returns the tensor."""
    result: A = _collectives().allreduce_now(tensor, tensor, _options(
        "allreduce", name, process_set, op, 0, prescale_factor, postscale_factor))
    return result


def grouped_allreduce_async(tensors: Sequence[ArrayLike], name: str | None = None,
                            op: int = Average,
                            prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set, *,
                            contents: str = "") -> Handle[list[Array]]:
    """allreduce of several tensors that become ready, and run, together. `contents`: what they are,
    in their order; see allreduce_async."""
    return _collectives().grouped_allreduce(list(tensors), None, _options(
        "grouped_allreduce", name, process_set, op, 0, prescale_factor,
        postscale_factor, contents=contents))


def grouped_allreduce(tensors: Sequence[ArrayLike], name: str | None = None, op: int = Average,
                      prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set, *,
                      contents: str = "") -> list[Array]:
    """grouped_allreduce_async, and waits."""
    handle = grouped_allreduce_async(tensors, name, op, prescale_factor, postscale_factor,
                                     process_set, contents=contents)
    return list(handle.wait())


def grouped_allreduce_async_(tensors: Sequence[A], name: str | None = None, op: int = Average,
                             prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set) -> Handle[list[A]]:
    """grouped_allreduce_async in place."""
    tensors = list(tensors)
    return _collectives().grouped_allreduce(tensors, tensors, _options(
        "grouped_allreduce", name, process_set, op, 0, prescale_factor,
        postscale_factor))


def grouped_allreduce_(tensors: Sequence[A], name: str | None = None, op: int = Average,
                       prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> list[A]:
    """grouped_allreduce in place. Returns the tensors."""
    handle = grouped_allreduce_async_(tensors, name, op, prescale_factor, postscale_factor,
                                      process_set)
    return list(handle.wait())


def allgather_async(tensor: ArrayLike, name: str | None = None,
                    process_set: ProcessSet = global_process_set, *,
                    output: ArrayLike | None = None) -> Handle[Array]:
    """Concatenates the ranks' tensors along the first dimension, in rank order. The first
    dimension may differ from rank to rank."""
    return _collectives().allgather(tensor, output,
                                    _options("allgather", name, process_set))


def allgather(tensor: ArrayLike, name: str | None = None,
              process_set: ProcessSet = global_process_set, *,
              output: ArrayLike | None = None) -> Array:
    """allgather_async, and waits."""
    return allgather_async(tensor, name, process_set, output=output).wait()


def grouped_allgather_async(tensors: Sequence[ArrayLike], name: str | None = None,
                            process_set: ProcessSet = global_process_set) -> Handle[list[Array]]:
    """allgather of several tensors that become ready, and run, together."""
    return _collectives().grouped_allgather(
        list(tensors), _options("grouped_allgather", name, process_set))


def grouped_allgather(tensors: Sequence[ArrayLike], name: str | None = None,
                      process_set: ProcessSet = global_process_set) -> list[Array]:
    """grouped_allgather_async, and waits."""
    return list(grouped_allgather_async(tensors, name, process_set).wait())


def broadcast_async(tensor: ArrayLike, root_rank: int, name: str | None = None,
                    process_set: ProcessSet = global_process_set, *,
                    output: ArrayLike | None = None, contents: str = "") -> Handle[Array]:
    """Copies the tensor of `root_rank`, a global rank, to all. `contents`: see allreduce_async."""
    return _collectives().broadcast(tensor, output, _options(
        "broadcast", name, process_set, root=root_rank, contents=contents))


def broadcast(tensor: ArrayLike, root_rank: int, name: str | None = None,
              process_set: ProcessSet = global_process_set, *,
              output: ArrayLike | None = None, contents: str = "") -> Array:
    """broadcast_async, and waits."""
    return broadcast_async(tensor, root_rank, name, process_set, output=output,
                           contents=contents).wait()


def broadcast_async_(tensor: A, root_rank: int, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> Handle[A]:
    """broadcast_async in place."""
    return broadcast_async(tensor, root_rank, name, process_set, output=tensor)


def broadcast_(tensor: A, root_rank: int, name: str | None = None,
               process_set: ProcessSet = global_process_set) -> A:
    """broadcast in place. Returns the tensor."""
    return broadcast_async_(tensor, root_rank, name, process_set).wait()


def alltoall_async(tensor: ArrayLike, splits: Sequence[int] | None = None, name: str | None = None,
                   process_set: ProcessSet = global_process_set) -> Handle[tuple[Array, list[int]]]:
    """Sends splits[r] rows of the first dimension to member r. The handle's result is (what came,
    in rank order; how many rows from each). Without splits the rows are divided evenly."""
    counts = None if splits is None else [int(count) for count in splits]
    return _collectives().alltoall(
        tensor, counts, _options("alltoall", name, process_set), process_set,
        lambda output, received: (output, received))


@overload
def alltoall(tensor: ArrayLike, splits: None = None, name: str | None = None,
             process_set: ProcessSet = global_process_set) -> Array: ...


@overload
def alltoall(tensor: ArrayLike, splits: Sequence[int], name: str | None = None,
             process_set: ProcessSet = global_process_set) -> tuple[Array, list[int]]: ...


def alltoall(tensor: ArrayLike, splits: Sequence[int] | None = None, name: str | None = None,
             process_set: ProcessSet = global_process_set) -> Array | tuple[Array, list[int]]:
    """alltoall_async, and waits. Returns what came; with splits: (what came, rows from each)."""
    output, received = alltoall_async(tensor, splits, name, process_set).wait()
    return output if splits is None else (output, received)


def reducescatter_async(tensor: ArrayLike, name: str | None = None, op: int = Average,
                        process_set: ProcessSet = global_process_set,
                        prescale_factor: float = 1.0, postscale_factor: float = 1.0, *,
                        output: ArrayLike | None = None) -> Handle[Array]:
    """Reduces, and gives each rank its rows of the first dimension, in rank order. When they do not
    divide evenly, the first ranks get one more."""
    return _collectives().reducescatter(tensor, output, _options(
        "reducescatter", name, process_set, op, 0, prescale_factor,
        postscale_factor), process_set)


def reducescatter(tensor: ArrayLike, name: str | None = None, op: int = Average,
                  process_set: ProcessSet = global_process_set,
                  prescale_factor: float = 1.0, postscale_factor: float = 1.0, *,
                  output: ArrayLike | None = None) -> Array:
    """reducescatter_async, and waits."""
    return reducescatter_async(tensor, name, op, process_set, prescale_factor, postscale_factor,
                               output=output).wait()


def grouped_reducescatter_async(tensors: Sequence[ArrayLike], name: str | None = None,
                                op: int = Average, process_set: ProcessSet = global_process_set,
                                prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> Handle[list[Array]]:
    """reducescatter of several tensors that become ready, and run, together."""
    return _collectives().grouped_reducescatter(list(tensors), _options(
        "grouped_reducescatter", name, process_set, op, 0, prescale_factor,
        postscale_factor), process_set)


def grouped_reducescatter(tensors: Sequence[ArrayLike], name: str | None = None, op: int = Average,
                          process_set: ProcessSet = global_process_set,
                          prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> list[Array]:
    """grouped_reducescatter_async, and waits."""
    return list(grouped_reducescatter_async(tensors, name, op, process_set, prescale_factor,
                                            postscale_factor).wait())


def send_async(tensor: ArrayLike, destination: int, tag: int = 0,
               process_set: ProcessSet = global_process_set) -> Handle[None]:
    """Sends the tensor to `destination`, a global rank, without the others. Belongs to that rank's
    recv from here with this tag, in their order; both must have the same dtype and number of
    elements, else both raise MismatchError. Two ranks may both send first."""
    return _collectives().send(tensor, destination, tag, _options("", None, process_set))


def send(tensor: ArrayLike, destination: int, tag: int = 0,
         process_set: ProcessSet = global_process_set) -> None:
    """send_async, and waits until the receiver has asked for it and it is on its way or there."""
    send_async(tensor, destination, tag, process_set).wait()


def recv_async(tensor: A, source: int, tag: int = 0,
               process_set: ProcessSet = global_process_set) -> Handle[A]:
    """Receives into `tensor`, which must be contiguous and writable, what the global rank `source`
    sends here with this tag. The handle's result is the tensor."""
    return _collectives().recv(tensor, source, tag, _options("", None, process_set))


def recv(tensor: A, source: int, tag: int = 0,
         process_set: ProcessSet = global_process_set) -> A:
    """recv_async, and waits. Returns the tensor."""
    return recv_async(tensor, source, tag, process_set).wait()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when every member has called it. Calls that this rank has submitted before may still
    be under way: their handles say when they are done."""
    _collectives().barrier(_options("barrier", None, process_set)).wait()


def join_async() -> Handle[int]:
    """This rank has no more work: it takes part in the others' allreduces, allgathers and barriers
    with nothing of its own until every rank has joined. Until then it can submit nothing. The
    handle's result is the rank that joined last. A shutdown() before that ends it, on all ranks."""
    def begin(_: None, number: object) -> int:
        # It waits for other threads that change process sets.
        patience.call(lambda: LIBRARY.released.hvd_join_async(None, number))
        return abi.OK

    return submit(begin, (None,), None, None, None, _last_rank)


def join() -> int:
    """join_async, and waits. Returns the rank that joined last."""
    return join_async().wait()


def _last_rank(number: int) -> int:
    last = ctypes.c_int32(-1)
    LIBRARY.check(LIBRARY.released.hvd_wait_join(number, ctypes.byref(last)))
    for tell in RUNTIME.after_join:
        tell()
    return last.value


def poll(handle: Handle[R]) -> bool:
    """Whether wait(handle) would return at once."""
    return handle.done()


def synchronize(handle: Handle[R]) -> R:
    """Waits for an asynchronous call and returns its result."""
    return handle.wait()


wait = synchronize


def alloc(shape: int | Sequence[int], dtype: DTypeLike = "float32") -> Array:
    """A new array, not filled, in memory that all ranks of this host see: collectives on it need no
    copies. It is given back with the last array in it. UnsupportedError when there is no room."""
    import numpy as np

    from ._core import memory

    kind = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, kind)
    flat = np.frombuffer(  # NumPy's stubs know no buffers of ctypes
        memory.allocate(count * kind.itemsize), kind, count)  # type: ignore[call-overload]
    return flat.reshape(shape)
