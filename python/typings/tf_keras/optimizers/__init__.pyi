# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from . import legacy as legacy

Pair = tuple[tf.Tensor | tf.IndexedSlices | None, tf.Variable]
Pairs = list[Pair]

class Optimizer:
    iterations: tf.Variable
    def build(self, var_list: Sequence[tf.Variable]) -> None: ...
    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = ...) -> Pairs: ...
    def apply_gradients(self, grads_and_vars: Iterable[Pair], name: str | None = ...,
                        skip_gradients_aggregation: bool = ..., **kwargs: Any) -> Any: ...
