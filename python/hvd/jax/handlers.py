"""libhvd_jax's handlers, by which XLA calls hvd: registered when this is imported."""
from __future__ import annotations

import os

import jax

from .._core import library

NAME = "libhvd_jax.so"
KINDS = ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall")


def target(kind: str) -> str:
    """What programs call the handler."""
    return f"hvd_jax_{kind}"


def _register() -> None:
    loaded, tried = library.load_beside(NAME, os.environ.get("HVD_JAX_LIBRARY"))
    if loaded is None:
        raise ImportError(f"hvd.jax finds no {NAME} that loads. Set HVD_JAX_LIBRARY to its path, "
                          "or build it (scripts/build). Looked at:\n  " + "\n  ".join(tried))
    if not hasattr(jax, "ffi"):
        raise ImportError(f"hvd.jax needs jax 0.10 or later; this is {jax.__version__}")
    for kind in KINDS:
        handler = jax.ffi.pycapsule(getattr(loaded, target(kind)))
        jax.ffi.register_ffi_target(target(kind), handler, platform="cpu")


_register()
