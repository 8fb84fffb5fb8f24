# SPDX-License-Identifier: Apache-2.0
"""The collectives on torch tensors with Horovod's names, arguments and defaults.

`*_async` return a Handle for poll() and synchronize(); `*_` work in place; the others return new
tensors and are differentiable. Until synchronize() returns, tensors given to `*_async` belong to
hvd. Tensors: dense and contiguous, in host memory or on a GPU. Any thread may call.

On a GPU a call belongs to the stream that is current where it is made, and synchronize() has the
stream that is current there go on behind the result: as with a kernel, the program need not wait.

Raises, as Horovod: ValueError for what makes no sense by itself, a name that is pending, or no
init(); HorovodInternalError when ranks disagree or one is gone (the text says which).
"""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeVar, overload

import torch

from .. import ops as _ops
from .._core import abi, errors
from .._core.handles import Handle
from .._torch.operators import collectives as _collectives
from .._torch.operators import options as _options
from .._torch.sparse import SparseHandle
from .._torch.sparse import sparse_allreduce_async as sparse_allreduce_async
from ..basics import (  # noqa: F401  (Horovod's programs find them here)
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
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from ..ops import barrier as barrier
from ..process_sets import ProcessSet
from . import compiled
from .compiled import is_compiling

R = TypeVar("R")

Average = _ops.Average
Sum = _ops.Sum
Adasum = _ops.Adasum
Min = _ops.Min
Max = _ops.Max
Product = _ops.Product
# These three take integers and bools, whose results are bools; without scales.
BitwiseAnd = _ops.BitwiseAnd
BitwiseOr = _ops.BitwiseOr
BitwiseXor = _ops.BitwiseXor


def handle_average_backwards_compatibility(op: int | None, average: bool | None) -> int:
    """The op that `op` and Horovod's older `average` mean together."""
    if op is not None:
        if average is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of "
                             "them.")
        return op
    if average is None:
        return Average
    if not is_compiling():
        warnings.warn("Parameter `average` has been replaced with `op`: hvd.Average or hvd.Sum.",
                      DeprecationWarning, stacklevel=3)
    return Average if average else Sum


def allreduce_async(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
                    op: int | None = None, prescale_factor: float = 1.0,
                    postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> Handle[torch.Tensor]:
    """Reduces elementwise over the ranks into a new tensor."""
    op = handle_average_backwards_compatibility(op, average)
    return _collectives.allreduce(tensor, None, _options(
        "allreduce", name, process_set, op, 0, prescale_factor, postscale_factor))


def allreduce_async_(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
                     op: int | None = None, prescale_factor: float = 1.0,
                     postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> Handle[torch.Tensor]:
    """Reduces elementwise over the ranks, in place."""
    op = handle_average_backwards_compatibility(op, average)
    return _collectives.allreduce(tensor, tensor, _options(
        "allreduce", name, process_set, op, 0, prescale_factor, postscale_factor))


def allreduce_(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
               op: int | None = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Reduces elementwise over the ranks, in place. Returns the tensor."""
    op = handle_average_backwards_compatibility(op, average)
    if is_compiling() and compiled.there():
        return compiled.allreduce_(tensor, name, op, (prescale_factor, postscale_factor),
                                   process_set, abi.COMPRESSION_NONE)
    return _collectives.allreduce_now(tensor, tensor, _options(
        "allreduce", name, process_set, op, 0, prescale_factor, postscale_factor))


def grouped_allreduce_async(tensors: Sequence[torch.Tensor], average: bool | None = None,
                            name: str | None = None, op: int | None = None,
                            prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set
                            ) -> Handle[list[torch.Tensor]]:
    """allreduce_async of several tensors that become ready, and run, together."""
    op = handle_average_backwards_compatibility(op, average)
    return _collectives.grouped_allreduce(list(tensors), None, _options(
        "grouped_allreduce", name, process_set, op, 0, prescale_factor,
        postscale_factor))


def grouped_allreduce_async_(tensors: Sequence[torch.Tensor], average: bool | None = None,
                             name: str | None = None, op: int | None = None,
                             prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set
                            ) -> Handle[list[torch.Tensor]]:
    """grouped_allreduce_async in place."""
    op = handle_average_backwards_compatibility(op, average)
    tensors = list(tensors)
    return _collectives.grouped_allreduce(tensors, tensors, _options(
        "grouped_allreduce", name, process_set, op, 0, prescale_factor,
        postscale_factor))


def grouped_allreduce_(tensors: Sequence[torch.Tensor], average: bool | None = None,
                       name: str | None = None, op: int | None = None,
                       prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """grouped_allreduce in place. Returns the tensors."""
    if is_compiling() and compiled.there():
        op = handle_average_backwards_compatibility(op, average)
        return compiled.grouped_allreduce_(tensors, name, op, (prescale_factor, postscale_factor),
                                           process_set, abi.COMPRESSION_NONE)
    return list(grouped_allreduce_async_(tensors, average, name, op, prescale_factor,
                                         postscale_factor, process_set).wait())


def allgather_async(tensor: torch.Tensor, name: str | None = None,
                    process_set: ProcessSet = global_process_set) -> Handle[torch.Tensor]:
    """Concatenates the ranks' tensors along the first dimension, which may differ."""
    return _collectives.allgather(tensor, None,
                                  _options("allgather", name, process_set))


def grouped_allgather_async(tensors: Sequence[torch.Tensor], name: str | None = None,
                            process_set: ProcessSet = global_process_set
                            ) -> Handle[list[torch.Tensor]]:
    """allgather_async of several tensors that become ready, and run, together."""
    return _collectives.grouped_allgather(
        list(tensors), _options("grouped_allgather", name, process_set))


def broadcast_async(tensor: torch.Tensor, root_rank: int, name: str | None = None,
                    process_set: ProcessSet = global_process_set) -> Handle[torch.Tensor]:
    """Copies the tensor of `root_rank`, a global rank, into a new tensor on all."""
    return _collectives.broadcast(tensor, None, _options(
        "broadcast", name, process_set, root=root_rank))


def broadcast_async_(tensor: torch.Tensor, root_rank: int, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> Handle[torch.Tensor]:
    """broadcast_async in place."""
    return _collectives.broadcast(tensor, tensor, _options(
        "broadcast", name, process_set, root=root_rank))


def broadcast_(tensor: torch.Tensor, root_rank: int, name: str | None = None,
               process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """broadcast in place. Returns the tensor."""
    if is_compiling() and compiled.there():
        return compiled.broadcast_(tensor, root_rank, name, process_set)
    return broadcast_async_(tensor, root_rank, name, process_set).wait()


def _as_counts(splits: torch.Tensor | Sequence[int] | None) -> list[int] | None:
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.is_floating_point() or splits.is_complex() or splits.dim() != 1:
            raise errors.invalid("splits must be a one-dimensional tensor of integers")
        return [int(count) for count in splits.tolist()]
    return [int(count) for count in splits]


@overload
def alltoall_async(tensor: torch.Tensor, splits: None = None, name: str | None = None,
                   process_set: ProcessSet = global_process_set) -> Handle[torch.Tensor]: ...


@overload
def alltoall_async(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int],
                   name: str | None = None, process_set: ProcessSet = global_process_set
                   ) -> Handle[tuple[torch.Tensor, torch.Tensor]]: ...


@overload
def alltoall_async(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None,
                   name: str | None = None, process_set: ProcessSet = global_process_set
                   ) -> Handle[torch.Tensor | tuple[torch.Tensor, torch.Tensor]]: ...


def alltoall_async(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None = None,
                   name: str | None = None, process_set: ProcessSet = global_process_set
                   ) -> Handle[torch.Tensor | tuple[torch.Tensor, torch.Tensor]]:
    """Sends splits[r] rows of the first dimension to member r of the set; without splits the rows
    are divided evenly. The handle's result: what came, in rank order; given splits, a pair of that
    and an int32 tensor of how many rows came from each, where the splits lie."""
    device = splits.device if isinstance(splits, torch.Tensor) else None

    def finish(output: torch.Tensor, received: list[int]
               ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        if splits is None:
            return output
        return output, torch.tensor(received, dtype=torch.int32, device=device)

    return _collectives.alltoall(tensor, _as_counts(splits), _options(
        "alltoall", name, process_set), process_set, finish)


def reducescatter_async(tensor: torch.Tensor, name: str | None = None, op: int = Average,
                        process_set: ProcessSet = global_process_set,
                        prescale_factor: float = 1.0, postscale_factor: float = 1.0
                        ) -> Handle[torch.Tensor]:
    """Reduces, and gives each rank its rows of the first dimension, in rank order."""
    return _collectives.reducescatter(tensor, None, _options(
        "reducescatter", name, process_set, op, 0, prescale_factor,
        postscale_factor), process_set)


def grouped_reducescatter_async(tensors: Sequence[torch.Tensor], name: str | None = None,
                                op: int = Average, process_set: ProcessSet = global_process_set,
                                prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> Handle[list[torch.Tensor]]:
    """reducescatter_async of several tensors that become ready, and run, together."""
    return _collectives.grouped_reducescatter(list(tensors), _options(
        "grouped_reducescatter", name, process_set, op, 0, prescale_factor,
        postscale_factor), process_set)


def poll(handle: Handle[R] | SparseHandle) -> bool:
    """Whether synchronize(handle) would return at once."""
    return handle.done()


@overload
def synchronize(handle: Handle[R]) -> R: ...


@overload
def synchronize(handle: SparseHandle) -> torch.Tensor: ...


def synchronize(handle: Handle[R] | SparseHandle) -> R | torch.Tensor:
    """Waits for an asynchronous call and returns its result. HorovodInternalError when it
    failed."""
    return handle.wait()


def join(device: int = -1) -> int:
    """This rank has no more batches: until every rank has joined, it takes part in the others'
    allreduces, allgathers and barriers with nothing of its own. Returns the rank that joined last.
    `device` is where Horovod makes zeros; hvd needs none, wherever the others' tensors lie."""
    return _ops.join()

