# SPDX-License-Identifier: Apache-2.0
"""horovod._keras, answered by hvd: what horovod.keras and horovod.tensorflow.keras share."""
from __future__ import annotations

from typing import Any, Protocol

import tensorflow as tf

import horovod.tensorflow as hvd
from hvd import Sum
from hvd._arguments import Groups
from hvd._core.compression import Compresses
from hvd._keras.distributed import DistributedOptimizer
from hvd._tensorflow.calls import Value


class Backend(Protocol):
    """Keras' backend module of programs with sessions."""

    def get_session(self) -> tf.compat.v1.Session:
        """The session that there is."""


def create_distributed_optimizer(
        keras: object, optimizer: Any, name: str | None, device_dense: str, device_sparse: str,
        compression: Compresses[Any] | None, sparse_as_dense: bool,
        gradient_predivide_factor: float, op: int,
        backward_passes_per_step: int = 1, average_aggregated_gradients: bool = False,
        groups: Groups = None, process_set: hvd.ProcessSet = hvd.global_process_set,
        scale_local_gradients: bool = True) -> Any:
    """DistributedOptimizer of `horovod.keras`. (`keras` has no use: the optimizer is of one.)"""
    return DistributedOptimizer(
        optimizer, name, device_dense, device_sparse, compression, sparse_as_dense,
        gradient_predivide_factor, op, backward_passes_per_step, average_aggregated_gradients,
        groups=groups, process_set=process_set, scale_local_gradients=scale_local_gradients)


def _eval(backend: Backend, op_or_result: tf.Tensor | tf.Operation) -> Any:
    """The value of what was called in a session's graph; eagerly it is that."""
    return op_or_result if tf.executing_eagerly() else backend.get_session().run(op_or_result)


def broadcast_global_variables(backend: Backend, root_rank: int) -> Any:
    """Broadcasts all variables of the session's graph."""
    return _eval(backend, hvd.broadcast_global_variables(root_rank))


def allreduce(backend: Backend, value: Value, name: str | None, average: bool | None,
              prescale_factor: float, postscale_factor: float, op: int | None,
              compression: Compresses[tf.Tensor]) -> Any:
    """The value, reduced elementwise over the ranks."""
    return _eval(backend, hvd.allreduce(
        tf.constant(value, name=name), average=average, prescale_factor=prescale_factor,
        postscale_factor=postscale_factor, op=op, compression=compression))


def allgather(backend: Backend, value: Value, name: str | None) -> Any:
    """The ranks' values, one behind the other along the first dimension."""
    return _eval(backend, hvd.allgather(tf.constant(value, name=name)))


def broadcast(backend: Backend, value: Value, root_rank: int, name: str | None) -> Any:
    """The value of `root_rank`."""
    return _eval(backend, hvd.broadcast(tf.constant(value, name=name), root_rank))


def reducescatter(backend: Backend, value: Value, name: str | None, op: int = Sum) -> Any:
    """This rank's rows of the value, reduced over the ranks."""
    return _eval(backend, hvd.reducescatter(tf.constant(value, name=name), op=op))
