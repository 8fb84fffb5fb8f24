# SPDX-License-Identifier: Apache-2.0
"""libhvd_jax's handlers, by which XLA calls hvd: registered when this is imported."""
from __future__ import annotations

import os

import jax

from .. import _frameworks
from .._core import library

NAME = "libhvd_jax.so"
KINDS = ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall")
NOTHING = "hvd_jax_nothing"  # a step of a program that does nothing: see side_by_side


def target(kind: str) -> str:
    """What programs call the handler."""
    return f"hvd_jax_{kind}"


def _register() -> None:
    _frameworks.require("hvd.jax", jax.__version__)
    loaded, tried = library.load_beside(NAME, os.environ.get("HVD_JAX_LIBRARY"))
    if loaded is None:
        raise ImportError(f"hvd.jax finds no {NAME} that loads. Set HVD_JAX_LIBRARY to its path, "
                          "or build it (scripts/build). Looked at:\n  " + "\n  ".join(tried))
    for name in (*map(target, KINDS), NOTHING):
        handler = jax.ffi.pycapsule(getattr(loaded, name))
        jax.ffi.register_ffi_target(name, handler, platform="cpu")


_register()
