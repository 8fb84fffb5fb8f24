# SPDX-License-Identifier: Apache-2.0
"""hvd for TensorFlow, as Horovod's: `import hvd.tensorflow as hvd`.

    hvd.init()

    @tf.function
    def step(images, labels, first):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        if first:
            hvd.broadcast_variables(model.variables, root_rank=0)
            hvd.broadcast_variables(optimizer.variables, root_rank=0)
        return hvd.allreduce(loss)

Any TensorFlow from 2.16 on. For Keras: hvd.keras, hvd.tensorflow.keras.
"""
from typing import Any

from .. import _frameworks

with _frameworks.needed("hvd.tensorflow"):
    import tensorflow as _tf

from .._face import *  # noqa: F403
from .._face import __all__ as _common
from .._keras.distributed import sync_batch_normalization as _sync_batch_normalization
from .._tensorflow.collectives import (
    allgather,
    allreduce,
    alltoall,
    broadcast,
    broadcast_,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    join,
    local_rank_op,
    local_size_op,
    process_set_included_op,
    rank_op,
    reducescatter,
    size_op,
)
from .._tensorflow.compression import Compression
from .._tensorflow.functions import (
    BroadcastGlobalVariablesHook,
    allgather_object,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)
from .._tensorflow.tape import DistributedGradientTape, PartialDistributedGradientTape
from ..ops import barrier
from .optimizer import DistributedOptimizer

from . import elastic as elastic  # isort: skip


def __getattr__(name: str) -> Any:
    # Not before it is asked for: it loads Keras.
    if name == "SyncBatchNormalization":
        return _sync_batch_normalization(_tf.keras)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    *_common,
    "BroadcastGlobalVariablesHook", "Compression", "DistributedGradientTape",
    "DistributedOptimizer", "PartialDistributedGradientTape", "allgather", "allgather_object",
    "allreduce", "alltoall", "barrier", "broadcast", "broadcast_", "broadcast_global_variables",
    "broadcast_object", "broadcast_object_fn", "broadcast_variables", "elastic",
    "grouped_allgather",
    "grouped_allreduce", "grouped_reducescatter", "join", "local_rank_op", "local_size_op",
    "process_set_included_op", "rank_op", "reducescatter", "size_op",
]
