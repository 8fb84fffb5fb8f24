# SPDX-License-Identifier: Apache-2.0
"""The blocking collectives, which make new tensors and can be differentiated.

The gradients that backward gives (g is the gradient of the output; all are Horovod's rules):
    allreduce       the same allreduce of g; Min and Max: the sum of the g's, to those who had the
                    least or greatest value; Product: the sum of the g's times the others' product
    allgather       this rank's rows of the average of the g's
    broadcast       the average of the g's on the root, zero elsewhere
    alltoall        the rows of g, sent back
    reducescatter   the g's gathered, for Sum times the number of ranks
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import torch
from torch.autograd import Function

from .._core import abi
from .._core.compression import Compresses, wire_of
from .._torch.context import Context, applied
from .._torch.context import Gradients as _Grads
from .._torch.operators import collectives as _collectives
from .._torch.operators import dense as _dense
from .._torch.operators import options as _options
from ..basics import global_process_set
from ..basics import rank as _rank
from ..process_sets import ProcessSet
from . import compiled, mpi_ops
from .compiled import is_compiling
from .compression import Compression
from .mpi_ops import Adasum, Average, Max, Min, Product, Sum

_Scales = tuple[float, float]  # before and after
_How = tuple[str | None, int, _Scales, ProcessSet]  # name, op
_Call = tuple[int, _Scales, ProcessSet, int]  # op; and the compression on the wire
_Way = tuple[list[int], torch.Size, ProcessSet]  # rows that came from each, and the input's shape


def _tracked(tensors: Sequence[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _input_gradient(op: int, scales: _Scales, process_set: ProcessSet,
                    tensor: torch.Tensor, output: torch.Tensor,
                    grad: torch.Tensor) -> torch.Tensor:
    """The gradient of allreduces whose gradient is not an allreduce of the same kind."""
    total = allreduce(grad, op=Sum, process_set=process_set)
    if op == Product and tensor.is_complex():
        return total * (output / tensor).conj()
    if op == Product:
        return total * output / tensor
    hit = (tensor * scales[0] * scales[1] == output).to(grad.dtype)
    count = allreduce(hit, op=Sum, process_set=process_set)
    return total * hit * scales[0] * scales[1] / count


class _Allreduce(Function):
    @staticmethod
    def forward(ctx: Context[_Call], tensor: torch.Tensor, name: str | None, op: int,
                scales: _Scales, process_set: ProcessSet, wire: int) -> torch.Tensor:
        ctx.call = (op, scales, process_set, wire)
        output = _collectives.allreduce_now(tensor, None, _options(
            "allreduce", name, process_set, op, 0, scales[0], scales[1], wire))
        if op in (Min, Max, Product):
            ctx.save_for_backward(tensor, output)
        return output

    @staticmethod
    def backward(ctx: Context[_Call], grad: torch.Tensor) -> _Grads:
        op, scales, process_set, wire = ctx.call
        if op in (Average, Sum, Adasum):
            mine = _allreduce(_dense(grad), None, op, scales, process_set, wire)
        else:
            tensor, output = ctx.saved_tensors
            mine = _input_gradient(op, scales, process_set, tensor, output, _dense(grad))
        return mine, None, None, None, None, None


def _allreduce(tensor: torch.Tensor, name: str | None, op: int, scales: _Scales,
               process_set: ProcessSet, wire: int) -> torch.Tensor:
    if is_compiling() and compiled.there():
        return compiled.allreduce(tensor, name, op, scales, process_set, wire)
    if _tracked((tensor,)):
        output: torch.Tensor = applied(_Allreduce, tensor, name, op, scales, process_set, wire)
        return output
    return _collectives.allreduce_now(tensor, None, _options(
        "allreduce", name, process_set, op, 0, scales[0], scales[1], wire))


def allreduce(tensor: torch.Tensor, average: bool | None = None, name: str | None = None,
              compression: Compresses[torch.Tensor] = Compression.none, op: int | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Reduces elementwise over the ranks; all get the same bits. Differentiable."""
    op = mpi_ops.handle_average_backwards_compatibility(op, average)
    scales = (prescale_factor, postscale_factor)
    wire = wire_of(compression)
    if wire is not None:
        return _allreduce(tensor, name, op, scales, process_set, wire)
    small, ctx = compression.compress(tensor)
    return compression.decompress(_allreduce(small, name, op, scales, process_set,
                                             abi.COMPRESSION_NONE), ctx)


class _GroupedAllreduce(Function):
    @staticmethod
    def forward(ctx: Context[_Call], name: str | None, op: int, scales: _Scales,
                process_set: ProcessSet, wire: int,
                *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.call = (op, scales, process_set, wire)
        outputs = _grouped_now(tensors, name, op, scales, process_set, wire)
        if op in (Min, Max, Product):
            ctx.save_for_backward(*tensors, *outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Context[_Call], *grads: torch.Tensor) -> _Grads:
        op, scales, process_set, wire = ctx.call
        dense = [_dense(grad) for grad in grads]
        if op in (Average, Sum, Adasum):
            mine = _grouped_now(dense, None, op, scales, process_set, wire)
        else:
            saved = ctx.saved_tensors
            pairs = zip(saved[:len(dense)], saved[len(dense):], dense, strict=True)
            mine = [_input_gradient(op, scales, process_set, *pair)
                    for pair in pairs]
        return (None, None, None, None, None, *mine)


def _grouped_now(tensors: Sequence[torch.Tensor], name: str | None, op: int,
                 scales: _Scales, process_set: ProcessSet,
                 wire: int, contents: str = "") -> list[torch.Tensor]:
    options = _options("grouped_allreduce", name, process_set, op, 0, scales[0],
                       scales[1], wire, contents)
    return _collectives.grouped_allreduce(list(tensors), None, options).wait()


def grouped_allreduce(tensors: Sequence[torch.Tensor], average: bool | None = None,
                      name: str | None = None,
                      compression: Compresses[torch.Tensor] = Compression.none,
                      op: int | None = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0,
                      process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """allreduce of several tensors that become ready, and run, together. Differentiable."""
    return _grouped(tensors, compression, "", (
        name, mpi_ops.handle_average_backwards_compatibility(op, average),
        (prescale_factor, postscale_factor), process_set))


def grouped_allreduce_of(contents: str, tensors: Sequence[torch.Tensor],
                         compression: Compresses[torch.Tensor], how: _How) -> list[torch.Tensor]:
    """grouped_allreduce of gradients; `how`: name, op, both scales, process set. `contents`: what
    they are, in their order; MismatchError on all ranks where they do not say the same (which
    compiled programs do not look at)."""
    with torch.no_grad():
        return _grouped(tensors, compression, contents, how)


def _grouped(tensors: Sequence[torch.Tensor], compression: Compresses[torch.Tensor], contents: str,
             how: _How) -> list[torch.Tensor]:
    wire, contexts = wire_of(compression), []
    if wire is None:
        pairs = [compression.compress(tensor) for tensor in tensors]
        tensors, contexts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    call = (*how, wire or abi.COMPRESSION_NONE)
    if is_compiling() and compiled.there():
        outputs = compiled.grouped_allreduce(tensors, *call)
    elif _tracked(tensors):
        outputs = applied(_GroupedAllreduce, *call, *tensors)
    else:
        outputs = _grouped_now(tensors, *call, contents)
    if wire is not None:
        return list(outputs)
    return [compression.decompress(*pair) for pair in zip(outputs, contexts, strict=True)]


def _own_rows(total: torch.Tensor, rows: int, process_set: ProcessSet) -> torch.Tensor:
    """This rank's rows of what was gathered."""
    counts = allgather(torch.tensor([rows]), process_set=process_set)
    before = int(counts[:process_set.rank()].sum())
    return total.narrow(0, before, rows)


class _Allgather(Function):
    @staticmethod
    def forward(ctx: Context[tuple[int, ProcessSet]], tensor: torch.Tensor, name: str | None,
                process_set: ProcessSet) -> torch.Tensor:
        ctx.call = (tensor.shape[0] if tensor.dim() else 0, process_set)
        return mpi_ops.allgather_async(tensor, name, process_set).wait()

    @staticmethod
    def backward(ctx: Context[tuple[int, ProcessSet]], grad: torch.Tensor) -> _Grads:
        rows, process_set = ctx.call
        total = allreduce(_dense(grad), op=Average, process_set=process_set)
        return _own_rows(total, rows, process_set), None, None


def allgather(tensor: torch.Tensor, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """Concatenates the ranks' tensors along the first dimension, in rank order; that dimension may
    differ from rank to rank. Differentiable."""
    if is_compiling() and compiled.there():
        return compiled.allgather(tensor, name, process_set)
    if _tracked((tensor,)):
        output: torch.Tensor = applied(_Allgather, tensor, name, process_set)
        return output
    return mpi_ops.allgather_async(tensor, name, process_set).wait()


class _GroupedAllgather(Function):
    @staticmethod
    def forward(ctx: Context[tuple[list[int], ProcessSet]], name: str | None,
                process_set: ProcessSet, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.call = ([tensor.shape[0] for tensor in tensors], process_set)
        return tuple(mpi_ops.grouped_allgather_async(tensors, name, process_set).wait())

    @staticmethod
    def backward(ctx: Context[tuple[list[int], ProcessSet]], *grads: torch.Tensor) -> _Grads:
        rows, process_set = ctx.call
        totals = grouped_allreduce([_dense(grad) for grad in grads], op=Average,
                                   process_set=process_set)
        mine = [_own_rows(total, count, process_set)
                for total, count in zip(totals, rows, strict=True)]
        return (None, None, *mine)


def grouped_allgather(tensors: Sequence[torch.Tensor], name: str | None = None,
                      process_set: ProcessSet = global_process_set) -> list[torch.Tensor]:
    """allgather of several tensors that become ready, and run, together. Differentiable."""
    if is_compiling() and compiled.there():
        return compiled.grouped_allgather(tensors, name, process_set)
    if _tracked(tensors):
        return list(applied(_GroupedAllgather, name, process_set, *tensors))
    return mpi_ops.grouped_allgather_async(tensors, name, process_set).wait()


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Context[tuple[int, ProcessSet]], tensor: torch.Tensor, root_rank: int,
                name: str | None, process_set: ProcessSet) -> torch.Tensor:
        ctx.call = (root_rank, process_set)
        return mpi_ops.broadcast_async(tensor, root_rank, name, process_set).wait()

    @staticmethod
    def backward(ctx: Context[tuple[int, ProcessSet]], grad: torch.Tensor) -> _Grads:
        root_rank, process_set = ctx.call
        total = allreduce(_dense(grad), op=Average, process_set=process_set)
        return (total if _rank() == root_rank else torch.zeros_like(total)), None, None, None


def broadcast(tensor: torch.Tensor, root_rank: int, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The tensor of `root_rank`, a global rank, on all. Differentiable."""
    if is_compiling() and compiled.there():
        return compiled.broadcast(tensor, root_rank, name, process_set)
    if _tracked((tensor,)):
        output: torch.Tensor = applied(_Broadcast, tensor, root_rank, name, process_set)
        return output
    return mpi_ops.broadcast_async(tensor, root_rank, name, process_set).wait()


class _Alltoall(Function):
    @staticmethod
    def forward(ctx: Context[_Way], tensor: torch.Tensor, splits: list[int], name: str | None,
                process_set: ProcessSet) -> tuple[torch.Tensor, torch.Tensor]:
        output, received = mpi_ops.alltoall_async(tensor, splits, name, process_set).wait()
        # Rows that went nowhere have no gradient; all the others come back in their order.
        ctx.call = (received.tolist(), tensor.shape, process_set)
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Context[_Way], grad: torch.Tensor, _: torch.Tensor) -> _Grads:
        received, shape, process_set = ctx.call
        returned, _ = alltoall(_dense(grad), received, process_set=process_set)
        mine = grad.new_zeros(shape)
        mine[:returned.shape[0]] = returned
        return mine, None, None, None


@overload
def alltoall(tensor: torch.Tensor, splits: None = None, name: str | None = None,
             process_set: ProcessSet = global_process_set) -> torch.Tensor: ...


@overload
def alltoall(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int], name: str | None = None,
             process_set: ProcessSet = global_process_set
             ) -> tuple[torch.Tensor, torch.Tensor]: ...


def alltoall(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None = None,
             name: str | None = None, process_set: ProcessSet = global_process_set
             ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Sends splits[r] rows of the first dimension to member r; without splits the rows are divided
    evenly. Returns what came, in rank order; given splits, also how many rows from each (int32).
    Differentiable."""
    if is_compiling() and compiled.there():
        return compiled.alltoall(tensor, splits, name, process_set)
    members = process_set.size() or 1
    even = splits is None and tensor.dim() > 0 and tensor.shape[0] % members == 0
    if not _tracked((tensor,)) or (splits is None and not even):  # what is wrong, libhvd says
        return mpi_ops.alltoall_async(tensor, splits, name, process_set).wait()
    counts = [tensor.shape[0] // members] * members if splits is None else splits
    output, received = applied(_Alltoall, tensor, counts, name, process_set)
    return output if splits is None else (output, received)


def _reducescatter_now(tensors: Sequence[torch.Tensor], name: str | None, op: int,
                       scales: _Scales, process_set: ProcessSet, wire: int,
                       grouped: bool) -> list[torch.Tensor]:
    kind = "grouped_reducescatter" if grouped else "reducescatter"
    options = _options(kind, name, process_set, op, 0, scales[0], scales[1], wire)
    if grouped:
        return _collectives.grouped_reducescatter(list(tensors), options, process_set).wait()
    return [_collectives.reducescatter(tensors[0], None, options, process_set).wait()]


class _Reducescatter(Function):
    @staticmethod
    def forward(ctx: Context[tuple[int, _Scales, ProcessSet]], name: str | None, op: int,
                scales: _Scales, process_set: ProcessSet, wire: int, grouped: bool,
                *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.call = (op, scales, process_set)
        return tuple(_reducescatter_now(tensors, name, op, scales, process_set, wire, grouped))

    @staticmethod
    def backward(ctx: Context[tuple[int, _Scales, ProcessSet]], *grads: torch.Tensor) -> _Grads:
        op, scales, process_set = ctx.call
        if op not in (Average, Sum):
            raise NotImplementedError("reducescatter can be differentiated for Average and Sum")
        scale = scales[0] * scales[1] * (1 if op == Average else process_set.size() or 1)
        mine = [allgather(_dense(grad * scale), process_set=process_set) for grad in grads]
        return (None, None, None, None, None, None, *mine)


def _reducescatter(tensors: Sequence[torch.Tensor], compression: Compresses[torch.Tensor],
                   how: _How,
                   grouped: bool) -> list[torch.Tensor]:
    wire, contexts = wire_of(compression), []
    if wire is None:
        pairs = [compression.compress(tensor) for tensor in tensors]
        tensors, contexts = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    call = (*how, wire or abi.COMPRESSION_NONE, grouped)
    if is_compiling() and compiled.there():
        outputs = compiled.reducescatter(tensors, *call)
    elif _tracked(tensors):
        outputs = applied(_Reducescatter, *call, *tensors)
    else:
        outputs = _reducescatter_now(tensors, *call)
    if wire is not None:
        return list(outputs)
    return [compression.decompress(*pair) for pair in zip(outputs, contexts, strict=True)]


def reducescatter(tensor: torch.Tensor, name: str | None = None,
                  compression: Compresses[torch.Tensor] = Compression.none, op: int = Average,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> torch.Tensor:
    """Reduces, and gives each rank its rows of the first dimension, in rank order; when they do not
    divide evenly, the first ranks get one more. Differentiable."""
    how = (name, op, (prescale_factor, postscale_factor), process_set)
    return _reducescatter([tensor], compression, how, False)[0]


def grouped_reducescatter(tensors: Sequence[torch.Tensor], name: str | None = None,
                          compression: Compresses[torch.Tensor] = Compression.none,
                          op: int = Average,
                          process_set: ProcessSet = global_process_set,
                          prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> list[torch.Tensor]:
    """reducescatter of several tensors that become ready, and run, together. Differentiable."""
    how = (name, op, (prescale_factor, postscale_factor), process_set)
    return _reducescatter(tensors, compression, how, True)
