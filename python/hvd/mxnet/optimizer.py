# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: an optimizer of MXNet's that updates by the gradients of all ranks."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mxnet

from .. import ops
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .engine import NDArray
from .reduction import Reduction

Index = int | str | Sequence[int | str]  # several where an update is of several
Arrays = NDArray | Sequence[NDArray]


class DistributedOptimizer(mxnet.optimizer.Optimizer):
    """`optimizer`, before whose updates the gradients are averaged over the ranks, in place. The
    new object is of the optimizer's class too, and what is set on one of both is set on the other.

    `gradient_predivide_factor` f: gradients are divided by f before they are summed, and multiplied
    by f / ranks afterwards. `num_groups`: where an update has several gradients, so many groups of
    them travel together. For gluon, DistributedTrainer takes the plain optimizer."""

    _optimizer: mxnet.optimizer.Optimizer
    _reduction: Reduction

    def __new__(cls, optimizer: mxnet.optimizer.Optimizer, gradient_predivide_factor: float = 1.0,
                num_groups: int = 0, process_set: ProcessSet = global_process_set
                ) -> DistributedOptimizer:
        if isinstance(optimizer, DistributedOptimizer):
            raise ValueError("the optimizer is a DistributedOptimizer already")
        kind = type(optimizer)
        made: DistributedOptimizer = object.__new__(type(kind.__name__, (cls, kind), {
            "__module__": kind.__module__, "__init__": lambda self, *_, **__: None,
            "_optimizer": optimizer,
            "_reduction": Reduction(ops.Average, process_set, predivide=gradient_predivide_factor,
                                    num_groups=num_groups)}))
        made.__dict__ = optimizer.__dict__
        return made

    def _reduce(self, index: Index, grad: Any) -> None:
        if isinstance(index, (tuple, list)):
            self._reduction.reduce([str(i) for i in index], grad)
        else:
            self._reduction.reduce([str(index)], [grad])

    # The plain optimizer makes the update: its methods call one another.

    def update(self, index: Index, weight: Arrays, grad: Arrays, state: object) -> None:
        """Averages the gradients, and updates by them."""
        self._reduce(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index: Index, weight: Arrays, grad: Arrays,
                               state: object) -> None:
        """As update, with states in float32 where the optimizer says so."""
        self._reduce(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def create_state(self, index: Index, weight: Arrays) -> object:
        """As the plain optimizer's."""
        return self._optimizer.create_state(index, weight)

    def create_state_multi_precision(self, index: Index, weight: Arrays) -> object:
        """As the plain optimizer's."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def __reduce__(self) -> tuple[Any, ...]:
        # The plain optimizer is what is saved: a program that loads it need not have hvd.
        return _same, (self._optimizer,)


def _same(optimizer: mxnet.optimizer.Optimizer) -> mxnet.optimizer.Optimizer:
    return optimizer
