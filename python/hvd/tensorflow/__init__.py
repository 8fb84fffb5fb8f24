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

import tensorflow as _tf

from .._core.errors import error_of
from .._keras.distributed import sync_batch_normalization as _sync_batch_normalization
from .._tensorflow.collectives import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
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
from ..basics import (
    add_process_set,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    metrics,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    remove_process_set,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from ..errors import (
    AbortedError,
    DuplicateError,
    Error,
    HorovodInternalError,
    InvalidError,
    MismatchError,
    NotInitializedError,
)
from ..ops import barrier
from ..process_sets import ProcessSet
from .optimizer import DistributedOptimizer


def __getattr__(name: str) -> Any:
    # Not before it is asked for: it loads Keras.
    if name == "SyncBatchNormalization":
        return _sync_batch_normalization(_tf.keras)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AbortedError", "Adasum", "Average", "BroadcastGlobalVariablesHook", "Compression",
    "DistributedGradientTape", "DistributedOptimizer", "DuplicateError", "Error",
    "HorovodInternalError", "InvalidError", "Max", "Min", "MismatchError", "NotInitializedError",
    "PartialDistributedGradientTape", "ProcessSet", "Product", "Sum", "add_process_set",
    "allgather", "allgather_object", "allreduce", "alltoall", "barrier", "broadcast", "broadcast_",
    "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables",
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "error_of",
    "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather", "grouped_allreduce",
    "grouped_reducescatter", "init", "is_homogeneous", "is_initialized", "join", "local_rank",
    "local_rank_op", "local_size", "local_size_op", "metrics", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "process_set_included_op", "rank", "rank_op",
    "reducescatter", "remove_process_set", "rocm_built", "shutdown", "size", "size_op",
    "start_timeline", "stop_timeline",
]
