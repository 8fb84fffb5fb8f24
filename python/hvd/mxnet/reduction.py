# SPDX-License-Identifier: Apache-2.0
"""How gradients are reduced: what DistributedOptimizer and DistributedTrainer have in common."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from .._core import abi
from .._core.compression import Compresses, wire_of
from .._names import shown
from ..process_sets import ProcessSet
from . import engine
from .compression import Compression
from .engine import Asked, NDArray


class _Part(NamedTuple):
    """Gradients that travel together."""

    names: list[str]
    contents: str
    priority: int


@dataclasses.dataclass(frozen=True, eq=False)
class Reduction:
    """`predivide` f: gradients are divided by f before they are summed."""

    op: int
    process_set: ProcessSet
    compression: Compresses[NDArray] = Compression.none
    predivide: float = 1.0
    num_groups: int = 0

    def takes_part(self) -> bool:
        """Whether there are other ranks whose gradients count here."""
        return (self.process_set.size() or 1) > 1 and bool(self.process_set.included())

    def reduce(self, names: Sequence[str], gradients: Sequence[NDArray],
               contents: Sequence[str] = ()) -> None:
        """Reduces in place, one by one or in `num_groups` groups. Gradients that come first are
        begun first where MXNet's engine may begin several. `contents`: what they are, by which the
        ranks see whether theirs belong together."""
        if not self.takes_part():
            return
        if self.num_groups > 0:
            parts = _parts(len(names), self.num_groups)
        else:
            parts = [range(i, i + 1) for i in range(len(names))]
        for number, part in enumerate(parts):
            words = shown([contents[i] for i in part] if contents else ())
            self._reduce_together(_Part([names[i] for i in part], words, -number),
                                  [gradients[i] for i in part])

    def _reduce_together(self, part: _Part, gradients: list[NDArray]) -> None:
        names = part.names
        name = names[0] if len(names) == 1 else f"{names[0]}:{names[-1]}"
        wire = wire_of(self.compression)
        small = ([(gradient, None) for gradient in gradients] if wire is not None
                 else [self.compression.compress(gradient) for gradient in gradients])
        average = self.op == abi.AVERAGE
        engine.in_place(Asked(
            "allreduce", name, self.process_set, part.priority, group=len(names) > 1, op=self.op,
            contents=part.contents,
            prescale=1.0 / self.predivide, postscale=self.predivide if average else 1.0,
            compression=wire or abi.COMPRESSION_NONE), [tensor for tensor, _ in small])
        if wire is None:
            for gradient, (tensor, context) in zip(gradients, small, strict=True):
                gradient[:] = self.compression.decompress(tensor, context)


def _parts(count: int, parts: int) -> list[range]:
    """`count` numbers in so many ranges of about equal length; empty ones are left out."""
    cuts = [part * count // parts for part in range(parts + 1)]
    return [range(a, b) for a, b in zip(cuts, cuts[1:], strict=False) if b > a]
