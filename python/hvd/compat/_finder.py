# SPDX-License-Identifier: Apache-2.0
"""Finds Horovod's modules, and hvd itself, in this package. Loaded by every Python of a job under
`hvdrun --compat horovod` as it starts, so it needs little, and not hvd."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_COMPAT = os.path.dirname(os.path.abspath(__file__))
MODULES = os.path.join(_COMPAT, "modules")
_PACKAGES = {"horovod": os.path.join(MODULES, "horovod"), "hvd": os.path.dirname(_COMPAT)}
_ABSENT = ("horovod.spark", "horovod.ray")


class HorovodFinder:
    """A meta-path finder: `horovod` is in this package, before any that is installed, and `hvd` is
    this one. Modules inside them are found by their path, as for any package."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname in _ABSENT:
            raise ModuleNotFoundError(f"hvd has no {fullname} yet; it has horovod.keras, .mxnet, "
                                      ".tensorflow and .torch", name=fullname)
        folder = _PACKAGES.get(fullname)
        if folder is None:
            return None
        from importlib.util import spec_from_file_location

        return spec_from_file_location(fullname, os.path.join(folder, "__init__.py"),
                                       submodule_search_locations=[folder])


def is_installed() -> bool:
    """Whether this Python has the finder."""
    return any(isinstance(finder, HorovodFinder) for finder in sys.meta_path)


def install() -> None:
    """From now on `import horovod` gives hvd. Again: does nothing."""
    if not is_installed():
        sys.meta_path.insert(0, HorovodFinder())
