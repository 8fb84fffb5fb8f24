# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Any

from .nd import NDArray

class ndarray(NDArray): ...

def array(source_array: Sequence[Any], ctx: Any = ..., dtype: str = ...) -> ndarray: ...
