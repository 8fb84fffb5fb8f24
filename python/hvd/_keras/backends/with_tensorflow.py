# SPDX-License-Identifier: Apache-2.0
"""Keras on TensorFlow, also tf_keras: by hvd.tensorflow's ops."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from ... import ops as _ops
from ..._tensorflow import collectives, gradients
from ..._tensorflow.compression import Compression as Compression
from ...basics import global_process_set
from ...process_sets import ProcessSet
from .settings import Settings

if TYPE_CHECKING:
    import keras

    from ..._core.compression import Compresses
    from ..._tensorflow.calls import Value
    from ..._tensorflow.gradients import Gradient


class Reduction:
    """By ops of the graph, each gradient as soon as it is there."""

    def __init__(self, settings: Settings) -> None:
        self._ask = gradients.Reduction(
            settings.op, settings.compression or Compression.none, settings.sparse_as_dense,
            settings.predivide, settings.groups, settings.process_set, settings.device_dense,
            settings.device_sparse)
        self.key_of = gradients.key_of
        self.scale_local = self._ask.scale_local

    def reduce(self, found: Sequence[Gradient], variables: Sequence[object]) -> list[Gradient]:
        """The gradients of all ranks; a None stays None."""
        return list(self._ask.reduce(found, variables))

    def greatest(self, found: Sequence[Gradient]) -> list[Gradient]:
        """The greatest of all ranks', element by element."""
        ask = dataclasses.replace(self._ask, op=_ops.Max, compression=Compression.none,
                                  predivide=1.0, groups=None)
        return list(ask.reduce(found))

    def all_true(self, flag: tf.Tensor) -> tf.Tensor:
        """Whether it is true on all ranks of the process set."""
        if not self._ask.process_set.included():
            return flag
        return tf.cast(collectives.allreduce(tf.cast(flag, tf.int32), op=_ops.Min,
                                             process_set=self._ask.process_set), tf.bool)


def at_update(optimizer: keras.optimizers.Optimizer,
              change: Callable[[list[Gradient]], list[Gradient]], found: list[Gradient]
              ) -> list[Gradient]:
    """Keras is in the branch that applies gradients."""
    return change(found)


def allreduce(value: Value | tf.IndexedSlices, name: str | None, op: int, prescale: float,
              postscale: float,
              compression: Compresses[tf.Tensor] | None, process_set: ProcessSet) -> Any:
    """See functions.allreduce."""
    return collectives.allreduce(value, compression=compression or Compression.none, op=op,
                                 prescale_factor=prescale, postscale_factor=postscale, name=name,
                                 process_set=process_set)


def allgather(value: Value, name: str | None) -> tf.Tensor:
    """See functions.allgather."""
    return collectives.allgather(value, name)


def broadcast(value: Value, root_rank: int, name: str | None) -> tf.Tensor:
    """See functions.broadcast."""
    return collectives.broadcast(value, root_rank, name)


def reducescatter(value: Value, name: str | None, op: int) -> tf.Tensor:
    """See functions.reducescatter."""
    return collectives.reducescatter(value, op=op, name=name)


def sum_over_ranks(value: tf.Tensor, name: str,
                   process_set: ProcessSet = global_process_set) -> tf.Tensor:
    """The sum of all ranks' values, which can be differentiated. Within a graph calls are counted,
    eagerly they have their order: so a layer may be called several times in one step."""
    total: tf.Tensor = collectives.allreduce(value, op=_ops.Sum, process_set=process_set)
    return total
