# SPDX-License-Identifier: Apache-2.0
"""Subclasses of a user's own optimizer class, made while the program runs."""
from __future__ import annotations

from typing import TypeVar

M = TypeVar("M")


def extended(base: type, mixin: type[M], **attributes: object) -> type[M]:
    """`base` with what the mixin adds. Its objects say that their class is `base`: Keras serialises
    by that, so a saved model is that of the plain optimizer, and loads where there is no hvd."""
    made: type[M] = type(base.__name__, (mixin, base), {
        **attributes, "__module__": base.__module__, "__class__": property(lambda _: base)})
    return made


def sharing(kind: type[M], optimizer: object) -> M:
    """An object of this class that has the optimizer's state, and goes on sharing it."""
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", optimizer.__dict__)  # Keras' own setattr tracks
    return made
