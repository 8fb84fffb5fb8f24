# SPDX-License-Identifier: Apache-2.0
"""The collectives on NDArrays with Horovod's names, arguments and defaults.

They are pushed to MXNet's engine, as its own operators are: a call returns at once, and what reads
its result waits for it. Calls whose result has rows that only the exchange tells (allgather,
alltoall) wait themselves. The arrays are dense and in the CPU's memory. Any thread may call.

`priority`: where several calls may begin, MXNet's engine begins those of a higher one first. To
libhvd it means nothing: what has begun runs as soon as all ranks have begun it.

Calls without a name belong together by the order in which the ranks' programs make them.

New arrays have gradients while MXNet's autograd records (see `differentiable`).

A call that makes no sense by itself raises here, as does a call outside a job (ValueErrors). Later
errors are raised by MXNet where the program waits: HorovodInternalError when ranks disagree or one
is gone, which is an MXNetError as well.
"""
from __future__ import annotations

from collections.abc import Sequence

import mxnet

from .. import ops as _ops
from .._arguments import op_of
from ..basics import (  # noqa: F401  (Horovod's programs find them here)
    add_process_set,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    remove_process_set,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from ..process_sets import ProcessSet
from . import engine
from .differentiable import gathered, new
from .engine import Asked, NDArray

Average = _ops.Average
Sum = _ops.Sum
Adasum = _ops.Adasum
Min = _ops.Min
Max = _ops.Max
Product = _ops.Product


def allreduce(tensor: NDArray, average: bool | None = None, name: str | None = None,
              priority: int = 0, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set, op: int | None = None) -> NDArray:
    """Reduces elementwise over the ranks into a new array."""
    return new(Asked("allreduce", name, process_set, priority, op=op_of(op, average),
                     prescale=prescale_factor, postscale=postscale_factor), [tensor])[0]


def allreduce_(tensor: NDArray, average: bool | None = None, name: str | None = None,
               priority: int = 0, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set, op: int | None = None) -> NDArray:
    """Reduces elementwise over the ranks, in place. Returns the array."""
    engine.in_place(Asked("allreduce", name, process_set, priority, op=op_of(op, average),
                          prescale=prescale_factor, postscale=postscale_factor), [tensor])
    return tensor


def grouped_allreduce(tensors: Sequence[NDArray], average: bool | None = None,
                      name: str | None = None, priority: int = 0, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set,
                      op: int | None = None) -> list[NDArray]:
    """allreduce of several arrays that become ready, and run, together."""
    if not tensors:
        return list(tensors)
    return new(Asked("allreduce", name, process_set, priority, group=len(tensors) > 1,
                     op=op_of(op, average), prescale=prescale_factor,
                     postscale=postscale_factor), tensors)


def grouped_allreduce_(tensors: Sequence[NDArray], average: bool | None = None,
                       name: str | None = None, priority: int = 0, prescale_factor: float = 1.0,
                       postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set,
                       op: int | None = None) -> Sequence[NDArray]:
    """grouped_allreduce in place. Returns the arrays."""
    if tensors:
        engine.in_place(Asked("allreduce", name, process_set, priority, group=len(tensors) > 1,
                              op=op_of(op, average), prescale=prescale_factor,
                              postscale=postscale_factor), tensors)
    return tensors


def allgather(tensor: NDArray, name: str | None = None, priority: int = 0,
              process_set: ProcessSet = global_process_set) -> NDArray:
    """Concatenates the ranks' arrays along the first dimension, which may differ. Waits."""
    return gathered(Asked("allgather", name, process_set, priority), [tensor])[0][0]


def grouped_allgather(tensors: Sequence[NDArray], name: str | None = None, priority: int = 0,
                      process_set: ProcessSet = global_process_set) -> list[NDArray]:
    """allgather of several arrays that become ready, and run, together. Waits."""
    if not tensors:
        return list(tensors)
    return gathered(Asked("allgather", name, process_set, priority, group=len(tensors) > 1),
                    tensors)[0]


def broadcast(tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0,
              process_set: ProcessSet = global_process_set) -> NDArray:
    """Copies the array of `root_rank`, a global rank, into a new array on all."""
    return new(Asked("broadcast", name, process_set, priority, root=root_rank),
               [tensor])[0]


def broadcast_(tensor: NDArray, root_rank: int, name: str | None = None, priority: int = 0,
               process_set: ProcessSet = global_process_set) -> NDArray:
    """broadcast in place. Returns the array."""
    engine.in_place(Asked("broadcast", name, process_set, priority, root=root_rank), [tensor])
    return tensor


def _as_counts(splits: NDArray | Sequence[int] | None) -> list[int] | None:
    if splits is None:
        return None
    if isinstance(splits, mxnet.nd.NDArray):
        rows = splits.asnumpy()
        if rows.dtype.kind not in "iu":
            raise engine.invalid(f"splits are numbers of rows: integers, not {rows.dtype}; "
                                 "mx.nd.array(splits, dtype='int32') makes them")
        return [int(count) for count in rows]
    counts = [int(count) for count in splits]
    if any(count != given for count, given in zip(counts, splits, strict=True)):
        raise engine.invalid("splits must be whole numbers, one for each member of the set")
    return counts


def _with_rows(tensors: Sequence[NDArray]) -> Sequence[NDArray]:
    """Refuses scalars here, where their InvalidError is the call's."""
    if any(getattr(tensor, "ndim", 1) == 0 for tensor in tensors):
        raise engine.invalid("reducescatter works along the first dimension, and the input is a "
                             "scalar, which has none; give it the shape [1]")
    return tensors


def alltoall(tensor: NDArray, splits: NDArray | Sequence[int] | None = None,
             name: str | None = None, priority: int = 0,
             process_set: ProcessSet = global_process_set
             ) -> NDArray | tuple[NDArray, NDArray]:
    """Sends splits[r] rows of the first dimension to member r of the set; without splits the rows
    are divided evenly. Waits. Returns what came, in rank order; given splits, also an int32 array
    of how many rows came from each."""
    counts = _as_counts(splits)
    made, received = gathered(Asked("alltoall", name, process_set, priority), [tensor],
                              counts, process_set.size() or 0)
    if counts is None:
        return made[0]
    like = mxnet.np if isinstance(tensor, mxnet.np.ndarray) else mxnet.nd
    return made[0], like.array(received, ctx=tensor.ctx, dtype="int32")


def reducescatter(tensor: NDArray, op: int = Average, name: str | None = None, priority: int = 0,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> NDArray:
    """Reduces, and gives each rank its rows of the first dimension, in rank order; when they do not
    divide evenly, the first ranks get one more."""
    return new(Asked("reducescatter", name, process_set, priority, op=op,
                     prescale=prescale_factor, postscale=postscale_factor),
               _with_rows([tensor]))[0]


def grouped_reducescatter(tensors: Sequence[NDArray], op: int = Average, name: str | None = None,
                          priority: int = 0, process_set: ProcessSet = global_process_set,
                          prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> list[NDArray]:
    """reducescatter of several arrays that become ready, and run, together."""
    if not tensors:
        return list(tensors)
    return new(Asked("reducescatter", name, process_set, priority, group=len(tensors) > 1,
                     op=op, prescale=prescale_factor, postscale=postscale_factor),
               _with_rows(tensors))
