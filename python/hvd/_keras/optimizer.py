# SPDX-License-Identifier: Apache-2.0
"""Keras 3's optimizers, with gradients reduced over the ranks.

Where: before `apply`, so that clipping and weight decay see what all ranks have together; with
accumulation once an update, in the branch that applies. Under a LossScaleOptimizer that reduces
before it decides (`loss_scale`).
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import keras

from .. import _frameworks
from . import backends
from .backends.kinds import ReducesKeras, Tensor
from .backends.settings import Locals, Settings, reduce_shared
from .classes import extended, sharing
from .variables import of_optimizer

# The base of what is put before an optimizer's own class.
if TYPE_CHECKING:
    _Before = keras.optimizers.Optimizer
else:
    _Before = object

_frameworks.require("hvd.keras", keras.__version__)  # older ones let one rank's overflow pass


class State:
    """The state that one optimizer has besides Keras' own."""

    def __init__(self, settings: Settings) -> None:
        backend = backends.load(keras.config.backend())
        self.reduction: ReducesKeras[Tensor] = backend.Reduction(settings)
        self.own = Locals(settings.local_layers)
        self.reduced_outside = False  # by the LossScaleOptimizer around it
        self.clipped: list[keras.Variable] = []  # the variables whose gradients Keras clips next


class DistributedMixin(_Before):
    """The methods that are added to an optimizer's class. `_hvd_settings` belong to the class, so
    that from_config() makes optimizers that reduce, too."""

    _hvd_settings: Settings

    @property
    def _hvd(self) -> State:
        # Not by setattr: Keras would track it.
        found: State | None = self.__dict__.get("_hvd_state")
        if found is None:
            found = self.__dict__["_hvd_state"] = State(self._hvd_settings)
        return found

    def register_local_var(self, var: object) -> None:
        """The gradient of this variable stays this rank's own."""
        self._hvd.own.add(var)

    def apply(self, grads: Iterable[Tensor],
              trainable_variables: Iterable[keras.Variable] | None = None) -> Any:
        """As the optimizer's own, with the gradients of all ranks."""
        grads = list(grads)
        variables = trainable_variables if trainable_variables is None else list(
            trainable_variables)
        if not self._hvd.reduced_outside:
            grads = self._hvd_reduce(grads, self._hvd_variables(variables))
        return super().apply(grads, variables)

    def _hvd_variables(self, given: Sequence[keras.Variable] | None) -> Sequence[keras.Variable]:
        return self._trainable_variables if given is None else given

    def _hvd_reduce(self, grads: list[Tensor],
                    variables: Sequence[keras.Variable]) -> list[Tensor]:
        """Does what is due before Keras' own apply. Variables that are replaced by their
        gradients (scales of float8) get the greatest, as Keras itself accumulates them."""
        if len(grads) != len(variables):
            return grads  # Keras says what is wrong
        replaced = [i for i, each in enumerate(variables)
                    if getattr(each, "overwrite_with_gradient", False)]
        if replaced:
            greatest = self._hvd.reduction.greatest([grads[i] for i in replaced])
            for i, gradient in zip(replaced, greatest, strict=True):
                grads[i] = gradient
        if accumulates(self):
            return grads
        others = [i for i in range(len(grads)) if i not in replaced]
        reduced = self._hvd_reduce_now([grads[i] for i in others], [variables[i] for i in others])
        for i, gradient in zip(others, reduced, strict=True):
            grads[i] = gradient
        return grads

    def _hvd_reduce_now(self, grads: list[Tensor],
                        variables: Sequence[keras.Variable]) -> list[Tensor]:
        return reduce_shared(self._hvd.reduction, self._hvd_settings, self._hvd.own, grads,
                             variables)

    def _backend_apply_gradients(self, grads: Sequence[Tensor],
                                 trainable_variables: Sequence[keras.Variable]) -> Any:
        self._hvd.clipped = list(trainable_variables)
        return super()._backend_apply_gradients(grads, trainable_variables)

    def _clip_gradients(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """Keras clips what it has accumulated, and before that its average is reduced."""
        if accumulates(self):
            passes = self._hvd_settings.passes
            factor = 1 if passes == 1 or self._hvd_settings.average_passes else passes

            def all_ranks(averages: list[Tensor]) -> list[Tensor]:
                return self._hvd_reduce_now([each * factor if factor > 1 else each
                                             for each in averages], self._hvd.clipped)

            grads = backends.load(keras.config.backend()).at_update(self, all_ranks, list(grads))
        return super()._clip_gradients(grads)

    def get_config(self) -> dict[str, Any]:
        """The plain optimizer's."""
        config = super().get_config()
        if self._hvd_settings.passes > 1:
            config["gradient_accumulation_steps"] = None
        return dict(config)

    def save_own_variables(self, store: Any) -> None:
        """Saves the variables that the plain optimizer has."""
        for i, variable in enumerate(self._hvd_saved()):
            store[str(i)] = keras.ops.convert_to_numpy(variable)

    def load_own_variables(self, store: Any) -> None:
        """Loads the variables that the plain optimizer has."""
        saved = self._hvd_saved()
        if self._hvd_settings.passes == 1 or len(store.keys()) != len(saved):
            super().load_own_variables(store)
            return
        for i, variable in enumerate(saved):
            variable.assign(store[str(i)])

    def _hvd_saved(self) -> list[keras.Variable]:
        if self._hvd_settings.passes == 1:
            return list(self.variables)
        return cast("list[keras.Variable]", of_optimizer(self))


def accumulates(optimizer: keras.optimizers.Optimizer) -> bool:
    """Whether Keras adds up gradients before it applies them."""
    return bool(optimizer.gradient_accumulation_steps)


def distributed(optimizer: keras.optimizers.Optimizer,
                settings: Settings) -> DistributedMixin:
    """The optimizer, of a subclass of its own class, which shares its state."""
    if isinstance(optimizer, DistributedMixin):
        raise ValueError("this optimizer reduces its gradients already: DistributedOptimizer() is "
                         "for plain ones")
    if settings.passes > 1:
        _must_accumulate(optimizer)
        optimizer.gradient_accumulation_steps = settings.passes
    return sharing(extended(type(optimizer), DistributedMixin, _hvd_settings=settings), optimizer)


def _must_accumulate(optimizer: keras.optimizers.Optimizer) -> None:
    if optimizer.gradient_accumulation_steps:
        raise ValueError("the optimizer has gradient_accumulation_steps of its own: give them or "
                         "backward_passes_per_step, not both")
    if optimizer.built:
        raise ValueError("backward_passes_per_step > 1 is for an optimizer that is not built yet: "
                         "its sums are variables of its own")
