# SPDX-License-Identifier: Apache-2.0
"""Keras 3's LossScaleOptimizer around an optimizer of ours, whoever made it.

It looks for infinities in the gradients, and where there are any it takes no step. All ranks must
find what one rank finds: gradients are therefore reduced before it looks; one rank's infinity is in
the sum. Where they cannot be (accumulation reduces later, local variables never) the ranks agree on
what they have found.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import keras

from .backends.kinds import Tensor
from .classes import extended
from .optimizer import DistributedMixin, accumulates

# The base of what is put before the scaler's own class.
if TYPE_CHECKING:
    _Before = keras.optimizers.LossScaleOptimizer
else:
    _Before = object


class ScaledMixin(_Before):
    """The methods that are added to LossScaleOptimizer's class."""

    def apply(self, grads: Iterable[Tensor],
              trainable_variables: Iterable[keras.Variable] | None = None) -> Any:
        """As Keras' own, with the gradients of all ranks."""
        variables = trainable_variables if trainable_variables is None else list(
            trainable_variables)
        return super().apply(self._hvd_before(list(grads), variables),
                             variables)

    def stateless_apply(self, optimizer_variables: Sequence[Tensor], grads: Iterable[Tensor],
                        trainable_variables: Sequence[Tensor]) -> Any:
        """As Keras' own, with the gradients of all ranks."""
        return super().stateless_apply(
            optimizer_variables, self._hvd_before(list(grads), None), trainable_variables)

    def check_finite(self, grads: Sequence[Tensor]) -> Tensor:
        """Whether all are finite, on all ranks."""
        finite = super().check_finite(grads)
        inner = self.inner_optimizer
        assert isinstance(inner, DistributedMixin)
        if accumulates(inner) or inner._hvd.own:
            finite = inner._hvd.reduction.all_true(finite)
        return finite

    def _hvd_before(self, grads: list[Tensor],
                    variables: Sequence[keras.Variable] | None) -> list[Tensor]:
        if variables is None:
            variables = self._trainable_variables
        inner = self.inner_optimizer
        assert isinstance(inner, DistributedMixin)
        return list(inner._hvd_reduce(grads, variables))


def adopt(scaler: keras.optimizers.LossScaleOptimizer) -> None:
    """This one reduces for its inner optimizer from now on, if that is one of ours."""
    inner = scaler.inner_optimizer
    if not isinstance(inner, DistributedMixin) or isinstance(scaler, ScaledMixin):
        return
    inner._hvd.reduced_outside = True
    # In place: Keras is making it. Not by its own setattr, which tracks.
    object.__setattr__(scaler, "__class__", extended(type(scaler), ScaledMixin))


def is_scaler(optimizer: object) -> TypeGuard[keras.optimizers.LossScaleOptimizer]:
    """Whether it is Keras' own around another."""
    return isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
