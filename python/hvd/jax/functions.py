# SPDX-License-Identifier: Apache-2.0
"""Making all ranks begin alike, and training together."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import ops
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .collectives import Tree, allreduce, broadcast

if TYPE_CHECKING:
    import optax


def broadcast_parameters(params: Tree, root_rank: int = 0, *,
                         process_set: ProcessSet = global_process_set) -> Tree:
    """`params` of `root_rank` on all. An optimizer's state is such a tree too; its numbers of
    Python's own become arrays."""
    return broadcast(params, root_rank, process_set=process_set)


def DistributedOptimizer(optimizer: optax.GradientTransformation, *,  # noqa: N802
                         op: int = ops.Average, name: str | None = None,
                         gradient_predivide_factor: float = 1.0,
                         process_set: ProcessSet = global_process_set
                         ) -> optax.GradientTransformationExtraArgs:
    """`optimizer`, whose updates are by the gradients of all ranks, reduced by `op`: all in one
    group, where the program needs them. An Average is divided by `gradient_predivide_factor` before
    the sum and by the rest behind it.

    For accumulation over several steps: optax.MultiSteps around this one."""
    import optax

    if gradient_predivide_factor != 1.0 and op != ops.Average:
        raise ValueError("gradient_predivide_factor is for op=Average")
    inner = optax.with_extra_args_support(optimizer)

    def update(updates: Tree, state: Any, params: Tree | None = None, **extra: Any) -> Any:
        reduced = allreduce(updates, op, name=name,
                            prescale_factor=1.0 / gradient_predivide_factor,
                            postscale_factor=gradient_predivide_factor, process_set=process_set)
        return inner.update(reduced, state, params, **extra)

    return optax.GradientTransformationExtraArgs(inner.init, update)

