# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterator
from typing import Any

from ..nd import NDArray

class DeferredInitializationError(Exception): ...

class Parameter:
    name: str
    grad_req: str
    _grad_stype: str
    def list_grad(self) -> list[NDArray]: ...
    def list_data(self) -> list[NDArray]: ...
    def data(self) -> NDArray: ...
    _init_impl: Callable[[Any, Any], None]

class ParameterDict:
    def items(self) -> Iterator[tuple[str, Parameter]]: ...
