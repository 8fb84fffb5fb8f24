# SPDX-License-Identifier: Apache-2.0
"""Tensors as c10d gives them, as hvd wants them: flat, contiguous, of a type that hvd has."""
from __future__ import annotations

from collections.abc import Sequence

import torch

from .._core import errors
from .._torch import operators

DEVICES = ("cpu", "cuda")


class Landings:
    """Tensors that are to be copied to their places when a collective is done."""

    def __init__(self) -> None:
        self._copies: list[tuple[torch.Tensor, torch.Tensor]] = []

    def add(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """`source` has target's elements, in any shape."""
        self._copies.append((target, source))

    def land(self) -> list[torch.Tensor]:
        """Copies, and lets go of the tensors. Returns those that were written."""
        copies, self._copies = self._copies, []
        with torch.no_grad():
            for target, source in copies:
                target.detach().copy_(source.view(target.shape))
        return [target for target, _ in copies]


def to_reduce(tensor: torch.Tensor, landings: Landings | None = None) -> torch.Tensor:
    """The tensor's elements in a row: its own memory, or a copy that lands in it later."""
    return _flat(tensor, landings)


def to_move(tensor: torch.Tensor, landings: Landings | None = None) -> torch.Tensor:
    """As to_reduce, for what is moved and never summed: types that hvd has not travel as bytes."""
    flat = _flat(tensor, landings)
    return flat if operators.has_type(flat) else flat.view(torch.uint8)


def _flat(tensor: torch.Tensor, landings: Landings | None) -> torch.Tensor:
    _check(tensor)
    plain = tensor.detach()
    if plain.is_conj() or plain.is_neg() or not plain.is_contiguous():
        copy = plain.resolve_conj().resolve_neg().contiguous().view(-1)
        if landings is not None:
            landings.add(tensor, copy)
        return copy
    return plain.view(-1)


def _check(tensor: torch.Tensor) -> None:
    if tensor.layout is not torch.strided:
        raise errors.invalid(f'backend "hvd" takes dense tensors only; this one is {tensor.layout}')
    if tensor.device.type not in DEVICES:
        raise errors.invalid('backend "hvd" takes tensors in host memory and on CUDA GPUs; this '
                             f"one is on {tensor.device}")


def room_for(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """A new flat tensor for all elements of the parts, which have one type and one device."""
    return torch.empty(sum(part.numel() for part in parts), dtype=_one_type(parts),
                       device=parts[0].device)


def joined(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """The parts one behind the other. No copy where they are so in memory already."""
    _one_type(parts)
    for part in parts:
        _check(part)
    whole = as_one(parts)
    if whole is not None:
        return whole
    return torch.cat([part.detach().reshape(-1) for part in parts])


def as_one(parts: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The one flat tensor whose pieces these are, in order; None when they are not."""
    first = parts[0].detach()
    storage = first.untyped_storage().data_ptr()
    offset = first.storage_offset()
    for part in parts:
        if (not part.is_contiguous() or part.storage_offset() != offset
                or part.untyped_storage().data_ptr() != storage or part.is_conj()
                or part.is_neg()):
            return None
        offset += part.numel()
    return first.as_strided((offset - first.storage_offset(),), (1,), first.storage_offset())


def _one_type(parts: Sequence[torch.Tensor]) -> torch.dtype:
    kinds = {part.dtype for part in parts}
    if len(kinds) != 1:
        raise errors.invalid("the tensors of one collective must have one type; these have "
                             f"{sorted(map(str, kinds))}")
    places = {part.device for part in parts}
    if len(places) != 1:
        raise errors.invalid("the tensors of one collective must lie on one device; these are on "
                             f"{sorted(map(str, places))}")
    return kinds.pop()


def land_parts(whole: torch.Tensor, parts: Sequence[torch.Tensor], landings: Landings) -> None:
    """When the collective is done, the parts get their elements of `whole`."""
    begin = 0
    for part in parts:
        landings.add(part, whole[begin:begin + part.numel()])
        begin += part.numel()
