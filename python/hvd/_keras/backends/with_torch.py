# SPDX-License-Identifier: Apache-2.0
"""Keras on torch: by hvd.torch. All gradients travel in one group."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ... import torch as hvd
from ..._core.compression import Compresses
from ..._names import shown
from ...basics import global_process_set
from ...process_sets import ProcessSet
from ...torch import Compression as Compression
from ...torch.autograd import grouped_allreduce_of
from .settings import Settings, in_meeting_order

if TYPE_CHECKING:
    import keras

Gradient = torch.Tensor | None

_numbers = itertools.count(1)


class Reduction:
    """The reduction of one optimizer."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._compression = settings.compression or Compression.none
        self._name = f"keras.{next(_numbers)}"

    key_of = staticmethod(id)

    def reduce(self, found: Sequence[Gradient], variables: Sequence[object]) -> list[Gradient]:
        """The gradients of all ranks; a None stays None."""
        return in_meeting_order(
            found, variables, lambda ordered, contents: self._together(
                ordered, self._settings.op, self._compression, self._settings.scales, "", contents))

    def greatest(self, found: Sequence[Gradient]) -> list[Gradient]:
        """The greatest of all ranks', element by element."""
        return self._together(found, hvd.Max, Compression.none, (1.0, 1.0), ".greatest")

    def scale_local(self, gradient: Gradient) -> Gradient:
        """A gradient that is not reduced, as large as if the others' had been zero."""
        members = self._settings.process_set.size() or 1
        return gradient if gradient is None or members == 1 else gradient / members

    def all_true(self, flag: torch.Tensor | bool) -> torch.Tensor:
        """Whether it is true on all ranks of the process set."""
        flags = torch.as_tensor(flag).to(torch.int32)
        least = self._together([flags], hvd.Min, Compression.none, (1.0, 1.0), ".finite")[0]
        assert least is not None
        return least != 0

    def _together(self, found: Sequence[Gradient], op: int, compression: Compresses[torch.Tensor],
                  scales: tuple[float, float], suffix: str, contents: Sequence[str] = ()
                  ) -> list[Gradient]:
        there = [i for i, each in enumerate(found) if each is not None]
        results = list(found)
        if not there or not self._settings.process_set.included():
            return results
        reduced = grouped_allreduce_of(
            shown([contents[i] for i in there] if contents else ()),
            [_dense(each) for each in found if each is not None], compression,
            (self._name + suffix, op, scales, self._settings.process_set))
        for i, each in zip(there, reduced, strict=True):
            results[i] = each
        return results


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    return (gradient.to_dense() if gradient.is_sparse else gradient).contiguous()


def at_update(optimizer: keras.optimizers.Optimizer,
              change: Callable[[list[Gradient]], list[Gradient]], found: list[Gradient]
              ) -> list[Gradient]:
    """Keras is in the branch that applies gradients."""
    return change(found)


def allreduce(value: Any, name: str | None, op: int, prescale: float, postscale: float,
              compression: Compresses[torch.Tensor] | None, process_set: ProcessSet
              ) -> torch.Tensor:
    """See functions.allreduce."""
    return hvd.allreduce(_tensor(value), name=name, compression=compression or Compression.none,
                         op=op, prescale_factor=prescale, postscale_factor=postscale,
                         process_set=process_set)


def allgather(value: Any, name: str | None) -> torch.Tensor:
    """See functions.allgather."""
    return hvd.allgather(_tensor(value), name=name)


def broadcast(value: Any, root_rank: int, name: str | None) -> torch.Tensor:
    """See functions.broadcast."""
    return hvd.broadcast(_tensor(value), root_rank, name=name)


def reducescatter(value: Any, name: str | None, op: int) -> torch.Tensor:
    """See functions.reducescatter."""
    return hvd.reducescatter(_tensor(value), op=op, name=name)


def sum_over_ranks(value: torch.Tensor, name: str,
                   process_set: ProcessSet = global_process_set) -> torch.Tensor:
    """The sum of all ranks' values, which can be differentiated."""
    return hvd.allreduce(value.contiguous(), op=hvd.Sum, process_set=process_set)


def _tensor(value: Any) -> torch.Tensor:
    from keras import ops

    tensor: torch.Tensor = ops.convert_to_tensor(value).contiguous()
    return tensor
