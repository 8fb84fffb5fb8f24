# SPDX-License-Identifier: Apache-2.0
"""How an optimizer's gradients are reduced: what DistributedOptimizer's arguments say."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from ... import ops as _ops
from ..._arguments import Groups
from ..._arguments import groups_asked as groups_asked
from ..._core.compression import Compresses
from ..._names import meeting, name_of
from ...basics import global_process_set
from ...process_sets import ProcessSet
from .kinds import Layer, Reduces

T = TypeVar("T")
Layers: TypeAlias = "Layer | Iterable[Layer] | None"  # as `local_layers` may be


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of one optimizer, and of those that are made from its configuration."""

    op: int = _ops.Average
    compression: Compresses[Any] | None = None  # None: gradients travel as they are
    sparse_as_dense: bool = False
    predivide: float = 1.0
    groups: Groups = None  # TensorFlow only: elsewhere all travel together
    process_set: ProcessSet = dataclasses.field(default_factory=lambda: global_process_set)
    device_dense: str = ""  # TensorFlow only
    device_sparse: str = ""
    passes: int = 1  # so many add up their gradients before they are reduced
    average_passes: bool = False
    scale_local: bool = True
    local_layers: Sequence[Layer] = ()  # whose gradients stay this rank's own

    def __post_init__(self) -> None:
        if self.op == _ops.Adasum:
            raise ValueError("op=Adasum is not supported with Keras; hvd.torch and "
                             "tf.compat.v1.train's optimizers have it")
        if self.predivide != 1.0 and self.op != _ops.Average:
            raise ValueError("gradient_predivide_factor not supported with op != Average")
        if self.passes < 1:
            raise ValueError("backward_passes_per_step must be > 0")

    @property
    def scales(self) -> tuple[float, float]:
        """Before the sum, and after it; libhvd divides by the number of ranks besides."""
        return 1.0 / self.predivide, self.predivide


def layers_of(local_layers: Layers) -> tuple[Layer, ...]:
    """Each of them."""
    if local_layers is None:
        return ()
    if isinstance(local_layers, (list, tuple, set)):
        return tuple(local_layers)
    return (local_layers,)  # type: ignore[return-value]  # no other Iterable is one


class Locals:
    """The variables whose gradients stay this rank's own. Layers are asked each time: they have
    their variables only once they are built."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = tuple(layers)
        self._variables: list[object] = []

    def add(self, variable: object) -> None:
        """This one, too."""
        self._variables.append(variable)

    def __bool__(self) -> bool:
        return bool(self._layers or self._variables)

    def keys(self, key_of: Callable[[Any], Hashable]) -> set[Hashable]:
        """The keys that `key_of` makes of each variable."""
        of_layers = [variable for layer in self._layers for variable in layer.trainable_variables]
        return {key_of(variable) for variable in [*of_layers, *self._variables]}


def in_meeting_order(found: Sequence[T], variables: Sequence[object],
                     reduce: Callable[[list[T], Sequence[str]], list[T]]) -> list[T]:
    """The gradients as `reduce` makes them, which gets them in the order in which the ranks' meet,
    with what they are."""
    order = meeting(list(map(name_of, variables)))
    reduced = reduce([found[place] for place in order.places], order.contents)
    results = list(found)
    for place, each in zip(order.places, reduced, strict=True):
        results[place] = each
    return results


def reduce_shared(reduction: Reduces[T], settings: Settings, own: Locals, gradients: Sequence[T],
                  variables: Sequence[object]) -> list[T]:
    """The gradients of all ranks, in the place of this one's; those of local variables stay."""
    if not own:
        return list(reduction.reduce(gradients, variables))
    local = own.keys(reduction.key_of)
    shared = [i for i, each in enumerate(variables) if reduction.key_of(each) not in local]
    reduced = dict(zip(shared, reduction.reduce([gradients[i] for i in shared],
                                                [variables[i] for i in shared]), strict=True))
    if not settings.scale_local:
        return [reduced.get(i, gradient) for i, gradient in enumerate(gradients)]
    return [reduced[i] if i in reduced else reduction.scale_local(gradient)
            for i, gradient in enumerate(gradients)]
