# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.util, answered by hvd: what programs and other packages use of it."""
from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import tensorflow as tf

F = TypeVar("F", bound=Callable[..., object])
R = TypeVar("R")


def _executing_eagerly() -> bool:
    """Whether ops run as they are called, here."""
    return bool(tf.executing_eagerly())


def _make_subgraph(f: F) -> F:
    """The function as one of TensorFlow's."""
    return tf.function(f)


def _cache(f: Callable[..., R]) -> Callable[..., R]:
    """Remembers f's results by its arguments, which can be hashed; those of graphs apart."""
    known: dict[tuple[tuple[Hashable, ...], bool], R] = {}

    def remembered(*args: Hashable) -> R:
        key = args, _executing_eagerly()
        if key not in known:
            known[key] = f(*args)
        return known[key]

    return remembered


def vars_to_refs(vars: Any) -> Any:  # noqa: A002  (Horovod's name)
    """Stand-ins that can be hashed, for a variable, or for a list of them."""
    return tuple(vars_to_refs(each) for each in vars) if isinstance(vars, list) else vars.ref()


def refs_to_vars(refs: Any) -> Any:
    """The variables that vars_to_refs was given."""
    return [refs_to_vars(each) for each in refs] if isinstance(refs, tuple) else refs.deref()
