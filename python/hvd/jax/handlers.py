# SPDX-License-Identifier: Apache-2.0
"""libhvd_jax's handlers, by which XLA calls hvd: registered when this is imported."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

import jax

from .. import _frameworks
from .._core import library

NAME = "libhvd_jax.so"
KINDS = ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall")
BETWEEN_KEYS = "\x1f"  # of calls, where libhvd_jax has several in one text
NOTHING = "hvd_jax_nothing"  # a step of a program that does nothing: see side_by_side


def target(kind: str) -> str:
    """The name by which programs call the handler."""
    return f"hvd_jax_{kind}"


def look() -> tuple[int, str]:
    """How often anything of the programs has changed, and hvd_jax_look's text."""
    room = 4096
    while True:
        buffer, bytes_ = ctypes.create_string_buffer(room), ctypes.c_size_t(room)
        changes = _library.hvd_jax_look(buffer, ctypes.byref(bytes_))
        if bytes_.value <= room:
            return changes, buffer.raw[:bytes_.value].decode(errors="replace")
        room = bytes_.value


def judge(keys: Iterable[str], text: str) -> None:
    """Calls of these may soon be ended, with a MismatchError of this text."""
    _library.hvd_jax_judge(BETWEEN_KEYS.join(keys).encode(), text.encode())


def end(keys: Iterable[str]) -> None:
    """Ends, for all ranks, these calls, which were judged and have not come to this rank. Other
    ranks end the others so."""
    _library.hvd_jax_end(BETWEEN_KEYS.join(keys).encode())


def acquit(keys: Iterable[str]) -> None:
    """They go on."""
    _library.hvd_jax_acquit(BETWEEN_KEYS.join(keys).encode())


def _register() -> ctypes.CDLL:
    _frameworks.require("hvd.jax", jax.__version__)
    loaded, tried = library.load_beside(NAME, os.environ.get("HVD_JAX_LIBRARY"), ctypes.CDLL)
    if loaded is None:
        raise ImportError(f"hvd.jax finds no {NAME} that loads. Set HVD_JAX_LIBRARY to its path, "
                          "or build it (scripts/build). Looked at:\n  " + "\n  ".join(tried))
    for name in (*map(target, KINDS), NOTHING):
        handler = jax.ffi.pycapsule(getattr(loaded, name))  # type: ignore[no-untyped-call]
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
    loaded.hvd_jax_look.restype = ctypes.c_uint64
    loaded.hvd_jax_look.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)]
    for act, arguments in ((loaded.hvd_jax_judge, 2), (loaded.hvd_jax_end, 1),
                           (loaded.hvd_jax_acquit, 1)):
        act.restype, act.argtypes = None, [ctypes.c_char_p] * arguments
    return loaded


_library = _register()
