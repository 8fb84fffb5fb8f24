# SPDX-License-Identifier: Apache-2.0
"""The parts that differ by Keras 3's backend. `settings` are what they are asked for, `kinds` the
types of either Keras' objects; each other module has

    Compression     how gradients may be made smaller
    Reduction       how an optimizer's gradients are reduced: reduce, scale_local, key_of
    at_update       does something to gradients when accumulated ones are applied
    allreduce, allgather, broadcast, reducescatter      on values, also within a compiled step
    sum_over_ranks  a sum that can be differentiated
"""
from __future__ import annotations

from types import ModuleType


def load(name: str) -> ModuleType:
    """The module of the backend; frameworks that are not used are not imported."""
    if name == "tensorflow":
        from . import with_tensorflow

        return with_tensorflow
    if name == "jax":
        from . import with_jax

        return with_jax
    if name == "torch":
        from . import with_torch

        return with_torch
    raise ImportError(f"hvd.keras serves Keras on TensorFlow, JAX and torch, not on {name!r}; set "
                      "KERAS_BACKEND")
