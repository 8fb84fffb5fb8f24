# SPDX-License-Identifier: Apache-2.0
"""The rules that torch's compiler must know of torch.ops.hvd.*: shapes, gradients, and that each is
an event.

Nothing here may depend on the rank or the job: torch keeps what it has compiled on disk, for
whoever compiles the same graph. Ranks and sizes are therefore arguments, or are asked for when it
runs.

The gradients are those of `autograd`, and make the same calls in the same order: ranks that are
compiled and ranks that are not may work together.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from .._core.abi import ADASUM, AVERAGE, MAX, MIN, PRODUCT, SUM
from .._torch.context import Context, Operators, Rows

_ops: Operators = torch.ops.hvd
_Inputs = Sequence[Any]  # of a call, each of its own type; of a reduction all but the tensors
_Tensors = Sequence[torch.Tensor]
C = TypeVar("C")
_Answer = tuple[object, ...]  # gradients by the inputs, a list of them for a list
_COMMUNICATE = ("allreduce", "grouped_allreduce", "broadcast", "allgather", "grouped_allgather",
                "alltoall", "reducescatter", "grouped_reducescatter", "own_rows")
_IN_PLACE = ("allreduce_", "grouped_allreduce_", "broadcast_")


def register() -> None:
    """To be called once, when the library is loaded."""
    for name, shape in _SHAPES.items():
        torch.library.register_fake(f"hvd::{name}", shape)
    for name in _IN_PLACE:
        torch.library.register_fake(f"hvd::{name}", lambda *args, **kwargs: None)
    for name, (keep, backward) in _GRADIENTS.items():
        torch.library.register_autograd(f"hvd::{name}", backward, setup_context=keep)
    for name in _COMMUNICATE:
        _keep_in_order(name)


def _keep_in_order(name: str) -> None:
    """Has a compiled program make all of its calls, and in the program's order, also where nobody
    uses a result: the other ranks may."""
    from torch._library.effects import EffectType
    torch.library._register_effectful_op(f"hvd::{name}", EffectType.ORDERED)


# ---- shapes ----

def _new(like: torch.Tensor, rows: Rows) -> torch.Tensor:
    return like.new_empty((rows, *like.shape[1:]))


def _unknown_rows() -> torch.SymInt:
    return torch.library.get_ctx().new_dynamic_size()


def _like(tensor: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
    return tensor.new_empty(tensor.shape)


def _like_each(tensors: Sequence[torch.Tensor], *_: object, **__: object) -> list[torch.Tensor]:
    return [_like(tensor) for tensor in tensors]


def _gathered(tensor: torch.Tensor, process_set: int = 0, name: str = "",
              rows: Rows | None = None) -> torch.Tensor:
    return _new(tensor, _unknown_rows() if rows is None else rows)


def _each_gathered(tensors: Sequence[torch.Tensor], *_: object, **__: object) -> list[torch.Tensor]:
    return [_new(tensor, _unknown_rows()) for tensor in tensors]


def _exchanged(tensor: torch.Tensor, splits: torch.Tensor | None = None, process_set: int = 0,
               name: str = "", rows: Rows | None = None) -> list[torch.Tensor]:
    members = _unknown_rows() if splits is None else splits.shape[0]
    output = _new(tensor, _unknown_rows() if rows is None else rows)
    return [output, tensor.new_empty((members,), dtype=torch.int32, device="cpu")]


def _scattered(tensor: torch.Tensor, op: int = 0, prescale_factor: float = 1.0,
               postscale_factor: float = 1.0, compression: int = 0, process_set: int = 0,
               name: str = "", rows: Rows | None = None) -> torch.Tensor:
    return _new(tensor, _unknown_rows() if rows is None else rows)


def _each_scattered(tensors: Sequence[torch.Tensor], op: int = 0, prescale_factor: float = 1.0,
                    postscale_factor: float = 1.0, compression: int = 0, process_set: int = 0,
                    name: str = "", rows: Sequence[Rows] | None = None) -> list[torch.Tensor]:
    counts = [_unknown_rows() for _ in tensors] if rows is None else rows
    return [_new(*pair) for pair in zip(tensors, counts, strict=True)]


def _own(whole: torch.Tensor, rows: Rows, process_set: int = 0, name: str = "") -> torch.Tensor:
    return _new(whole, rows)


def _two_numbers(like: torch.Tensor, process_set: int = 0) -> torch.Tensor:
    return like.new_empty((2,), dtype=torch.int64)


_SHAPES: dict[str, Callable[..., object]] = {
    "allreduce": _like, "grouped_allreduce": _like_each, "broadcast": _like,
    "allgather": _gathered, "grouped_allgather": _each_gathered, "alltoall": _exchanged,
    "reducescatter": _scattered, "grouped_reducescatter": _each_scattered, "own_rows": _own,
    "rank_and_size": _two_numbers,
}


# ---- gradients; what is kept of a forward call is in ctx.call ----

def _to_first(ctx: Context[C], gradient: object) -> _Answer:
    """The gradients of all inputs that were given; torch leaves out those that have their
    default."""
    return gradient, *[None] * (len(ctx.needs_input_grad) - 1)


def _keep_allreduce(ctx: Context[_Inputs], inputs: _Inputs,
                    output: torch.Tensor) -> None:
    tensor, *ctx.call = inputs
    if ctx.call[0] in (MIN, MAX, PRODUCT):
        ctx.save_for_backward(tensor, output)


def _allreduce_gradient(ctx: Context[_Inputs], grad: torch.Tensor) -> _Answer:
    if ctx.call[0] in (AVERAGE, SUM, ADASUM):
        mine = _ops.allreduce(grad.contiguous(), *ctx.call[:5])
    else:
        tensor, output = ctx.saved_tensors
        mine = _extreme_gradient(ctx.call, tensor, output, grad.contiguous())
    return _to_first(ctx, mine)


def _extreme_gradient(call: _Inputs, tensor: torch.Tensor, output: torch.Tensor,
                      grad: torch.Tensor) -> torch.Tensor:
    """The gradient of Min, Max and Product."""
    op, before, after, _, process_set = call[:5]
    total = _ops.allreduce(grad, SUM, process_set=process_set)
    if op == PRODUCT:
        return total * output / tensor
    hit = (tensor * before * after == output).to(grad.dtype)
    count = _ops.allreduce(hit, SUM, process_set=process_set)
    mine: torch.Tensor = total * hit * before * after / count
    return mine


def _keep_grouped_allreduce(ctx: Context[_Inputs], inputs: _Inputs,
                            output: _Tensors) -> None:
    tensors, *ctx.call = inputs
    if ctx.call[0] in (MIN, MAX, PRODUCT):
        ctx.save_for_backward(*tensors, *output)


def _grouped_allreduce_gradient(ctx: Context[_Inputs], grads: _Tensors) -> _Answer:
    dense = [grad.contiguous() for grad in grads]
    if ctx.call[0] in (AVERAGE, SUM, ADASUM):
        mine = _ops.grouped_allreduce(dense, *ctx.call[:5])
    else:
        saved = ctx.saved_tensors
        triples = zip(saved[:len(dense)], saved[len(dense):], dense, strict=True)
        mine = [_extreme_gradient(ctx.call, *triple) for triple in triples]
    return _to_first(ctx, mine)


def _keep_broadcast(ctx: Context[tuple[int, int]], inputs: _Inputs,
                    output: torch.Tensor) -> None:
    ctx.call = inputs[1], inputs[2]


def _broadcast_gradient(ctx: Context[tuple[int, int]], grad: torch.Tensor) -> _Answer:
    root, process_set = ctx.call
    total = _ops.allreduce(grad.contiguous(), AVERAGE, process_set=process_set)
    rank = _ops.rank_and_size(grad)[0]
    return _to_first(ctx, torch.where(rank == root, total, torch.zeros_like(total)))


def _keep_allgather(ctx: Context[tuple[Rows, int]], inputs: _Inputs,
                    output: torch.Tensor) -> None:
    ctx.call = inputs[0].shape[0], inputs[1]


def _allgather_gradient(ctx: Context[tuple[Rows, int]], grad: torch.Tensor) -> _Answer:
    rows, process_set = ctx.call
    total = _ops.allreduce(grad.contiguous(), AVERAGE, process_set=process_set)
    return _to_first(ctx, _ops.own_rows(total, rows, process_set))


def _keep_grouped_allgather(ctx: Context[tuple[list[Rows], int]], inputs: _Inputs,
                            output: _Tensors) -> None:
    ctx.call = [tensor.shape[0] for tensor in inputs[0]], inputs[1]


def _grouped_allgather_gradient(ctx: Context[tuple[list[Rows], int]],
                                grads: _Tensors) -> _Answer:
    rows, process_set = ctx.call
    totals = _ops.grouped_allreduce([grad.contiguous() for grad in grads], AVERAGE,
                                    process_set=process_set)
    mine = [_ops.own_rows(*pair, process_set) for pair in zip(totals, rows, strict=True)]
    return _to_first(ctx, mine)


def _keep_alltoall(ctx: Context[tuple[Rows, int]], inputs: _Inputs,
                   output: _Tensors) -> None:
    ctx.call = inputs[0].shape[0], inputs[2]
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])


def _alltoall_gradient(ctx: Context[tuple[Rows, int]], grads: _Tensors) -> _Answer:
    rows, process_set = ctx.call
    received, = ctx.saved_tensors
    # Rows that went nowhere have no gradient; all the others come back in their order.
    mine, _ = _ops.alltoall(grads[0].contiguous(), received, process_set, rows=rows)
    return _to_first(ctx, mine)


def _keep_reducescatter(ctx: Context[tuple[_Inputs, Rows]],
                        inputs: _Inputs, output: object) -> None:
    ctx.call = inputs[1:6], inputs[0].shape[0]


def _scattered_gradient(call: _Inputs, grad: torch.Tensor, rows: Rows) -> torch.Tensor:
    op, before, after, _, process_set = call
    if op not in (AVERAGE, SUM):
        raise NotImplementedError("reducescatter can be differentiated for Average and Sum")
    scaled = grad * (before * after)
    if op == SUM:
        scaled = scaled * _ops.rank_and_size(grad, process_set)[1]
    return _ops.allgather(scaled.contiguous(), process_set, rows=rows)


def _reducescatter_gradient(ctx: Context[tuple[_Inputs, Rows]],
                            grad: torch.Tensor) -> _Answer:
    call, rows = ctx.call
    return _to_first(ctx, _scattered_gradient(call, grad, rows))


def _keep_grouped_reducescatter(ctx: Context[tuple[_Inputs, list[Rows]]],
                                inputs: _Inputs, output: object) -> None:
    ctx.call = inputs[1:6], [tensor.shape[0] for tensor in inputs[0]]


def _grouped_reducescatter_gradient(ctx: Context[tuple[_Inputs, list[Rows]]],
                                    grads: _Tensors) -> _Answer:
    call, rows = ctx.call
    mine = [_scattered_gradient(call, *pair) for pair in zip(grads, rows, strict=True)]
    return _to_first(ctx, mine)


_GRADIENTS: dict[str, tuple[Callable[..., None], Callable[..., _Answer]]] = {
    "allreduce": (_keep_allreduce, _allreduce_gradient),
    "grouped_allreduce": (_keep_grouped_allreduce, _grouped_allreduce_gradient),
    "broadcast": (_keep_broadcast, _broadcast_gradient),
    "allgather": (_keep_allgather, _allgather_gradient),
    "grouped_allgather": (_keep_grouped_allgather, _grouped_allgather_gradient),
    "alltoall": (_keep_alltoall, _alltoall_gradient),
    "reducescatter": (_keep_reducescatter, _reducescatter_gradient),
    "grouped_reducescatter": (_keep_grouped_reducescatter, _grouped_reducescatter_gradient),
}
