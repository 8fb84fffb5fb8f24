# SPDX-License-Identifier: Apache-2.0
"""python -m hvd.run -np 4 python train.py: hvdrun, the one that fits this package. The function
hvd.run is another thing; this module, once imported, stands in for it."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from ._run import find_hvdrun, run

R = TypeVar("R")


class _Callable(ModuleType):
    """`import hvd.run` puts the module in the function's place."""

    def __call__(self, func: Callable[..., R], *args: Any, **kwargs: Any) -> list[R]:
        return run(func, *args, **kwargs)


if __name__ == "__main__":
    program = find_hvdrun()
    os.execv(program, [program, *sys.argv[1:]])
sys.modules[__name__].__class__ = _Callable
