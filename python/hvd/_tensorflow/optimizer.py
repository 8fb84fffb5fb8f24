# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v1.train.Optimizer with gradients reduced over the ranks, for sessions and eagerly."""
from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import tensorflow as tf

from .. import ops as _ops
from .aggregation import Aggregation, Done
from .gradients import Gradient, Reduction, key_of

Pairs: TypeAlias = "list[tuple[Gradient, tf.Variable]]"

# The base of classes that are put before an optimizer's own class.
if TYPE_CHECKING:
    _Before = tf.compat.v1.train.Optimizer
else:
    _Before = object


class _Mixin(_Before):
    """The property that both mixins have."""

    @property
    def _optimizer(self) -> _Mixin:
        """The optimizer that Horovod's programs find within: this one, which is of its class."""
        return self


class DistributedMixin(_Mixin):
    """The methods that are added to an optimizer's class."""

    _hvd_reduction: Reduction
    _hvd_aggregation: Aggregation | None
    _hvd_scale_local: bool
    _hvd_local: set[Hashable]

    def register_local_var(self, var: object) -> None:
        """The gradient of this variable stays this rank's own."""
        self._hvd_local.add(key_of(var))

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Pairs:
        """As the optimizer's own, reduced over the ranks."""
        pairs = super().compute_gradients(*args, **kwargs)
        shared = [i for i, (_, variable) in enumerate(pairs)
                  if key_of(variable) not in self._hvd_local]
        reduced = (self._hvd_aggregation or self._hvd_reduction).reduce(
            [pairs[i][0] for i in shared], [pairs[i][1] for i in shared])
        found = dict(zip(shared, reduced, strict=True))
        return [(found[i] if i in found else self._local(gradient), variable)
                for i, (gradient, variable) in enumerate(pairs)]

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Gradient, tf.Variable]],
                        global_step: tf.Variable | None = None, name: str | None = None) -> Done:
        """As the optimizer's own; with backward_passes_per_step only when so many have passed."""
        inner = super().apply_gradients
        if self._hvd_aggregation is None:
            return inner(grads_and_vars, global_step, name)
        pairs = list(grads_and_vars)
        # Its slots are variables, which a branch may not make.
        self._prepare()
        with tf.init_scope():
            self._create_slots([v for g, v in pairs if g is not None])

        def count() -> Done:
            return None if global_step is None else global_step.assign_add(1, read_value=False)

        return self._hvd_aggregation.apply(lambda: inner(pairs, global_step, name), count)

    def _local(self, gradient: Gradient) -> Gradient:
        return self._hvd_reduction.scale_local(gradient) if self._hvd_scale_local else gradient


class AdasumMixin(_Mixin):
    """The methods that are added to an optimizer's class for op=Adasum: each rank takes its own
    step, and what the steps changed is combined."""

    _hvd_reduction: Reduction

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Gradient, tf.Variable]],
                        global_step: tf.Variable | None = None, name: str | None = None) -> Done:
        """The optimizer's own step, replaced by all ranks' together."""
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        variables = [variable for gradient, variable in pairs if gradient is not None]
        starts = [tf.identity(variable.read_value()) for variable in variables]
        with tf.control_dependencies(starts):
            step = super().apply_gradients(pairs, global_step, name)
        with tf.control_dependencies([] if step is None else [step]):
            changes = [variable.read_value() - start
                       for variable, start in zip(variables, starts, strict=True)]
        combined: list[Any] = self._hvd_reduction.reduce(changes, variables)
        return tf.group(*[variable.assign(start + change) for variable, start, change in
                          zip(variables, starts, combined, strict=True)])


def distributed(optimizer: Any, reduction: Reduction, passes: int = 1, average: bool = False,
                scale_local: bool = True) -> Any:
    """The optimizer, of a subclass of its own class, which shares its state."""
    if passes < 1:
        raise ValueError("backward_passes_per_step must be > 0")
    adasum = reduction.op == _ops.Adasum
    if adasum and passes > 1:
        raise ValueError("backward_passes_per_step > 1 has no meaning with op=Adasum: each rank "
                         "takes its own steps")
    mixin = AdasumMixin if adasum else DistributedMixin
    kind = type(type(optimizer).__name__, (mixin, type(optimizer)), {})
    made: Any = object.__new__(kind)
    made.__dict__ = optimizer.__dict__
    made._hvd_reduction = reduction
    made._hvd_aggregation = Aggregation(passes, reduction, average) if passes > 1 else None
    made._hvd_scale_local = scale_local
    made._hvd_local = set()
    return made


