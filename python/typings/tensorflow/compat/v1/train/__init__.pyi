# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

Gradient = tf.Tensor | tf.IndexedSlices | None

class SessionRunHook:
    def begin(self) -> None: ...
    def after_create_session(self, session: tf.compat.v1.Session, coord: object) -> None: ...

class Optimizer:
    def compute_gradients(self, *args: Any, **kwargs: Any
                          ) -> list[tuple[Gradient, tf.Variable]]: ...
    def apply_gradients(self, grads_and_vars: Iterable[tuple[Gradient, tf.Variable]],
                        global_step: tf.Variable | None = ...,
                        name: str | None = ...) -> tf.Operation | tf.Tensor | None: ...
    def _prepare(self) -> None: ...
    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None: ...
