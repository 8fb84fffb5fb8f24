# SPDX-License-Identifier: Apache-2.0
"""Adding up the gradients of several backward passes before they are reduced, within a graph or
eagerly.

Horovod's backward_passes_per_step: every so many passes the sums (or their averages) are reduced
and applied; the passes between leave the variables alone.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, cast

import tensorflow as tf

from .calls import without_autograph
from .gradients import Gradient
from .slices import divided

Done: TypeAlias = "tf.Operation | tf.Tensor | None"  # what a graph must wait for


class Reduces(Protocol):
    """How the sums are reduced."""

    def reduce(self, gradients: Sequence[Gradient], variables: Sequence[object] | None, /
               ) -> list[Gradient]:
        """The gradients of all ranks in the place of this one's."""


class Aggregation:
    """The sums, and how many passes are in them. Its variables are made at the first pass, and are
    local ones where there are sessions."""

    def __init__(self, passes: int, reduction: Reduces, average: bool) -> None:
        self._passes = passes
        self._reduction = reduction
        self._average = average
        self._count: tf.Variable | None = None
        self._sums: list[tf.Variable | None] = []  # None where there is no gradient
        self._full: tf.Tensor | None = None  # whether this pass is the last before a step

    @property
    def count(self) -> tf.Variable | None:
        """The variable that counts the passes since the last step; None before the first pass."""
        return self._count

    @without_autograph
    def reduce(self, gradients: Sequence[Gradient], variables: Sequence[object] | None
               ) -> list[Gradient]:
        """Adds these up. At the last pass the result is what all ranks' sums are together; before,
        it is the sum so far, which `apply` does not apply. Sparse gradients become dense."""
        dense = [None if gradient is None else tf.convert_to_tensor(gradient)
                 for gradient in gradients]
        if self._count is None:
            with tf.init_scope():
                self._count = _zero("hvd_passes", (), tf.int32)
                self._sums = [None if one is None else _zero("hvd_sum", one.shape, one.dtype)
                              for one in dense]
        passed = self._count
        assert passed is not None
        added = [None if one is None else cast("tf.Variable", total).assign_add(one)
                 for one, total in zip(dense, self._sums, strict=True)]
        there = [one for one in added if one is not None]
        with tf.control_dependencies([*there]):
            count = passed.assign_add(1)
        self._full = tf.equal(count, self._passes)
        divisor = self._passes if self._average else 1
        with tf.control_dependencies([count]):
            sums = [tf.identity(total) for total in self._sums if total is not None]
        shared = [] if variables is None else [
            variable for variable, one in zip(variables, dense, strict=True) if one is not None]

        def all_ranks() -> list[Gradient]:
            return self._reduction.reduce([divided(one, divisor) for one in sums],
                                          shared or None)

        so_far: list[Gradient] = [*sums]
        found = iter(tf.cond(self._full, all_ranks, lambda: so_far) if sums else [])
        return [None if one is None else next(found) for one in dense]

    @without_autograph
    def apply(self, step: Callable[[], Done], between: Callable[[], Done] = lambda: None
              ) -> tf.Tensor:
        """Takes the step, and begins anew, at the last pass; calls `between` at those before.
        Returns whether it has taken it: a tensor."""
        passed, full = self._count, self._full
        assert passed is not None and full is not None  # reduce() has been called

        def take() -> tf.Tensor:
            done = step()
            with tf.control_dependencies([] if done is None else [done]):
                cleared = [total.assign(tf.zeros_like(total)) for total in self._sums
                           if total is not None]
                cleared.append(passed.assign(0))
            with tf.control_dependencies(cleared):
                return tf.constant(True)

        def wait() -> tf.Tensor:
            done = between()
            with tf.control_dependencies([] if done is None else [done]):
                return tf.constant(False)

        return tf.cond(full, take, wait)


def _zero(name: str, shape: tf.TensorShape | tuple[()], dtype: tf.DType) -> tf.Variable:
    # Saved and broadcast nowhere.
    local = [tf.compat.v1.GraphKeys.LOCAL_VARIABLES]
    return tf.compat.v1.Variable(lambda: tf.zeros(shape, dtype), trainable=False,
                                 collections=local, name=name, use_resource=True)
