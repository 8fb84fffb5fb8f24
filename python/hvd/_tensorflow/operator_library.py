# SPDX-License-Identifier: Apache-2.0
"""libhvd_tensorflow's ops, which TensorFlow has once this is imported."""
from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import auto_control_deps

from .. import _frameworks
from .._core import library

NAME = "libhvd_tensorflow.so"
KINDS = ("Allreduce", "Allgather", "Reducescatter", "Broadcast", "Alltoall")


def _load_ops(path: str) -> Any:
    try:
        ops = tf.load_op_library(path)
    except tf.errors.OpError as error:
        raise OSError(error.message) from error
    tell = ctypes.CDLL(path).hvd_tensorflow_problem
    tell.restype = ctypes.c_char_p
    if problem := tell().decode():
        raise OSError(problem)
    return ops


def _load() -> Any:
    _frameworks.require("hvd.tensorflow", tf.__version__)
    ops, tried = library.load_beside(NAME, os.environ.get("HVD_TENSORFLOW_LIBRARY"), _load_ops)
    if ops is None:
        raise ImportError(
            f"hvd.tensorflow finds no {NAME} that loads. Set HVD_TENSORFLOW_LIBRARY to its path, "
            "or build it (scripts/build). Looked at:\n  " + "\n  ".join(tried))
    return ops


def _let_run_in_any_order() -> None:
    """Within a tf.function TensorFlow has ops with effects follow one another, in the program's
    order. hvd's tell by their names which belong together; chained, two ranks whose programs have
    other orders would wait for each other. They run in any case, also where nobody uses what they
    give. TensorFlow keeps such ops in a list of its own."""
    known = getattr(auto_control_deps, "MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS", None)
    if known is None:
        warnings.warn(f"hvd.tensorflow does not know TensorFlow {tf.__version__}: within a "
                      "tf.function all ranks must call hvd in the same order", stacklevel=2)
        return
    auto_control_deps.MUST_RUN_ORDER_INSENSITIVE_STATEFUL_OPS = known | {
        f"Hvd{kind}" for kind in KINDS}


OPS = _load()
_let_run_in_any_order()
