# SPDX-License-Identifier: Apache-2.0
"""The collectives on values, for either Keras."""
from __future__ import annotations

from types import ModuleType
from typing import Any

from .. import ops as _ops
from .._arguments import op_of
from .._core.compression import Compresses
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .backends.kinds import Tensor


class Functions:
    """The functions of one backend. Values: its tensors, Keras' variables, NumPy arrays, numbers.
    Results are its tensors. Called within a compiled step, they are part of it."""

    def __init__(self, backend: ModuleType) -> None:
        self._backend = backend

    def allreduce(self, value: Tensor, name: str | None = None, average: bool | None = None,
                  prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                  op: int | None = None, compression: Compresses[Any] | None = None,
                  process_set: ProcessSet = global_process_set) -> Tensor:
        """The value, reduced elementwise over the ranks."""
        return self._backend.allreduce(value, name, op_of(op, average), prescale_factor,
                                       postscale_factor, compression, process_set)

    def allgather(self, value: Tensor, name: str | None = None) -> Tensor:
        """The ranks' values, one behind the other along the first dimension."""
        return self._backend.allgather(value, name)

    def broadcast(self, value: Tensor, root_rank: int, name: str | None = None) -> Tensor:
        """The value of `root_rank`."""
        return self._backend.broadcast(value, root_rank, name)

    def reducescatter(self, value: Tensor, name: str | None = None,
                      op: int = _ops.Average) -> Tensor:
        """This rank's rows of the value, reduced over the ranks."""
        return self._backend.reducescatter(value, name, op)
