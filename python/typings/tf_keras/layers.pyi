# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

class BatchNormalization:
    name: str
    def __init__(self, **kwargs: Any) -> None: ...
    def _calculate_mean_and_var(self, inputs: tf.Tensor, reduction_axes: Sequence[int],
                                keep_dims: bool, mask: tf.Tensor | None = ...
                                ) -> tuple[tf.Tensor, tf.Tensor]: ...
