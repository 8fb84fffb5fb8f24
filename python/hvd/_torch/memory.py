# SPDX-License-Identifier: Apache-2.0
"""Tensors of an elastic state: their memory as the box takes it, and how a new process makes those
that it lacks."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from .._core import abi, errors
from .._core.runtime import RUNTIME
from .._elastic.box import Entry
from .operators import collectives, has_type, tensor_over

_MOST_CACHED = 8192


@dataclass(frozen=True)
class Outline:
    """A tensor without its contents. `order`: its dimensions as they lie in memory, the outermost
    first; `device`: the kind of device."""

    shape: tuple[int, ...]
    order: tuple[int, ...]
    dtype: torch.dtype
    device: str

    def empty(self, device: torch.device | str | None = None) -> torch.Tensor:
        """A tensor that it tells of; on `device`, else on the current one of its kind."""
        made = torch.empty([self.shape[d] for d in self.order], dtype=self.dtype,
                           device=device or self.device)
        back = [self.order.index(d) for d in range(len(self.order))]
        return made.permute(back) if back else made

    def fits(self, tensor: object) -> bool:
        """Whether the tensor has this outline."""
        return isinstance(tensor, torch.Tensor) and outline_of(tensor) == self

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"{str(self.dtype).removeprefix('torch.')}[{shape}]"


def outline_of(tensor: torch.Tensor) -> Outline:
    """The outline of a tensor: what is known of it besides its contents."""
    return _outline(tensor.shape, tensor.stride(), tensor.dtype, tensor.device.type)


@functools.lru_cache(_MOST_CACHED)  # a state asks for each of its tensors, at each commit
def _outline(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype,
             device: str) -> Outline:
    # The strides of dimensions of length 1 say nothing, and are others in a tensor that empty() has
    # made: tensors whose numbers lie alike have one outline.
    long = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: (-strides[d], d))
    order = [d for d in range(len(shape)) if shape[d] == 1] + long
    return Outline(tuple(shape), tuple(sorted(order) if long == sorted(long) else order), dtype,
                   device)


def in_order(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous view of the same memory, of a type that hvd has. InvalidError when there is
    none."""
    flat = tensor.detach()
    if flat.layout is not torch.strided:
        raise errors.invalid("an elastic state takes dense tensors; this one is sparse")
    if not flat.is_contiguous():
        flat = flat.permute(outline_of(flat).order)
    if not flat.is_contiguous():
        raise errors.invalid(f"an elastic state cannot keep a tensor of shape "
                             f"{tuple(tensor.shape)} and strides {tensor.stride()}, whose memory "
                             "has gaps or is shared; tensor.contiguous() copies it")
    return flat if has_type(flat) else flat.view(torch.uint8)


def entry_of(tensor: torch.Tensor, kind: int) -> Entry:
    """For the box."""
    flat = in_order(tensor)
    return Entry(collectives.describe(flat, True).struct, tensor, kind)


def fill(tensor: torch.Tensor, struct: abi.TensorStruct) -> None:
    """Copies what libhvd holds into the tensor."""
    flat = in_order(tensor)
    size = flat.numel() * flat.element_size()
    if struct.device_type != abi.CPU:
        raise errors.unsupported("a held tensor on a GPU")
    buffer = (ctypes.c_char * size).from_address(struct.data)
    flat.copy_(tensor_over(buffer, flat.shape, flat.dtype))


def broadcast(tensors: Iterator[torch.Tensor], root: int) -> None:
    """All ranks call it with the same tensors: they become root's."""
    world = RUNTIME.sets.world
    options = RUNTIME.options("broadcast", None, world, root=root)
    flat = [in_order(tensor) for tensor in tensors if tensor.numel()]
    for handle in [collectives.broadcast(one, one, options) for one in flat]:
        handle.wait()
