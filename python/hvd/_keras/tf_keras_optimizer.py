# SPDX-License-Identifier: Apache-2.0
"""tf_keras' optimizers, of both kinds, with gradients reduced over the ranks.

Both have a method that brings the gradients of several replicas together, which their
LossScaleOptimizers call before they look for infinities: there the ranks' are reduced. A program
that computes gradients by the optimizer itself gets them reduced, as in Horovod, and applying them
does not reduce them again.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard

import tensorflow as tf
import tf_keras

from .._tensorflow.aggregation import Aggregation, Done
from .._tensorflow.gradients import Gradient
from .backends import with_tensorflow
from .backends.settings import Locals, Settings, reduce_shared
from .classes import extended, sharing

_NewOptimizer = tf_keras.optimizers.Optimizer
_LegacyOptimizer = tf_keras.optimizers.legacy.Optimizer
Pair: TypeAlias = "tuple[Gradient, tf.Variable]"
Pairs: TypeAlias = "list[Pair]"

# The bases of what is put before an optimizer's own class.
if TYPE_CHECKING:
    _BeforeNew = tf_keras.optimizers.Optimizer
    _BeforeLegacy = tf_keras.optimizers.legacy.Optimizer
else:
    _BeforeNew = _BeforeLegacy = object


class State:
    """The state that one optimizer has besides Keras' own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.reduction = with_tensorflow.Reduction(settings)
        self.own = Locals(settings.local_layers)
        self.aggregation = Aggregation(
            settings.passes, self, settings.average_passes) \
            if settings.passes > 1 else None
        self._computed: object = None  # where gradients were computed that are to be applied

    def reduce(self, gradients: Sequence[Gradient], variables: Sequence[object] | None
               ) -> list[Gradient]:
        """The gradients of all ranks, at once; Aggregation asks for them."""
        return reduce_shared(self.reduction, self.settings, self.own, list(gradients),
                             list(variables or ()))

    def reduced(self, pairs: Iterable[Pair]) -> Pairs:
        """The pairs, with the gradients of all ranks, or with their sums so far."""
        pairs = list(pairs)
        gradients, variables = [g for g, _ in pairs], [v for _, v in pairs]
        found = (self.aggregation or self).reduce(gradients, variables)
        return list(zip(found, variables, strict=True))

    def computed(self, pairs: Pairs) -> Pairs:
        """The same, and remembers it."""
        self._computed = _place()
        return self.reduced(pairs)

    def aggregated(self, pairs: Iterable[Pair]) -> Pairs:
        """The pairs as they are applied."""
        known, self._computed = self._computed, None
        return list(pairs) if known is not None and known in _places() else self.reduced(pairs)


def _place() -> object:
    """Where this is computed: in which graph, or eagerly."""
    return "eager" if tf.executing_eagerly() else weakref.ref(tf.compat.v1.get_default_graph())


def _places() -> list[object]:
    """This place, and the graphs around it."""
    if tf.executing_eagerly():
        return ["eager"]
    found: list[object] = []
    graph: tf.Graph | None = tf.compat.v1.get_default_graph()
    while graph is not None:
        found.append(weakref.ref(graph))
        graph = getattr(graph, "outer_graph", None)
    return found


class _Passes(NamedTuple):
    """A variable; None before the first pass."""

    counter: tf.Variable | None


class DistributedMixin:
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

    def _hvd_step(self, pairs: Pairs, build: Callable[[list[tf.Variable]], None],
                  step: Callable[[Pairs], object]) -> tf.Tensor:
        """With backward_passes_per_step: takes the step at the last pass only. `iterations` counts
        the passes, as in Keras 3, so that schedules are those of batches."""
        if getattr(self, "_is_wrapped_by_loss_scale_optimizer", False):
            raise ValueError("backward_passes_per_step > 1 does not go with a LossScaleOptimizer "
                             "of tf_keras: a pass that it skips would be missing in the sum")
        aggregation = self._hvd.aggregation
        assert aggregation is not None
        with tf.init_scope():  # a branch may not make variables
            build([variable for _, variable in pairs])
        passed: tf.Variable = self.iterations  # type: ignore[attr-defined]  # of both kinds
        return aggregation.apply(lambda: _operation(step(pairs)),
                                 lambda: passed.assign_add(1, read_value=False))

    @property
    def _agg_helper(self) -> _Passes | None:
        """Horovod's name for what adds up the passes; its `counter` says how many there are."""
        aggregation = self._hvd.aggregation
        return None if aggregation is None else _Passes(aggregation.count)


def _operation(result: object) -> Done:
    """The operation that a graph of sessions must wait for; tf.functions keep the order of
    themselves."""
    return result if isinstance(result, (tf.Operation, tf.Tensor)) else None


class NewMixin(DistributedMixin, _BeforeNew):
    """For tf_keras.optimizers.Optimizer."""

    def compute_gradients(self, loss: Any, var_list: Any, tape: Any = None) -> Pairs:
        """As the optimizer's own, reduced over the ranks."""
        return self._hvd.computed(
            super().compute_gradients(loss, var_list, tape))

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None,
                           tape: Any = None) -> Pairs:
        """Horovod's name for compute_gradients. ValueError for a grad_loss, which only legacy
        optimizers take."""
        if grad_loss is None:
            return self.compute_gradients(loss, var_list, tape)
        raise ValueError("grad_loss is for optimizers of tf_keras.optimizers.legacy")

    def aggregate_gradients(self, grads_and_vars: Iterable[Pair]) -> Pairs:
        """The pairs, with the gradients of all ranks."""
        return self._hvd.aggregated(grads_and_vars)

    def apply_gradients(self, grads_and_vars: Iterable[Pair], name: str | None = None,
                        skip_gradients_aggregation: bool = False, **kwargs: Any) -> Any:
        """As the optimizer's own; with backward_passes_per_step only when so many have passed."""
        inner = super().apply_gradients
        if self._hvd.aggregation is None:
            return inner(grads_and_vars, name, skip_gradients_aggregation, **kwargs)
        skip = skip_gradients_aggregation or not kwargs.pop("experimental_aggregate_gradients",
                                                            True)
        pairs = list(grads_and_vars) if skip else self.aggregate_gradients(grads_and_vars)
        build = self.build
        return self._hvd_step(pairs, build, lambda found: inner(
            found, name, skip_gradients_aggregation=True))


class LegacyMixin(DistributedMixin, _BeforeLegacy):
    """For tf_keras.optimizers.legacy.Optimizer."""

    def _compute_gradients(self, loss: Any, var_list: Any, grad_loss: Any = None,
                           tape: Any = None) -> Pairs:
        """As the optimizer's own, reduced over the ranks."""
        return self._hvd.computed(super()._compute_gradients(
            loss, var_list, grad_loss, tape))

    def get_gradients(self, loss: Any, params: Any) -> list[Gradient]:
        """As the optimizer's own, reduced over the ranks."""
        found = super().get_gradients(loss, params)
        pairs = list(zip(found, tf.nest.flatten(params), strict=True))
        return [gradient for gradient, _ in self._hvd.computed(pairs)]

    def _aggregate_gradients(self, grads_and_vars: Iterable[Pair]) -> Pairs:
        """The pairs, with the gradients of all ranks."""
        return self._hvd.aggregated(grads_and_vars)

    def apply_gradients(self, grads_and_vars: Iterable[Pair], name: str | None = None,
                        experimental_aggregate_gradients: bool = True) -> Any:
        """As the optimizer's own; with backward_passes_per_step only when so many have passed."""
        inner = super().apply_gradients
        if self._hvd.aggregation is None:
            return inner(grads_and_vars, name, experimental_aggregate_gradients)
        pairs = list(grads_and_vars)
        if experimental_aggregate_gradients:
            pairs = self._aggregate_gradients(pairs)

        def build(variables: list[tf.Variable]) -> None:
            self.iterations  # noqa: B018  (makes it)
            self._create_all_weights(variables)

        return self._hvd_step(pairs, build, lambda found: inner(
            found, name, experimental_aggregate_gradients=False))


def is_optimizer(optimizer: object) -> TypeGuard[_NewOptimizer | _LegacyOptimizer]:
    """Whether it is one of tf_keras'."""
    return isinstance(optimizer, (_NewOptimizer, _LegacyOptimizer))


def distributed(optimizer: _NewOptimizer | _LegacyOptimizer, settings: Settings
                ) -> _NewOptimizer | _LegacyOptimizer:
    """The optimizer, of a subclass of its own class, which shares its state. A LossScaleOptimizer
    stays what it is: its inner one reduces."""
    if isinstance(optimizer, DistributedMixin):
        raise ValueError("this optimizer reduces its gradients already: DistributedOptimizer() is "
                         "for plain ones")
    if isinstance(optimizer, tf_keras.mixed_precision.LossScaleOptimizer):
        inner = distributed(optimizer.inner_optimizer, settings)
        optimizer.__dict__["_optimizer"] = inner
        optimizer.__dict__["_trackable"] = inner
        return optimizer
    mixin: type[NewMixin] | type[LegacyMixin] = NewMixin if isinstance(
        optimizer, _NewOptimizer) else LegacyMixin
    return sharing(extended(type(optimizer), mixin, _hvd_settings=settings), optimizer)
