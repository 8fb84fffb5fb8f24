# SPDX-License-Identifier: Apache-2.0
"""The facts of torch that its own stubs leave open: what the two halves of a differentiable call
share, and the operators of libhvd_torch.

Types alone, and `applied`. Nothing here depends on a rank, a job or a version of torch.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch.autograd import Function

C = TypeVar("C")
Gradients = tuple[torch.Tensor | None, ...]  # by the call's arguments
Rows = int | torch.SymInt  # a SymInt while torch compiles


class Context(Protocol[C]):
    """What forward leaves for backward. `call` is ours, all else torch's."""

    call: C

    @property
    def saved_tensors(self) -> tuple[torch.Tensor, ...]:
        """Those of save_for_backward."""

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """By the arguments that were given."""

    def save_for_backward(self, *tensors: torch.Tensor | None) -> None:
        """Keeps tensors until backward."""

    def mark_non_differentiable(self, *outputs: torch.Tensor) -> None:
        """These outputs have no gradient."""


def applied(function: type[Function], *arguments: object) -> Any:
    """The outputs of a differentiable call. torch's stubs do not know a Function's arguments."""
    return function.apply(*arguments)  # type: ignore[no-untyped-call]


class Operators(Protocol):
    """torch.ops.hvd, as `operators/operators.cc` defines it."""

    def allreduce(self, tensor: torch.Tensor, op: int = ..., prescale_factor: float = ...,
                  postscale_factor: float = ..., compression: int = ..., process_set: int = ...,
                  name: str = ...) -> torch.Tensor: ...

    def grouped_allreduce(self, tensors: Sequence[torch.Tensor], op: int = ...,
                          prescale_factor: float = ..., postscale_factor: float = ...,
                          compression: int = ..., process_set: int = ...,
                          name: str = ...) -> list[torch.Tensor]: ...

    def broadcast(self, tensor: torch.Tensor, root_rank: int, process_set: int = ...,
                  name: str = ...) -> torch.Tensor: ...

    def allgather(self, tensor: torch.Tensor, process_set: int = ..., name: str = ...,
                  rows: Rows | None = ...) -> torch.Tensor: ...

    def grouped_allgather(self, tensors: Sequence[torch.Tensor], process_set: int = ...,
                          name: str = ...) -> list[torch.Tensor]: ...

    def alltoall(self, tensor: torch.Tensor, splits: torch.Tensor | None = ...,
                 process_set: int = ..., name: str = ...,
                 rows: Rows | None = ...) -> list[torch.Tensor]: ...

    def reducescatter(self, tensor: torch.Tensor, op: int = ..., prescale_factor: float = ...,
                      postscale_factor: float = ..., compression: int = ...,
                      process_set: int = ..., name: str = ...,
                      rows: Rows | None = ...) -> torch.Tensor: ...

    def grouped_reducescatter(self, tensors: Sequence[torch.Tensor], op: int = ...,
                              prescale_factor: float = ..., postscale_factor: float = ...,
                              compression: int = ..., process_set: int = ..., name: str = ...,
                              rows: Sequence[Rows] | None = ...) -> list[torch.Tensor]: ...

    def own_rows(self, whole: torch.Tensor, rows: Rows, process_set: int = ...,
                 name: str = ...) -> torch.Tensor: ...

    def rank_and_size(self, like: torch.Tensor, process_set: int = ...) -> torch.Tensor: ...
