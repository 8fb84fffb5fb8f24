# SPDX-License-Identifier: Apache-2.0
"""python -m hvd.run -np 4 python train.py: hvdrun, the one that fits this package. The function
hvd.run is another thing; this module, once imported, stands in for it."""
from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from ._run import find_hvdrun, run


class _Callable(ModuleType):
    """`import hvd.run` puts the module in the function's place."""

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        return run(*args, **kwargs)


if __name__ == "__main__":
    program = find_hvdrun()
    os.execv(program, [program, *sys.argv[1:]])
sys.modules[__name__].__class__ = _Callable
