# SPDX-License-Identifier: Apache-2.0
"""DistributedTrainer: gluon's Trainer, whose steps are by the gradients of all ranks."""
from __future__ import annotations

import warnings
from typing import Any

import mxnet

from .. import ops
from .._core.compression import Compresses
from .._names import meeting
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .compression import Compression
from .optimizer import DistributedOptimizer
from .reduction import Reduction


class DistributedTrainer(mxnet.gluon.Trainer):
    """gluon's Trainer. A step sums each gradient over the ranks, in place, as soon as backward has
    made it, and updates by the sum divided by the number of ranks: as on one rank with all their
    batches. `step(batch_size)` counts this rank's samples.

    `compression`: how gradients travel. `gradient_predivide_factor` f: they are divided by f before
    they are summed, and multiplied by f / ranks in the update. `prefix` tells the trainers of one
    program apart. `num_groups`: so many groups of gradients travel together."""

    def __init__(self, params: Any, optimizer: str | mxnet.optimizer.Optimizer,
                 optimizer_params: dict[str, Any] | None = None,
                 compression: Compresses[mxnet.nd.NDArray] = Compression.none,
                 gradient_predivide_factor: float = 1.0,
                 prefix: str | None = None, num_groups: int = 0,
                 process_set: ProcessSet = global_process_set) -> None:
        if isinstance(optimizer, DistributedOptimizer):
            optimizer = optimizer._optimizer
            warnings.warn("DistributedTrainer averages by itself: it takes the plain optimizer out "
                          "of the DistributedOptimizer", stacklevel=2)
        super().__init__(params, optimizer, optimizer_params=optimizer_params, kvstore=None)
        if any(param._grad_stype != "default" for param in self._params):
            raise ValueError("DistributedTrainer takes dense gradients only: make the layers "
                             "without sparse_grad")
        if self._contexts is not None and len(self._contexts) > 1:
            raise ValueError(f"a rank has its parameters in one context, not in {self._contexts}: "
                             "start more ranks")
        self._prefix = prefix or ""
        self._reduction = Reduction(ops.Sum, process_set, compression, gradient_predivide_factor,
                                    num_groups)
        if self._reduction.takes_part():
            self._scale *= gradient_predivide_factor / len(process_set.ranks)

    def _allreduce_grads(self) -> None:
        order = meeting([param.name for param in self._params])
        trained = [(i, self._params[place], contents) for i, (place, contents)
                   in enumerate(zip(*order, strict=True))
                   if self._params[place].grad_req != "null"]
        self._reduction.reduce([f"{self._prefix}{i}" for i, _, _ in trained],
                               [param.list_grad()[0] for _, param, _ in trained],
                               [contents for _, _, contents in trained])
