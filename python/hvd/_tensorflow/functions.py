# SPDX-License-Identifier: Apache-2.0
"""Making all ranks begin alike: variables and objects."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import tensorflow as tf

from .. import objects
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .calls import without_autograph
from .collectives import broadcast_

T = TypeVar("T")


@without_autograph
def broadcast_variables(variables: Sequence[tf.Variable], root_rank: int,
                        process_set: ProcessSet = global_process_set,
                        inplace: bool = False) -> tf.Operation:
    """The variables get the values that they have on `root_rank`: at once, or when the operation
    that is returned runs. They meet by their names, in whatever
    order each rank lists them. (Horovod has two ways; `inplace`
    chooses nothing here.)"""
    return tf.group(*broadcast_(variables, root_rank, process_set=process_set))


def broadcast_global_variables(root_rank: int) -> tf.Operation:
    """The operation that broadcasts all variables of the graph. For programs with sessions."""
    if tf.executing_eagerly():
        raise RuntimeError(
            "hvd.broadcast_global_variables() does not support eager execution. Please use "
            "`hvd.broadcast_variables(<model/optimizer variables>)` instead.")
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Broadcasts all variables from `root_rank` when a session has begun: also after they were
    restored from a checkpoint there. `device`: where TensorFlow is to place that."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.bcast_op: tf.Operation | None = None

    def begin(self) -> None:
        """Makes the operation, in the graph that is current."""
        if self.bcast_op is None or self.bcast_op.graph != tf.compat.v1.get_default_graph():
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: tf.compat.v1.Session, coord: object) -> None:
        """Runs it."""
        session.run(self.bcast_op)


def broadcast_object(obj: T, root_rank: int = 0, session: object = None, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> T:
    """The object of `root_rank`, a global rank, on all ranks; at once, so no session is needed."""
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank: int = 0, session: object = None, name: str | None = None,
                        process_set: ProcessSet = global_process_set) -> Callable[[T], T]:
    """The function that broadcasts an object."""
    def send(obj: T) -> T:
        return broadcast_object(obj, root_rank, session, name, process_set)

    return send


def allgather_object(obj: T, session: object = None, name: str | None = None,
                     process_set: ProcessSet = global_process_set) -> list[T]:
    """The objects of all ranks, in rank order; at once, so no session is needed."""
    return objects.allgather_object(obj, name, process_set)
