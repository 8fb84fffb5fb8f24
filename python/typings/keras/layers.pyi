# SPDX-License-Identifier: Apache-2.0
from typing import Any

from . import Variable

class Layer:
    name: str
    built: bool
    supports_jit: bool
    trainable_variables: list[Variable]
    trainable_weights: list[Variable]
    weights: list[Variable]

class BatchNormalization(Layer):
    axis: int
    _reduction_axes: list[int]
    def __init__(self, **kwargs: Any) -> None: ...
    def _moments(self, inputs: Any, mask: Any) -> tuple[Any, Any]: ...
