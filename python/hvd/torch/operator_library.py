# SPDX-License-Identifier: Apache-2.0
"""Finds and loads libhvd_torch: torch.ops.hvd.*, for programs that torch compiles.

hvd.torch works without it. `PROBLEM` then says why it is not there; nobody is told before
something is compiled.
"""
from __future__ import annotations

import ctypes
import importlib.util
import os

import torch

from .. import _frameworks
from .._core import library
from . import operator_rules

NAME = "libhvd_torch.so"
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# From that version on torch's stable ABI has all that they need.
LEAST = _frameworks.of_face("hvd.torch.compiled").least
NEW_ENOUGH = VERSION >= LEAST


def _load() -> str:
    """Returns "", or why there are no operators, and what to do.

    libhvd is loaded already, from wherever it is: the loader takes that one, by its soname, and
    not the one beside libhvd_torch."""
    version = torch.__version__
    if not NEW_ENOUGH:
        least = ".".join(map(str, LEAST))
        return f"torch {version} is too old for them; use torch {least} or later"
    loaded, tried = library.load_beside(NAME, os.environ.get("HVD_TORCH_LIBRARY"), ctypes.CDLL)
    if loaded is not None:
        return _tell_compiler()
    return (f"no {NAME} works with torch {version}. Build it: "
            f"scripts/build -DHVD_TORCH={_folder_of_torch()}. Looked at:\n  " + "\n  ".join(tried))


def _tell_compiler() -> str:
    try:
        operator_rules.register()
    except Exception as error:  # whatever a younger torch finds: programs run all the same
        return (f"torch {torch.__version__} takes them otherwise than hvd gives them "
                f"({type(error).__name__}: {error}); use an older torch or a younger hvd")
    return ""


def _folder_of_torch() -> str:
    found = importlib.util.find_spec("torch")
    places = found.submodule_search_locations if found else None
    return places[0] if places else "<folder of torch>"


PROBLEM = _load()


def operators_built() -> bool:
    """Whether torch.ops.hvd.* is there, so that torch.compile takes hvd's calls into its graphs."""
    return not PROBLEM
