# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer, for TensorFlow's own optimizers and for those of Keras."""
from __future__ import annotations

from typing import Any

import tensorflow as tf

from .. import ops as _ops
from .._arguments import Groups
from .._core.compression import Compresses
from .._keras import distributed as _keras
from .._keras.backends.settings import Settings
from .._tensorflow import optimizer as _sessions
from .._tensorflow.compression import Compression
from .._tensorflow.gradients import Reduction, groups_asked
from ..basics import global_process_set
from ..process_sets import ProcessSet


def DistributedOptimizer(  # noqa: N802  (Horovod's name)
        optimizer: Any, name: str | None = None, use_locking: bool = False, device_dense: str = "",
        device_sparse: str = "", compression: Compresses[tf.Tensor] = Compression.none,
        sparse_as_dense: bool = False, backward_passes_per_step: int = 1, op: int = _ops.Average,
        gradient_predivide_factor: float = 1.0, average_aggregated_gradients: bool = False,
        num_groups: int = 0, groups: Groups = None, process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True) -> Any:
    """The optimizer, whose gradients are reduced over the ranks before they are applied.

    The result is of a subclass of the optimizer's own class, and shares its state. (So `name` and
    `use_locking`, by which Horovod names and makes another optimizer, have no use.)
    `gradient_predivide_factor` f: gradients are divided by f before they are summed, and multiplied
    by f/size after. `backward_passes_per_step`: gradients of so many passes are added up first, or
    averaged with `average_aggregated_gradients`; with sessions that needs
    `tf.compat.v1.local_variables_initializer()`. `groups`: a number of, or lists of variables whose
    gradients travel together. `scale_local_gradients`: those of variables that `register_local_var`
    has named are divided by the number of ranks. With op=Adasum each rank takes its own step, and
    what the steps changed is combined; Keras' optimizers have none of it.
    """
    asked = (op, compression, sparse_as_dense, gradient_predivide_factor,
             groups_asked(num_groups, groups), process_set, device_dense, device_sparse)
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        return _sessions.distributed(optimizer, Reduction(*asked), backward_passes_per_step,
                                     average_aggregated_gradients, scale_local_gradients)
    return _keras.distributed(optimizer, Settings(
        *asked, backward_passes_per_step, average_aggregated_gradients, scale_local_gradients))
