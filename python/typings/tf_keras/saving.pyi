# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)

def register_keras_serializable(package: str) -> Callable[[C], C]: ...
