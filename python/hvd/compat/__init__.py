"""Horovod's names for hvd: programs written for Horovod run unchanged.

    hvdrun -np 4 python -m hvd.compat train.py --epochs 3

or, in a program: `import hvd.compat; hvd.compat.install()` before `import horovod.torch`.
"""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from collections.abc import Sequence
from types import ModuleType

_MODULES = pathlib.Path(__file__).resolve().parent / "modules"
_ABSENT = ("horovod.tensorflow", "horovod.keras", "horovod.mxnet", "horovod.spark", "horovod.ray",
           "horovod.runner")
# What hvdrun says to each rank, and what it is without hvdrun.
_IDENTITY = {"RANK": "0", "SIZE": "1", "LOCAL_RANK": "0", "LOCAL_SIZE": "1", "CROSS_RANK": "0",
             "CROSS_SIZE": "1"}


class HorovodFinder(importlib.abc.MetaPathFinder):
    """Finds `horovod` in this package, before any that is installed. What is inside it is found by
    its path, as for any package."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname in _ABSENT:
            raise ModuleNotFoundError(f"hvd has no {fullname} yet; it has horovod.torch",
                                      name=fullname)
        if fullname != "horovod":
            return None
        folder = _MODULES / "horovod"
        return importlib.util.spec_from_file_location(
            fullname, folder / "__init__.py", submodule_search_locations=[str(folder)])


def install() -> None:
    """From now on `import horovod` gives hvd, here and in the processes that multiprocessing
    starts; HOROVOD_RANK, HOROVOD_SIZE and so on are in the environment. Again: does nothing.
    RuntimeError when another horovod is in use already."""
    if any(isinstance(finder, HorovodFinder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get("horovod")
    if loaded is not None:
        raise RuntimeError(f"another horovod is loaded already: {loaded.__file__}")
    sys.meta_path.insert(0, HorovodFinder())
    # A spawned process inherits the path, not the finders.
    sys.path.append(str(_MODULES))
    for name, alone in _IDENTITY.items():
        os.environ.setdefault("HOROVOD_" + name, os.environ.get("HVD_" + name, alone))
