# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.gradient_aggregation, answered by hvd."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import tensorflow as tf

from hvd import ProcessSet, global_process_set
from hvd._tensorflow.aggregation import Aggregation, Done
from hvd._tensorflow.gradients import Gradient, Reduction, key_of


class LocalGradientAggregationHelper:
    """Adds up the gradients of `backward_passes_per_step` passes before `allreduce_func(gradients,
    variables)` reduces them, and has them applied once. Within graphs, in sessions and eagerly.
    (`rank`, `optimizer_type` and `name` are for Horovod's own variables.)"""

    _OPTIMIZER_TYPE_KERAS = "optimizer_type_keras"
    _OPTIMIZER_TYPE_LEGACY = "optimizer_type_legacy"

    def __init__(self, backward_passes_per_step: int,
                 allreduce_func: Callable[[list[Gradient], list[object]], Sequence[Gradient]],
                 sparse_as_dense: bool, average_aggregated_gradients: bool, rank: int = 0,
                 optimizer_type: str = _OPTIMIZER_TYPE_LEGACY,
                 process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True,
                 name: str = "") -> None:
        if backward_passes_per_step <= 0:
            raise ValueError("backward_passes_per_step must be > 0")
        self.backward_passes_per_step = backward_passes_per_step
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self._reduce = allreduce_func
        self._local: set[Hashable] = set()
        self._scale = Reduction(process_set=process_set).scale_local if scale_local_gradients \
            else lambda gradient: gradient
        self._aggregation = Aggregation(backward_passes_per_step, self,
                                        average_aggregated_gradients)

    @property
    def counter(self) -> tf.Variable | None:
        """How many passes have been added up: a variable; None before the first."""
        return self._aggregation.count

    def register_local_var(self, var: object) -> None:
        """The gradient of this variable stays this rank's own."""
        self._local.add(key_of(var))

    def reduce(self, gradients: Sequence[Gradient], variables: Sequence[object] | None
               ) -> list[Gradient]:
        """The gradients of all ranks; Aggregation asks for them."""
        of = variables or ()
        shared = [i for i, each in enumerate(of) if key_of(each) not in self._local]
        found = [self._scale(gradient) for gradient in gradients]
        reduced = self._reduce([gradients[i] for i in shared], [of[i] for i in shared])
        for i, gradient in zip(shared, reduced, strict=True):
            found[i] = gradient
        return found

    def compute_gradients(self, grads: Sequence[Gradient],
                          vars: Sequence[object]) -> list[Gradient]:  # noqa: A002
        """Adds these up. At the last pass: those of all ranks; before, the sums so far."""
        if not self.sparse_as_dense and any(isinstance(one, tf.IndexedSlices) for one in grads):
            raise ValueError("IndexedSlices are not supported when `backward_passes_per_step` > 1 "
                             "and `sparse_as_dense` is False.")
        return list(self._aggregation.reduce(grads, vars))

    def apply_gradients(self, apply_grads_closure: Callable[[], Done], optimizer: object,
                        *args: object, **kwargs: Any) -> tf.Tensor:
        """Calls the closure at the last pass, and counts the other ones in the optimizer's
        `iterations` and in `global_step`."""
        given = [getattr(optimizer, "iterations", None), kwargs.get("global_step")]
        # Keras 3 keeps TensorFlow's variables within its own.
        counters = [each if isinstance(each, tf.Variable) else each.value for each in given
                    if each is not None]

        def between() -> Done:
            counted = [each.assign_add(1, read_value=False) for each in counters]
            return None if tf.executing_eagerly() else tf.group(*counted)

        return self._aggregation.apply(apply_grads_closure, between)
