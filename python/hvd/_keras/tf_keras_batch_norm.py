# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation by the statistics of all ranks' batches, for tf_keras."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from .backends.with_tensorflow import sum_over_ranks
from .sync import alone, must_not_be_fused


@tf_keras.saving.register_keras_serializable("hvd")
class SyncBatchNormalization(tf_keras.layers.BatchNormalization):
    """As tf_keras.layers.BatchNormalization; while it trains, mean and variance are those of all
    ranks together. Moving averages are the same on all ranks."""

    def __init__(self, fused: bool = False, **kwargs: Any) -> None:
        must_not_be_fused(fused)
        super().__init__(fused=False, **kwargs)

    def _calculate_mean_and_var(self, inputs: tf.Tensor, reduction_axes: Sequence[int],
                                keep_dims: bool, mask: tf.Tensor | None = None
                                ) -> tuple[tf.Tensor, tf.Tensor]:
        """Two sums: the variance is about the mean of all, since sums of squares of large numbers
        would lose it in rounding."""
        if alone():
            return super()._calculate_mean_and_var(inputs, reduction_axes, keep_dims, mask=mask)
        wide = tf.cast(inputs, tf.float32) if inputs.dtype.size < 4 else inputs
        weights = tf.ones_like(wide) if mask is None else tf.broadcast_to(
            tf.cast(tf.expand_dims(mask, -1), wide.dtype), tf.shape(wide))
        total = tf.reduce_sum(wide * weights, reduction_axes, keepdims=True)
        counts = tf.reduce_sum(weights, reduction_axes, keepdims=True)
        total, counts = tf.unstack(sum_over_ranks(tf.stack([total, counts]), self.name))
        mean = tf.math.divide_no_nan(total, counts)
        squares = tf.reduce_sum(tf.square((wide - mean) * weights), reduction_axes, keepdims=True)
        variance = tf.math.divide_no_nan(sum_over_ranks(squares, self.name), counts)
        if not keep_dims:
            mean, variance = (tf.squeeze(each, reduction_axes) for each in (mean, variance))
        return tf.cast(mean, inputs.dtype), tf.cast(variance, inputs.dtype)
