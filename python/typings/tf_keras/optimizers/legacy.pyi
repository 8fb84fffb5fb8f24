# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

Pair = tuple[tf.Tensor | tf.IndexedSlices | None, tf.Variable]
Pairs = list[Pair]

class Optimizer:
    iterations: tf.Variable
    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = ...,
                           tape: Any = ...) -> Pairs: ...
    def _create_all_weights(self, var_list: Sequence[tf.Variable]) -> None: ...
    def get_gradients(self, loss: Any, params: Any) -> list[Any]: ...
    def apply_gradients(self, grads_and_vars: Iterable[Pair], name: str | None = ...,
                        experimental_aggregate_gradients: bool = ...) -> Any: ...
