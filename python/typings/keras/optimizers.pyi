# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Sequence
from typing import Any

from . import Variable

class Optimizer:
    built: bool
    gradient_accumulation_steps: int | None
    iterations: Variable
    learning_rate: Any
    variables: list[Variable]
    _iterations: Variable
    _trainable_variables: list[Variable]
    def apply(self, grads: Iterable[Any],
              trainable_variables: Iterable[Variable] | None = ...) -> Any: ...
    def stateless_apply(self, optimizer_variables: Any, grads: Any,
                        trainable_variables: Any) -> Any: ...
    def _backend_apply_gradients(self, grads: Sequence[Any],
                                 trainable_variables: Sequence[Variable]) -> Any: ...
    def _clip_gradients(self, grads: Sequence[Any]) -> list[Any]: ...
    def get_config(self) -> dict[str, Any]: ...
    def save_own_variables(self, store: Any) -> None: ...
    def load_own_variables(self, store: Any) -> None: ...

class LossScaleOptimizer(Optimizer):
    inner_optimizer: Optimizer
    def check_finite(self, grads: Any) -> Any: ...
