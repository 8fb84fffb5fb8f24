# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer for whichever Keras an optimizer is of."""
from __future__ import annotations

import sys
from typing import Any

from .. import ops as _ops
from .._arguments import Groups
from .._core.compression import Compresses
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .backends.settings import Layers, Settings, groups_asked, layers_of


def DistributedOptimizer(  # noqa: N802  (Horovod's name)
        optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
        compression: Compresses[Any] | None = None, sparse_as_dense: bool = False,
        gradient_predivide_factor: float = 1.0, op: int = _ops.Average,
        backward_passes_per_step: int = 1, average_aggregated_gradients: bool = False,
        num_groups: int = 0, groups: Groups = None, process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True) -> Any:
    """The optimizer, whose gradients are reduced over the ranks before they are clipped and
    applied.

    The result is of a subclass of the optimizer's own class, and shares its state; saved, it is the
    plain optimizer. (`name`, by which Horovod names another optimizer, has no use.)
    `compression`: None is Compression.none. `gradient_predivide_factor` f: gradients are divided by
    f before they are summed, and multiplied by f/size after. `backward_passes_per_step`: gradients
    of so many batches are added up first, or averaged with `average_aggregated_gradients`, as Keras
    3's own gradient_accumulation_steps does. `scale_local_gradients`: those of variables that
    `register_local_var` has named are divided by the number of ranks. On TensorFlow `groups` is a
    number of, or lists of variables whose gradients travel together, and device_dense and
    device_sparse say where; on JAX and torch all travel together, and these have no use. A
    LossScaleOptimizer may be inside or outside: one rank's overflow skips the step on all.
    """
    return distributed(optimizer, Settings(
        op, compression, sparse_as_dense, gradient_predivide_factor,
        groups_asked(num_groups, groups), process_set, device_dense, device_sparse,
        backward_passes_per_step, average_aggregated_gradients, scale_local_gradients))


def PartialDistributedOptimizer(  # noqa: N802  (Horovod's name)
        optimizer: Any, name: str | None = None, device_dense: str = "", device_sparse: str = "",
        compression: Compresses[Any] | None = None, sparse_as_dense: bool = False,
        gradient_predivide_factor: float = 1.0, op: int = _ops.Average,
        backward_passes_per_step: int = 1, average_aggregated_gradients: bool = False,
        num_groups: int = 0, groups: Groups = None, process_set: ProcessSet = global_process_set,
        local_layers: Layers = None, scale_local_gradients: bool = True) -> Any:
    """DistributedOptimizer; the gradients of `local_layers`, a layer or several, stay this rank's
    own."""
    return distributed(optimizer, Settings(
        op, compression, sparse_as_dense, gradient_predivide_factor,
        groups_asked(num_groups, groups), process_set, device_dense, device_sparse,
        backward_passes_per_step, average_aggregated_gradients, scale_local_gradients,
        layers_of(local_layers)))


def distributed(optimizer: Any, settings: Settings) -> Any:
    """The optimizer, whose gradients are reduced. ValueError when it is of no Keras."""
    generation = generation_of(optimizer)
    if generation == "keras":
        return _distributed_keras(optimizer, settings)
    if generation == "tf_keras":
        from . import tf_keras_optimizer

        return tf_keras_optimizer.distributed(optimizer, settings)
    raise ValueError("Provided optimizer doesn't inherit from either legacy TensorFlow or Keras "
                     f"optimizer: {optimizer!r}")


def generation_of(optimizer: object) -> str | None:
    """"keras" (3), "tf_keras", or None. Imports neither: its class is there already."""
    if "tf_keras" in sys.modules:
        from . import tf_keras_optimizer

        if tf_keras_optimizer.is_optimizer(optimizer):
            return "tf_keras"
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(optimizer, keras.optimizers.Optimizer):
        return "keras"
    return None


def _distributed_keras(optimizer: Any, settings: Settings) -> Any:
    from . import hooks, loss_scale
    from .optimizer import distributed as plain

    hooks.install()
    if not loss_scale.is_scaler(optimizer):
        return plain(optimizer, settings)
    optimizer.inner_optimizer = plain(optimizer.inner_optimizer, settings)
    loss_scale.adopt(optimizer)
    return optimizer


def sync_batch_normalization(keras: Any) -> Any:
    """The layer, for tf.keras as it is: Keras 3 or tf_keras."""
    if keras.layers.Layer.__module__.startswith("tf_keras"):
        from . import tf_keras_batch_norm

        return tf_keras_batch_norm.SyncBatchNormalization
    from . import batch_norm

    return batch_norm.SyncBatchNormalization
