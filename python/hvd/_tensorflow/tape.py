# SPDX-License-Identifier: Apache-2.0
"""tf.GradientTape whose gradients are those of all ranks."""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import tensorflow as tf

from .. import ops as _ops
from .._arguments import Groups
from .._core.compression import Compresses
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .compression import Compression
from .gradients import Gradient, Reduction, groups_asked, key_of

Pairs: TypeAlias = "list[tuple[Variable, Gradient]]"
Layers: TypeAlias = "Layer | Iterable[Layer] | None"


class Layer(Protocol):
    """A layer of either Keras."""

    @property
    def trainable_weights(self) -> Sequence[Variable]:
        """The variables that it trains."""


class Variable(Protocol):
    """A variable of either Keras, or of TensorFlow."""

    @property
    def name(self) -> str:
        """As the program sees it."""



# The base of what is put before a tape's own class.
if TYPE_CHECKING:
    _Before = tf.GradientTape
else:
    _Before = object


class DistributedTape(_Before):
    """The methods that DistributedGradientTape adds to a tape's class."""

    _hvd_reduction: Reduction
    _hvd_scale_local: bool
    _hvd_local: set[Hashable]

    def register_local_source(self, source: object) -> None:
        """The gradient of this variable stays this rank's own."""
        self._hvd_local.add(key_of(source))

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None,
                 unconnected_gradients: tf.UnconnectedGradients = tf.UnconnectedGradients.NONE, *,
                 use_generic_names: bool = False) -> Any:
        """As the tape's own, reduced over the ranks. Gradients of variables of one name meet, in
        whatever order `sources` has them. `use_generic_names`: those in one place do, where ranks
        name their variables differently."""
        found = super().gradient(
            target, sources, output_gradients, unconnected_gradients)
        flat = tf.nest.flatten(found, expand_composites=False)
        of = tf.nest.flatten(sources)
        shared = [i for i, source in enumerate(of) if key_of(source) not in self._hvd_local]
        reduced = self._hvd_reduction.reduce([flat[i] for i in shared], [of[i] for i in shared],
                                             by_place=use_generic_names)
        for i in range(len(flat)):
            if i not in shared and self._hvd_scale_local:
                flat[i] = self._hvd_reduction.scale_local(flat[i])
        for i, gradient in zip(shared, reduced, strict=True):
            flat[i] = gradient
        return tf.nest.pack_sequence_as(sources, flat)

    def get_local_and_global_gradients(
            self, target: Any, sources: Any, output_gradients: Any = None, *,
            use_generic_names: bool = False) -> tuple[Pairs, Pairs]:
        """Pairs of source and gradient: those that stay this rank's own, and the others."""
        found = tf.nest.flatten(self.gradient(
            target, sources, output_gradients, use_generic_names=use_generic_names),
            expand_composites=False)
        pairs = list(zip(tf.nest.flatten(sources), found, strict=True))
        return ([pair for pair in pairs if key_of(pair[0]) in self._hvd_local],
                [pair for pair in pairs if key_of(pair[0]) not in self._hvd_local])


def DistributedGradientTape(  # noqa: N802  (Horovod's name)
        gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "",
        compression: Compresses[tf.Tensor] = Compression.none, sparse_as_dense: bool = False,
        op: int = _ops.Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
        groups: Groups = None, process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True) -> DistributedTape:
    """The tape, whose gradient() gives the gradients of all ranks.

    It is an instance of the tape's own class and shares what that has recorded.
    `gradient_predivide_factor` f: gradients are divided by f before they are summed, and multiplied
    by f/size after. `groups`: a number of, or lists of variables whose gradients travel together.
    `scale_local_gradients`: those of sources that `register_local_source` has named are divided by
    the number of ranks.
    """
    reduction = Reduction(op, compression, sparse_as_dense, gradient_predivide_factor,
                          groups_asked(num_groups, groups), process_set, device_dense,
                          device_sparse)
    kind = type(type(gradtape).__name__, (DistributedTape, type(gradtape)), {})
    made: DistributedTape = object.__new__(kind)
    made.__dict__ = gradtape.__dict__
    made._hvd_reduction = reduction
    made._hvd_scale_local = scale_local_gradients
    made._hvd_local = set()
    return made


def PartialDistributedGradientTape(  # noqa: N802  (Horovod's name)
        gradtape: tf.GradientTape, device_dense: str = "", device_sparse: str = "",
        compression: Compresses[tf.Tensor] = Compression.none, sparse_as_dense: bool = False,
        op: int = _ops.Average, gradient_predivide_factor: float = 1.0, num_groups: int = 0,
        groups: Groups = None, process_set: ProcessSet = global_process_set,
        local_layers: Layers = None, scale_local_gradients: bool = True) -> DistributedTape:
    """DistributedGradientTape; the gradients of `local_layers`, a layer or several, stay this
    rank's own."""
    made = DistributedGradientTape(
        gradtape, device_dense, device_sparse, compression, sparse_as_dense, op,
        gradient_predivide_factor, num_groups, groups, process_set, scale_local_gradients)
    for variable in local_variables(local_layers):
        made.register_local_source(variable)
    return made


def local_variables(layers: Layers) -> list[Variable]:
    """The variables that a layer, or several, train."""
    several: Iterable[Layer | None] = layers if isinstance(
        layers, (list, tuple, set)) else [layers]  # type: ignore[list-item]
    return [variable for layer in several if layer is not None
            for variable in layer.trainable_weights]
