# SPDX-License-Identifier: Apache-2.0
"""The collectives in a program that torch compiles: by torch.ops.hvd.*, which stay in its graphs.

These functions are not called as they stand: torch.compile reads them. The numbers that they ask of
the job (ranks, sizes) become part of what is compiled.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import torch

from .. import basics
from .._core.library import LIBRARY
from .._torch.context import Operators, Rows
from ..process_sets import ProcessSet
from . import operator_library

if TYPE_CHECKING:
    from typing_extensions import Unpack

is_compiling = getattr(torch.compiler, "is_compiling", lambda: False)

_ops: Operators = torch.ops.hvd
_Function = TypeVar("_Function", bound=Callable[..., object])
# Name, op, scales, process set, compression on the wire.
_How = tuple[str | None, int, tuple[float, float], ProcessSet, int]
_told: list[str] = []


def _asked_when_compiled(function: _Function) -> _Function:
    """Its answer becomes a constant. This is torch.compiler.assume_constant_result, which would
    load the whole compiler."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def there() -> bool:
    """Whether a call that is being compiled can be an operator. If not, the graph ends here, and
    the call is made as in a program that is not compiled."""
    if not operator_library.PROBLEM:
        return _kept_in_order()
    words = _advice()
    if operator_library.NEW_ENOUGH:
        torch._dynamo.graph_break(msg=words)
    else:
        torch._dynamo.graph_break()
    return False


@_asked_when_compiled
def _kept_in_order() -> bool:
    """Before 2.15 inductor mixes up two names when it notes what has to stay in order. The one of
    its steps that looks for the least memory then moves calls: where ranks have different shapes or
    graphs, not to the same places, and they would wait for each other for ever."""
    if operator_library.VERSION < (2, 15):
        from torch._inductor import config
        config.reorder_for_peak_memory = False
    return True


@_asked_when_compiled
def _advice() -> str:
    """Returns words on what is missing. Rank 0 says them, once."""
    words = ("hvd's collectives cannot be in a compiled graph, because the operators torch.ops.hvd "
             f"are missing: {operator_library.PROBLEM}")
    if not _told and LIBRARY.held.hvd_rank() <= 0:
        warnings.warn(words + "\nThe program runs all the same, in several graphs; with "
                      "fullgraph=True it cannot.", RuntimeWarning, stacklevel=2)
    _told.append(words)
    return words


@_asked_when_compiled
def _rank_and_size(number: int) -> tuple[int, int]:
    return (int(LIBRARY.held.hvd_process_set_rank(number)),
            int(LIBRARY.held.hvd_process_set_size(number)))


def _number(process_set: ProcessSet) -> int:
    number = process_set.process_set_id
    return -1 if number is None else number  # libhvd says what is wrong, when it runs


def _reduction(name: str | None, op: int, scales: tuple[float, float], process_set: ProcessSet,
               wire: int) -> tuple[int, float, float, int, int, str]:
    return op, float(scales[0]), float(scales[1]), wire, _number(process_set), name or ""


def allreduce(tensor: torch.Tensor, *how: Unpack[_How]) -> torch.Tensor:
    """`how`: name, op, scales, process set, compression on the wire; so in all reductions."""
    return _ops.allreduce(tensor, *_reduction(*how))


def grouped_allreduce(tensors: Sequence[torch.Tensor], *how: Unpack[_How]) -> list[torch.Tensor]:
    return _ops.grouped_allreduce(list(tensors), *_reduction(*how))


def allreduce_(tensor: torch.Tensor, *how: Unpack[_How]) -> torch.Tensor:
    return _write(tensor, allreduce(tensor.detach(), *how))


def grouped_allreduce_(tensors: Sequence[torch.Tensor], *how: Unpack[_How]) -> list[torch.Tensor]:
    results = grouped_allreduce([tensor.detach() for tensor in tensors], *how)
    return [_write(*pair) for pair in zip(tensors, results, strict=True)]


def broadcast_(tensor: torch.Tensor, root_rank: int, name: str | None,
               process_set: ProcessSet) -> torch.Tensor:
    return _write(tensor, broadcast(tensor.detach(), root_rank, name, process_set))


def _write(target: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Writes the result of a call that works in place. torch would not keep operators that do so in
    order with the others."""
    with torch.no_grad():
        return target.copy_(result)


def broadcast(tensor: torch.Tensor, root_rank: int, name: str | None,
              process_set: ProcessSet) -> torch.Tensor:
    return _ops.broadcast(tensor, root_rank, _number(process_set), name or "")


def allgather(tensor: torch.Tensor, name: str | None, process_set: ProcessSet) -> torch.Tensor:
    return _ops.allgather(tensor, _number(process_set), name or "")


def grouped_allgather(tensors: Sequence[torch.Tensor], name: str | None,
                      process_set: ProcessSet) -> list[torch.Tensor]:
    return _ops.grouped_allgather(list(tensors), _number(process_set), name or "")


def alltoall(tensor: torch.Tensor, splits: torch.Tensor | Sequence[int] | None, name: str | None,
             process_set: ProcessSet
             ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    number, name = _number(process_set), name or ""
    if splits is None:
        rows = tensor.shape[0] if tensor.dim() else None
        return _ops.alltoall(tensor, None, number, name, rows)[0]
    if not isinstance(splits, torch.Tensor):
        splits = torch.tensor(splits, dtype=torch.int64)
    elif splits.dtype != torch.int32 and not splits.is_floating_point():
        splits = splits.to(torch.int64)
    output, received = _ops.alltoall(tensor, splits, number, name)
    return output, received.to(splits.device)


def _share(tensor: torch.Tensor, process_set: ProcessSet) -> Rows | None:
    """The rows that a reducescatter gives this rank; None when libhvd will refuse the call."""
    rank, size = _rank_and_size(_number(process_set))
    if rank < 0 or tensor.dim() == 0:
        return None
    # The first ranks get one more; said without a comparison, since only the run may tell the rows.
    return (tensor.shape[0] + size - 1 - rank) // size


def reducescatter(tensors: Sequence[torch.Tensor], name: str | None, op: int,
                  scales: tuple[float, float], process_set: ProcessSet, wire: int,
                  grouped: bool) -> list[torch.Tensor]:
    how = _reduction(name, op, scales, process_set, wire)
    rows = [_share(tensor, process_set) for tensor in tensors]
    if not grouped:
        return [_ops.reducescatter(tensors[0], *how, rows[0])]
    known = [row for row in rows if row is not None]
    return _ops.grouped_reducescatter(list(tensors), *how,
                                      known if len(known) == len(rows) else None)


for _asked in (basics.rank, basics.size, basics.local_rank, basics.local_size, basics.cross_rank,
               basics.cross_size, basics.is_homogeneous, basics.is_initialized):
    _asked_when_compiled(_asked)
