# SPDX-License-Identifier: Apache-2.0
"""How the ranks of an optimizer tell one another, once a step, what gradients they have: one small
allreduce. Where they have no layout yet, or not all of them the same, they exchange what they need
for one.

One thread's steps come in the order of its program: they meet under one name, so that optimizers
that do not go together are found. In threads beside the main one they meet by what they are.
"""
from __future__ import annotations

import threading
from typing import NamedTuple

import torch

from ..._core import abi, errors
from ...basics import rank
from ...objects import allgather_object
from ...process_sets import ProcessSet
from ..operators import collectives, options
from .layout import Description, Layout, difference, first_layout, together

_DIGEST_BYTES = 8
_HEAD = 2 * _DIGEST_BYTES + 1  # a digest, its complement, and whether there is more
_LEAST_BYTES = 256  # optimizers of about as many parameters have one length: calls stay the same
_ONES = (1 << 8 * _DIGEST_BYTES) - 1


class Told(NamedTuple):
    """The gradients that all ranks have together: kinds in the order of names; and whether one has
    more, for which there is to be another round."""

    kinds: bytes
    more: bool


class _Rank(NamedTuple):
    rank: int
    description: int  # its digest
    layout: int  # its digest; 0: none
    told: Told


class Agreement:
    """That of an optimizer's ranks. `about`: a word for the optimizer. One thread at a time."""

    def __init__(self, process_set: ProcessSet) -> None:
        self.about = 0
        self._process_set = process_set
        self._bytes = bytearray()
        self._tensor = torch.empty(0, dtype=torch.uint8)

    def tell(self, digest: int, mine: Told) -> Told | None:
        """Tells `mine` and returns what all have; `digest` is the layout's, or another word for
        what all must have alike; 0: this rank has none. None when not all have the same: then they
        meet. Blocks."""
        length = max(_LEAST_BYTES, 1 << (_HEAD + len(mine.kinds) - 1).bit_length())
        if length != len(self._bytes):
            self._bytes = bytearray(length)
            self._tensor = torch.frombuffer(self._bytes, dtype=torch.uint8)
        self._bytes[:_HEAD + len(mine.kinds)] = b"".join((
            digest.to_bytes(_DIGEST_BYTES, "little"),
            (digest ^ _ONES).to_bytes(_DIGEST_BYTES, "little"), bytes((mine.more,)), mine.kinds))
        self._bytes[_HEAD + len(mine.kinds):] = bytes(length - _HEAD - len(mine.kinds))
        try:
            collectives.allreduce_now(self._tensor, self._tensor, options(
                "", self._name("step"), self._process_set, abi.BOR))
        except errors.MismatchError:  # of lengths; all ranks are told so
            return None
        first = int.from_bytes(self._bytes[:_DIGEST_BYTES], "little")
        second = int.from_bytes(self._bytes[_DIGEST_BYTES:2 * _DIGEST_BYTES], "little")
        if digest == 0 or first != digest or second != digest ^ _ONES:
            return None
        return Told(bytes(self._bytes[_HEAD:_HEAD + len(mine.kinds)]), self._bytes[_HEAD - 1] != 0)

    def meet(self, mine: Description, layout: Layout | None,
             told: Told) -> tuple[Layout, Told]:
        """A layout for all, which is `layout` where some rank has one, and what all have.
        MismatchError, on all ranks, says what they have not alike. Blocks."""
        ranks: list[_Rank] = allgather_object(
            _Rank(rank(), mine.digest, layout.digest if layout is not None else 0, told),
            self._name("meeting"), self._process_set)
        if any(one.description != mine.digest for one in ranks):
            self._refuse(mine)
        kinds = together(one.told.kinds for one in ranks)
        teller = next((one for one in ranks if one.layout), ranks[0])
        if any(one.layout not in (0, teller.layout) for one in ranks):
            raise errors.make(abi.ERR_MISMATCH, "", "the ranks' optimizers are in different steps: "
                              "some have reduced gradients without the others")
        if layout is None and teller.rank == rank():
            layout = first_layout(mine, kinds)
        layouts: list[Layout | None] = allgather_object(
            layout if teller.rank == rank() else None, self._name("layout"), self._process_set)
        agreed = next(one for one in layouts if one is not None)
        return agreed, Told(kinds, any(one.told.more for one in ranks))

    def _refuse(self, mine: Description) -> None:
        descriptions = allgather_object((rank(), mine), self._name("descriptions"),
                                        self._process_set)
        raise errors.make(abi.ERR_MISMATCH, "", "the optimizers of the ranks do not go together: "
                          + difference(descriptions) + ". Each rank must give DistributedOptimizer "
                          "the same parameters, by the same names")

    def _name(self, what: str) -> str:
        if threading.current_thread() is threading.main_thread():
            return f"hvd.optimizer.{what}"
        return f"hvd.optimizer.{what}.{self.about:x}"
