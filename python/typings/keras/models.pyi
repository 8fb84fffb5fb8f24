# SPDX-License-Identifier: Apache-2.0
from typing import Any

from .layers import Layer
from .optimizers import Optimizer

class Model(Layer):
    optimizer: Optimizer

def load_model(filepath: Any, custom_objects: dict[str, Any] | None = ...) -> Model: ...
