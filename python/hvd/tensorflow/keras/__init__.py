"""hvd for tf.keras, as Horovod's: `import hvd.tensorflow.keras as hvd`.

    hvd.init()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(1e-3 * hvd.size()))
    model.compile(optimizer, loss="sparse_categorical_crossentropy")
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                              hvd.callbacks.MetricAverageCallback()])

tf.keras is Keras 3, or tf_keras (Keras 2) with TF_USE_LEGACY_KERAS=1: hvd follows it. Optimizers
may be of either, of tf_keras also those of tf.keras.optimizers.legacy.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as _tf

from ..._core.errors import error_of
from ..._keras import distributed as _distributed
from ..._keras import models as _models
from ..._keras.backends import with_tensorflow as _backend
from ..._keras.backends.settings import Settings as _Settings
from ..._keras.distributed import DistributedOptimizer, PartialDistributedOptimizer
from ..._keras.functions import Functions as _Functions
from ..._tensorflow import functions as _tensorflow_functions
from ..._tensorflow.compression import Compression
from ..._tensorflow.functions import allgather_object, broadcast_object, broadcast_variables
from ...basics import (
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
from ...errors import (
    AbortedError,
    DuplicateError,
    Error,
    HorovodInternalError,
    InvalidError,
    MismatchError,
    NotInitializedError,
)
from ...ops import Adasum, Average, Max, Min, Product, Sum, barrier
from ...process_sets import ProcessSet
from . import callbacks as callbacks

_functions = _Functions(_backend)
allreduce = _functions.allreduce
allgather = _functions.allgather
broadcast = _functions.broadcast
reducescatter = _functions.reducescatter


def broadcast_global_variables(root_rank: int) -> Any:
    """Broadcasts all variables of the graph, for programs with sessions (tf.compat.v1).
    RuntimeError where there are none: BroadcastGlobalVariablesCallback broadcasts a model's."""
    operation = _tensorflow_functions.broadcast_global_variables(root_rank)
    return _tf.compat.v1.keras.backend.get_session().run(operation)


def load_model(filepath: Any, custom_optimizers: Iterable[type] | None = None,
               custom_objects: dict[str, Any] | None = None, compression: Any = Compression.none,
               legacy_opts: bool = False) -> Any:
    """The model of the file, whose optimizer reduces its gradients over the ranks.
    `custom_optimizers`, `custom_objects`: classes of one's own that the model uses. (`legacy_opts`
    has no use: the file says of which kind its optimizer is.)"""
    return _models.load_model(_tf.keras, filepath, custom_optimizers, custom_objects,
                              _Settings(compression=compression))


def __getattr__(name: str) -> Any:
    if name == "SyncBatchNormalization":
        return _distributed.sync_batch_normalization(_tf.keras)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AbortedError", "Adasum", "Average", "Compression", "DistributedOptimizer", "DuplicateError",
    "Error", "HorovodInternalError", "InvalidError", "Max", "Min", "MismatchError",
    "NotInitializedError", "PartialDistributedOptimizer", "ProcessSet", "Product", "Sum",
    "SyncBatchNormalization", "add_process_set", "allgather", "allgather_object", "allreduce",
    "barrier", "broadcast", "broadcast_global_variables", "broadcast_object",
    "broadcast_variables", "callbacks", "ccl_built", "cross_rank", "cross_size", "cuda_built",
    "ddl_built", "error_of", "global_process_set", "gloo_built", "gloo_enabled", "init",
    "is_homogeneous", "is_initialized", "load_model", "local_rank", "local_size", "metrics",
    "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "rank", "reducescatter",
    "remove_process_set", "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline",
]
