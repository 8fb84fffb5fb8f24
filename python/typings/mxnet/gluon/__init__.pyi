# SPDX-License-Identifier: Apache-2.0
from typing import Any

from ..optimizer import Optimizer
from . import parameter as parameter

class Trainer:
    _params: list[parameter.Parameter]
    _contexts: list[Any] | None
    _scale: float
    def __init__(self, params: Any, optimizer: str | Optimizer,
                 optimizer_params: dict[str, Any] | None = ..., kvstore: Any = ...) -> None: ...
    def _allreduce_grads(self) -> None: ...
