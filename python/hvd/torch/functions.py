# SPDX-License-Identifier: Apache-2.0
"""Making all ranks begin alike: parameters, optimizer states, objects."""
from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import torch

from .._core import errors
from .._torch.operators import _CODES, dense
from ..basics import rank
from ..objects import allgather_object, broadcast_bytes, broadcast_object
from .mpi_ops import broadcast_async_
from .parameters import names_of_groups

__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state",
           "broadcast_parameters"]

T = TypeVar("T")
Params = Mapping[str, Any] | Iterable[tuple[str, torch.Tensor]] | Iterable[torch.Tensor]


def _named(params: Params) -> list[tuple[str | None, object]]:
    if isinstance(params, dict):
        return [*sorted(params.items())]
    if isinstance(params, Iterable) and not isinstance(params, (torch.Tensor, str)):
        return [p if isinstance(p, tuple) else (None, p) for p in params]
    raise ValueError(f"invalid params of type: {type(params)}")


def broadcast_parameters(params: Params, root_rank: int) -> None:
    """Copies parameters from `root_rank` to all, in place. `params`: a model's state_dict(), its
    named_parameters(), or a list of tensors. An entry that is no tensor (a module's extra state) is
    refused; broadcast_object is for that."""
    named = _named(params)
    for name, p in named:
        if not isinstance(p, torch.Tensor):
            raise ValueError(f"invalid params: {name!r} is no tensor but a {type(p).__name__}")
    under_way = []
    for name, p in named:
        assert isinstance(p, torch.Tensor)
        flat = dense(p.detach())
        under_way.append((p, flat, broadcast_async_(flat, root_rank, name)))
    with torch.no_grad():
        for p, flat, handle in under_way:
            handle.wait()
            if flat.data_ptr() != p.data_ptr():
                p.copy_(flat)


class _Outline(pickle.Pickler):
    """Pickles an object without its tensors' contents: these are collected in `tensors`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.tensors: list[torch.Tensor] = []

    def persistent_id(self, obj: object) -> tuple[tuple[int, ...], torch.dtype, str] | None:
        if not isinstance(obj, torch.Tensor) or obj.layout != torch.strided or (
                obj.dtype not in _CODES):
            return None
        self.tensors.append(obj)
        return tuple(obj.shape), obj.dtype, obj.device.type


class _FromOutline(pickle.Unpickler):
    """Makes the object with new tensors, which are yet to be filled: in host memory or on this
    rank's current GPU, as they are where they come from."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.tensors: list[torch.Tensor] = []

    def persistent_load(self, pid: Any) -> torch.Tensor:
        self.tensors.append(torch.empty(pid[0], dtype=pid[1], device=pid[2]))
        return self.tensors[-1]


def _broadcast_with_tensors(obj: T, root_rank: int) -> T:
    """As broadcast_object; tensors inside travel as tensors."""
    outline = b""
    if rank() == root_rank:
        file = io.BytesIO()
        pickler = _Outline(file)
        pickler.dump(obj)
        outline, tensors = file.getvalue(), pickler.tensors
    outline = broadcast_bytes(outline, root_rank, None)
    if rank() != root_rank:
        unpickler = _FromOutline(io.BytesIO(outline))
        obj, tensors = unpickler.load(), unpickler.tensors
    flat = [dense(tensor.detach()) for tensor in tensors]
    for handle in [broadcast_async_(tensor, root_rank) for tensor in flat]:
        handle.wait()
    return obj


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int,
                              model: torch.nn.Module | None = None) -> None:
    """Gives all ranks the optimizer of `root_rank`: its groups' options (learning rate, …) and its
    state, in place. Each parameter gets what the one of its name has: a DistributedOptimizer's
    names, else those in `model`, else those that the optimizer was made with. Without any it is the
    order that counts. InvalidError when the parameters are others."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    mine = _Places(optimizer, model)
    groups = [{key: value for key, value in group.items() if key not in _OWN}
              for group in optimizer.param_groups]
    keys = {id(p): key for key, p in mine.params.items()}
    state = {keys[id(p)]: values for p, values in optimizer.state.items() if id(p) in keys}
    theirs, values = _broadcast_with_tensors((mine.outline, (groups, state)), root_rank)
    mine.check(theirs, root_rank)
    if rank() != root_rank:
        _take_state(optimizer, mine.params, *values)


_OWN = ("params", "param_names")  # of a group, each rank's


class _Places:
    """An optimizer's parameters, by name where they have one and else by place."""

    def __init__(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module | None) -> None:
        named: dict[torch.Tensor, str] = {}
        if model is not None:
            named.update((p, name) for name, p in model.named_parameters())
        if hasattr(optimizer, "_parameters"):  # a DistributedOptimizer has its own
            named = optimizer._parameters.names()
        elif model is None:
            named = names_of_groups(optimizer.param_groups)
        self.params = {
            named.get(p, f"noname.{g}.{i}"): p for g, group in enumerate(optimizer.param_groups)
            for i, p in enumerate(group["params"])}
        of = {p: name for name, p in self.params.items()}
        self.outline = [{of[p]: tuple(p.shape) for p in group["params"]}
                        for group in optimizer.param_groups]

    def check(self, theirs: list[dict[str, tuple[int, ...]]], root: int) -> None:
        """InvalidError when `root`'s optimizer is another one."""
        if theirs == self.outline:
            return
        counts, others = ([len(group) for group in one] for one in (self.outline, theirs))
        if counts != others:
            raise errors.invalid(f"rank {root}'s optimizer has groups of {others} parameters, "
                                 f"this rank's of {counts}")
        for group, other in zip(self.outline, theirs, strict=True):
            for name, shape in group.items():
                if other.get(name) != shape:
                    has = f"has it as {list(other[name])}" if name in other else "has none there"
                    raise errors.invalid(f"this rank's optimizer has the parameter {name!r} of "
                                         f"shape {list(shape)}; rank {root}'s {has}")


def _take_state(optimizer: torch.optim.Optimizer, params: dict[str, torch.Tensor],
                groups: list[dict[str, Any]], state: dict[str, Any]) -> None:
    # In place: learning rate schedulers hold the groups.
    for group, options in zip(optimizer.param_groups, groups, strict=True):
        group.update(options)
    for name, p in params.items():
        optimizer.state.pop(p, None)
        if name in state:
            optimizer.state[p] = _beside(p, state[name])


def _beside(p: torch.Tensor, values: object) -> object:
    """A parameter's state, whose tensors on a GPU are to lie on the parameter's."""
    if isinstance(values, torch.Tensor) and values.device.type == p.device.type:
        return values.to(p.device)
    if isinstance(values, dict):
        return {key: _beside(p, value) for key, value in values.items()}
    return values
