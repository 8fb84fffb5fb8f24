# SPDX-License-Identifier: Apache-2.0
"""The layout, which all ranks of an optimizer must have alike so that their gradients meet: which
parameters, in which order they lie in buckets, and which of them travel as soon as backward has
made them. Pure.

Names decide. The order is that of one rank, which the others take over.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

# The kinds of gradients that ranks have for a parameter, as bits: none, a dense one, one with so
# many sparse dimensions.
NONE = 0
DENSE = 1
_MOST_SPARSE_DIMENSIONS = 7


def sparse_kind(dimensions: int) -> int:
    """The bit of a sparse gradient; that of a dense one, which it has to become, when it has more
    dimensions than there are bits, or none."""
    return 1 << dimensions if 0 < dimensions <= _MOST_SPARSE_DIMENSIONS else DENSE


def sparse_dimensions(kind: int) -> int:
    """The sparse dimensions of a gradient that is sparse, and alike, wherever there is one;
    otherwise 0: it travels dense."""
    return max(kind.bit_length() - 1, 0) if kind & (kind - 1) == 0 else 0


class Outline(NamedTuple):
    """A parameter without its contents."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str

    def __str__(self) -> str:
        shape = ",".join(map(str, self.shape))
        return f"{self.dtype} [{shape}]" + (f" on {self.device}" if self.device != "cpu" else "")


@dataclass(frozen=True)
class Description:
    """A rank's optimizer. `groups`: names that are reduced together; `groups_told`: the program
    has told them, and not only how many there are. `settings`: what else counts."""

    outlines: tuple[Outline, ...]
    groups: tuple[tuple[str, ...], ...] = ()
    groups_told: bool = False
    settings: tuple[tuple[str, str], ...] = ()

    @cached_property
    def digest(self) -> int:
        """The same number for descriptions that go together, whatever their order is."""
        groups = sorted(map(sorted, self.groups)) if self.groups_told else len(self.groups)
        return _digest((sorted(self.outlines), groups, self.settings))


@dataclass(frozen=True)
class Layout:
    """`order`: all names, the first of which backward is likely to need first. `early`: those that
    travel as soon as they are there; the others wait until all ranks have told what they have.
    `sparse`: these wait for ever."""

    order: tuple[str, ...]
    early: frozenset[str] = frozenset()
    sparse: frozenset[str] = frozenset()
    groups: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def digest(self) -> int:
        """Names the layout; never 0."""
        return _digest((self.order, sorted(self.early), sorted(self.sparse), self.groups)) or 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        """In the order in which ranks tell one another what they have."""
        return tuple(sorted(self.order))

    @cached_property
    def late(self) -> list[tuple[int, str]]:
        """The names of gradients that do not travel early, with their numbers in `names`."""
        return [(at, name) for at, name in enumerate(self.names) if name not in self.early]

    def after(self, kinds: bytes) -> Layout:
        """The layout of the next step, when all ranks together have had gradients of these kinds
        (in the order of `names`) in this one."""
        early, sparse = set(self.early), set(self.sparse)
        for name, kind in zip(self.names, kinds, strict=True):
            if kind == NONE or name in sparse:
                continue
            if kind == DENSE:
                early.add(name)
            elif name not in early or sparse_dimensions(kind):
                early.discard(name)
                sparse.add(name)
        if early == self.early and sparse == self.sparse:
            return self
        return Layout(self.order, frozenset(early), frozenset(sparse), self.groups)

    def like(self, before: Layout) -> Layout:
        """The same, where what has travelled early in another one does so."""
        return Layout(self.order, self.early | before.early & set(self.order) - self.sparse,
                      self.sparse, self.groups)


def first_layout(mine: Description, kinds: bytes) -> Layout:
    """For all ranks, by the order of one."""
    return Layout(tuple(outline.name for outline in mine.outlines), groups=mine.groups).after(kinds)


def together(rows: Iterable[bytes]) -> bytes:
    """The kinds that several ranks have. The rows are equally long."""
    rows = list(rows)
    whole = 0
    for row in rows:
        whole |= int.from_bytes(row, "little")
    return whole.to_bytes(len(rows[0]), "little")


def difference(ranks: Sequence[tuple[int, Description]]) -> str:
    """In words, of the first rank that does not go together with the first one. Empty: none."""
    rank, first = ranks[0]
    for other, description in ranks[1:]:
        if description.digest != first.digest:
            return _difference((rank, first), (other, description))
    return ""


def _difference(a: tuple[int, Description], b: tuple[int, Description]) -> str:
    for (rank, one), (other, two) in ((a, b), (b, a)):
        names = {outline.name for outline in two.outlines}
        for outline in one.outlines:
            if outline.name not in names:
                return (f"rank {rank} has the parameter {outline.name!r} ({outline}), rank {other} "
                        "has none of this name")
    (rank, one), (other, two) = a, b
    theirs = {outline.name: outline for outline in two.outlines}
    for outline in one.outlines:
        if outline != theirs[outline.name]:
            return (f"the parameter {outline.name!r} is {outline} on rank {rank} and "
                    f"{theirs[outline.name]} on rank {other}")
    for (what, value), (_, another) in zip(one.settings, two.settings, strict=True):
        if value != another:
            return f"{what} is {value} on rank {rank} and {another} on rank {other}"
    return (f"the groups of rank {rank} are {_shown(one)}, those of rank {other} are "
            f"{_shown(two)}")


def _shown(description: Description) -> str:
    if not description.groups_told:
        return f"{len(description.groups)}"
    return str([list(group) for group in description.groups])


def _digest(value: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest(), "little")
