# SPDX-License-Identifier: Apache-2.0
"""How gradients are reduced over the ranks: for tapes, for optimizers, and for Keras.

Within a graph each gradient travels by itself as soon as it is there, and libhvd fuses those that
are ready at the same time; eagerly, where each call waits, all travel in one call.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeAlias

import tensorflow as tf

from .. import ops as _ops
from .._arguments import Groups
from .._arguments import groups_asked as groups_asked
from .._core.compression import Compresses
from .._names import Meeting, meeting, shown
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .calls import name_of, unique_name, without_autograph
from .collectives import allreduce, grouped_allreduce
from .compression import Compression
from .slices import divided

Gradient: TypeAlias = "tf.Tensor | tf.IndexedSlices | None"


def key_of(source: object) -> Hashable:
    """The key that tells variables apart; Keras 3 keeps TensorFlow's within its own."""
    inner = source if isinstance(source, (tf.Variable, tf.Tensor)) else getattr(
        source, "value", source)
    return inner.ref() if isinstance(inner, (tf.Variable, tf.Tensor)) else id(source)


class _Together(NamedTuple):
    """Gradients that are one call. `contents`: what they are."""

    gradients: Sequence[tf.Tensor | tf.IndexedSlices]
    name: str | None
    contents: str


@dataclasses.dataclass(frozen=True)
class Reduction:
    """How an optimizer's, or a tape's, gradients are reduced."""

    op: int = _ops.Average
    compression: Compresses[tf.Tensor] = Compression.none
    sparse_as_dense: bool = False
    predivide: float = 1.0
    groups: Groups = None  # whose gradients travel together
    process_set: ProcessSet = dataclasses.field(default_factory=lambda: global_process_set)
    device_dense: str = ""
    device_sparse: str = ""

    def __post_init__(self) -> None:
        if self.predivide != 1.0 and self.op != _ops.Average:
            raise ValueError("gradient_predivide_factor not supported with op != Average")
        if self.op == _ops.Adasum and self.groups:
            raise ValueError("groups have no meaning with op=Adasum: each gradient is combined by "
                             "itself")

    @without_autograph
    def reduce(self, gradients: Sequence[Gradient], variables: Sequence[object] | None = None, *,
               by_place: bool = False) -> list[Gradient]:
        """The gradients of all ranks in the place of this one's; a None stays None, so it must be
        one on all ranks. On ranks outside of the process set they stay as they are. `variables`:
        whose gradients they are; those of one name meet, or with `by_place` those in one place."""
        if not self.process_set.included():
            return list(gradients)
        gradients = [self._dense(gradient) for gradient in gradients]
        named = variables is not None and not by_place
        order = meeting(list(map(name_of, variables or ()))) if named else Meeting(
            tuple(range(len(gradients))), ())
        contents = dict(zip(*order, strict=True)) if named else {}
        given = {i: each for i, each in enumerate(gradients) if each is not None}
        there = [i for i in order.places if i in given]
        prefix = unique_name("hvd_gradients")
        reduced = list(gradients)
        for number, group in enumerate(self._groups(there, gradients, variables)):
            together = _Together([given[i] for i in group],
                                 None if prefix is None else f"{prefix}.{number}",
                                 shown([contents[i] for i in group if i in contents]))
            for i, result in zip(group, self._reduce(together), strict=True):
                reduced[i] = result
        return reduced

    def scale_local(self, gradient: Gradient) -> Gradient:
        """A gradient that is not reduced, as large as if the others' had been zero."""
        members = self.process_set.size() or 1
        if gradient is None or members == 1:
            return gradient
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(divided(gradient.values, members), gradient.indices,
                                    gradient.dense_shape)
        return divided(gradient, members)

    def _dense(self, gradient: Gradient) -> Gradient:
        if self.sparse_as_dense and isinstance(gradient, tf.IndexedSlices):
            return tf.convert_to_tensor(gradient)
        return gradient

    def _groups(self, there: list[int], gradients: Sequence[Gradient],
                variables: Sequence[object] | None) -> list[list[int]]:
        """Indices of those that travel together."""
        dense = [i for i in there if not isinstance(gradients[i], tf.IndexedSlices)]
        alone = [[i] for i in there if i not in dense]
        if isinstance(self.groups, int):
            return [part for part in _split(dense, self.groups) if part] + alone
        if self.groups:
            return self._listed(dense, self.groups, variables or ()) + alone
        if tf.executing_eagerly() and self.op != _ops.Adasum:
            return ([dense] if dense else []) + alone
        return [[i] for i in there]

    def _listed(self, dense: list[int], groups: Sequence[Sequence[object]],
                variables: Sequence[object]) -> list[list[int]]:
        place = {key_of(variable): number for number, group in enumerate(groups)
                 for variable in group}
        together: dict[object, list[int]] = {}
        for i in dense:
            number = place.get(key_of(variables[i])) if i < len(variables) else None
            together.setdefault(("alone", i) if number is None else number, []).append(i)
        return list(together.values())

    def _reduce(self, asked: _Together) -> Sequence[Gradient]:
        # libhvd divides by the number of ranks besides. Slices are summed by who has them.
        first, several = asked.gradients[0], len(asked.gradients) > 1
        alone = not several and isinstance(first, tf.IndexedSlices)
        scales = (1.0, 1.0) if alone else (1.0 / self.predivide, self.predivide)
        how = (None, self.device_dense, self.device_sparse, self.compression, self.op, *scales,
               asked.name, self.process_set, True)
        if several:
            return grouped_allreduce(asked.gradients, *how, contents=asked.contents)
        return [allreduce(first, *how, contents=asked.contents)]


def _split(items: list[int], parts: int) -> list[list[int]]:
    size, more = divmod(len(items), parts)
    cuts = [part * size + min(part, more) for part in range(parts + 1)]
    return [items[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
