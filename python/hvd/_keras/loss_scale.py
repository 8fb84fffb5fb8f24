# SPDX-License-Identifier: Apache-2.0
"""Keras 3's LossScaleOptimizer around an optimizer of ours, whoever made it.

It looks for infinities in the gradients, and where there are any it takes no step. All ranks must
find what one rank finds: gradients are therefore reduced before it looks; one rank's infinity is in
the sum. Where they cannot be (accumulation reduces later, local variables never) the ranks agree on
what they have found.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras

from .classes import extended
from .optimizer import DistributedMixin, accumulates


class ScaledMixin:
    """The methods that are added to LossScaleOptimizer's class."""

    inner_optimizer: Any

    def apply(self, grads: Iterable[Any], trainable_variables: Any = None) -> Any:
        """As Keras' own, with the gradients of all ranks."""
        variables = trainable_variables if trainable_variables is None else list(
            trainable_variables)
        return super().apply(self._hvd_before(list(grads), variables),  # type: ignore[misc]
                             variables)

    def stateless_apply(self, optimizer_variables: Any, grads: Any, trainable_variables: Any
                        ) -> Any:
        """As Keras' own, with the gradients of all ranks."""
        return super().stateless_apply(  # type: ignore[misc]
            optimizer_variables, self._hvd_before(list(grads), None), trainable_variables)

    def check_finite(self, grads: Any) -> Any:
        """Whether all are finite, on all ranks."""
        finite = super().check_finite(grads)  # type: ignore[misc]
        inner = self.inner_optimizer
        if accumulates(inner) or inner._hvd.own:
            finite = inner._hvd.reduction.all_true(finite)
        return finite

    def _hvd_before(self, grads: list[Any], variables: Any) -> list[Any]:
        if variables is None:
            variables = self._trainable_variables  # type: ignore[attr-defined]
        return list(self.inner_optimizer._hvd_reduce(grads, variables))


def adopt(scaler: Any) -> None:
    """This one reduces for its inner optimizer from now on, if that is one of ours."""
    inner = scaler.inner_optimizer
    if not isinstance(inner, DistributedMixin) or isinstance(scaler, ScaledMixin):
        return
    inner._hvd.reduced_outside = True
    # In place: Keras is making it. Not by its own setattr, which tracks.
    object.__setattr__(scaler, "__class__", extended(type(scaler), ScaledMixin))


def is_scaler(optimizer: Any) -> bool:
    """Whether it is Keras' own around another."""
    return isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
