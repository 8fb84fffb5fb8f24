# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation by the statistics of all ranks' batches, which may differ in length."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from . import backends
from .backends.kinds import Tensor
from .sync import alone, must_not_be_fused


@keras.saving.register_keras_serializable("hvd")
class SyncBatchNormalization(keras.layers.BatchNormalization):
    """As keras.layers.BatchNormalization; while it trains, mean and variance are those of all ranks
    together. Moving averages are the same on all ranks."""

    def __init__(self, fused: bool = False, **kwargs: Any) -> None:
        must_not_be_fused(fused)
        super().__init__(**kwargs)
        if keras.config.backend() == "tensorflow":
            self.supports_jit = False  # XLA has no kernels of hvd's

    def _moments(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Two sums: the variance is about the mean of all, since sums of squares of large numbers
        would lose it in rounding."""
        if alone():
            return super()._moments(inputs, mask)
        ops, axes = keras.ops, self._reduction_axes
        together = backends.load(keras.config.backend()).sum_over_ranks
        if mask is not None:
            mask = ops.cast(ops.broadcast_to(ops.expand_dims(mask, -1), ops.shape(inputs)), "bool")
        total = ops.sum(_masked(inputs, mask), axes)
        counts = _elements(ops.shape(inputs), axes) * ops.ones_like(total) if mask is None else \
            ops.sum(ops.cast(mask, inputs.dtype), axes)
        sums = together(ops.concatenate([total, counts]), f"{self.name}.sums")
        total, counts = ops.split(sums, 2)
        counts = ops.maximum(counts, 1)
        mean = total / counts
        shape = [1] * len(inputs.shape)
        shape[self.axis] = -1
        squares = ops.square(_masked(inputs - ops.reshape(mean, shape), mask))
        return mean, together(ops.sum(squares, axes), f"{self.name}.squares") / counts


def _masked(inputs: Tensor, mask: Tensor | None) -> Tensor:
    return inputs if mask is None else keras.ops.where(mask, inputs, 0)


def _elements(shape: Sequence[Tensor], axes: Sequence[int]) -> Tensor:
    """How many there are a channel; a graph may know only when it runs."""
    count: Tensor = 1
    for axis in axes:
        count = count * shape[axis]
    return keras.ops.cast(count, "float32")
