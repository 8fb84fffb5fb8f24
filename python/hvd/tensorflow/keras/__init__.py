# SPDX-License-Identifier: Apache-2.0
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

import os
from collections.abc import Iterable
from typing import Any

import tensorflow as _tf

from ..._core.compression import Compresses
from ..._face import *  # noqa: F403
from ..._face import __all__ as _common
from ..._keras import distributed as _distributed
from ..._keras import models as _models
from ..._keras.backends import with_tensorflow as _backend
from ..._keras.backends.settings import Settings as _Settings
from ..._keras.distributed import DistributedOptimizer, PartialDistributedOptimizer
from ..._keras.functions import Functions as _Functions
from ..._tensorflow import functions as _tensorflow_functions
from ..._tensorflow.compression import Compression
from ..._tensorflow.functions import allgather_object, broadcast_object, broadcast_variables
from ...ops import barrier
from . import callbacks as callbacks
from . import elastic as elastic  # noqa: E402

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


def load_model(filepath: str | os.PathLike[str], custom_optimizers: Iterable[type] | None = None,
               custom_objects: dict[str, Any] | None = None,
               compression: Compresses[Any] = Compression.none,
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
    *_common,
    "Compression", "DistributedOptimizer", "PartialDistributedOptimizer",
    "SyncBatchNormalization",  # noqa: F405  (made when it is asked for)
    "allgather", "allgather_object", "allreduce", "barrier",
    "broadcast", "broadcast_global_variables", "broadcast_object", "broadcast_variables",
    "callbacks", "elastic", "load_model", "reducescatter",
]
