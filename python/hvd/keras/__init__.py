# SPDX-License-Identifier: Apache-2.0
"""hvd for Keras 3, on TensorFlow, JAX and torch: `import hvd.keras as hvd`.

    hvd.init()
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(1e-3 * hvd.size()))
    model.compile(optimizer, loss="sparse_categorical_crossentropy")
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                              hvd.callbacks.MetricAverageCallback()])

For tf_keras (Keras 2): hvd.tensorflow.keras.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _frameworks

with _frameworks.needed("hvd.keras"):
    import keras as _keras

from .._core.compression import Compresses
from .._face import *  # noqa: F403
from .._face import __all__ as _common
from .._keras import backends as _backends
from .._keras import models as _models
from .._keras import variables as _variables
from .._keras.backends.settings import Settings as _Settings
from .._keras.distributed import DistributedOptimizer, PartialDistributedOptimizer
from .._keras.functions import Functions as _Functions
from ..basics import global_process_set
from ..objects import allgather_object, broadcast_object
from ..ops import barrier
from ..process_sets import ProcessSet

_frameworks.require("hvd.keras", _keras.__version__)

_backend = _backends.load(_keras.config.backend())
Compression = _backend.Compression
_functions = _Functions(_backend)
allreduce = _functions.allreduce
allgather = _functions.allgather
broadcast = _functions.broadcast
reducescatter = _functions.reducescatter

from . import callbacks as callbacks  # noqa: E402
from . import elastic as elastic  # noqa: E402


def broadcast_variables(variables: Sequence[_keras.Variable], root_rank: int,
                        process_set: ProcessSet = global_process_set) -> None:
    """Keras' variables get the values that they have on `root_rank`. Not within a compiled step."""
    _variables.broadcast(variables, root_rank, None, process_set)


def broadcast_global_variables(root_rank: int) -> None:
    """RuntimeError: Keras 3 has no global variables."""
    raise RuntimeError(
        "hvd.broadcast_global_variables(): Keras 3 has no global variables. Give fit() "
        "hvd.callbacks.BroadcastGlobalVariablesCallback(root_rank), or call "
        "hvd.broadcast_variables(model.weights + optimizer.variables, root_rank).")


def load_model(filepath: str | os.PathLike[str], custom_optimizers: Iterable[type] | None = None,
               custom_objects: dict[str, Any] | None = None,
               compression: Compresses[Any] = Compression.none,
               legacy_opts: bool = False) -> Any:
    """The model of the file, whose optimizer reduces its gradients over the ranks.
    `custom_optimizers`, `custom_objects`: classes of one's own that the model uses. (`legacy_opts`
    has no use: the file says of which kind its optimizer is.)"""
    return _models.load_model(_keras, filepath, custom_optimizers, custom_objects,
                              _Settings(compression=compression))


def __getattr__(name: str) -> Any:
    if name == "SyncBatchNormalization":
        from .._keras.batch_norm import SyncBatchNormalization

        return SyncBatchNormalization
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    *_common,
    "Compression", "DistributedOptimizer", "PartialDistributedOptimizer",
    "SyncBatchNormalization",  # noqa: F405  (made when it is asked for)
    "allgather", "allgather_object", "allreduce", "barrier",
    "broadcast", "broadcast_global_variables", "broadcast_object", "broadcast_variables",
    "callbacks", "elastic", "load_model", "reducescatter",
]
