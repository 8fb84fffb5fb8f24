# SPDX-License-Identifier: Apache-2.0
"""Making all ranks begin alike: parameters, optimizer states, objects."""
from __future__ import annotations

import io
import pickle
from collections.abc import Iterable
from typing import Any

import torch

from .._core import errors
from .._torch.operators import _CODES, dense
from ..basics import rank
from ..objects import allgather_object, broadcast_bytes, broadcast_object
from .mpi_ops import broadcast_async_

__all__ = ["allgather_object", "broadcast_object", "broadcast_optimizer_state",
           "broadcast_parameters"]


def _named(params: Any) -> list[tuple[str | None, Any]]:
    if isinstance(params, dict):
        return sorted(params.items())
    if isinstance(params, Iterable) and not isinstance(params, (torch.Tensor, str)):
        return [p if isinstance(p, tuple) else (None, p) for p in params]
    raise ValueError(f"invalid params of type: {type(params)}")


def broadcast_parameters(params: Any, root_rank: int) -> None:
    """Copies parameters from `root_rank` to all, in place. `params`: a model's state_dict(), its
    named_parameters(), or a list of tensors. What is no tensor (a module's extra state) is refused;
    broadcast_object is for that."""
    named = _named(params)
    for name, p in named:
        if not isinstance(p, torch.Tensor):
            raise ValueError(f"invalid params: {name!r} is no tensor but a {type(p).__name__}")
    under_way = []
    for name, p in named:
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

    def persistent_id(self, obj: Any) -> Any:
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


def _broadcast_with_tensors(obj: Any, root_rank: int) -> Any:
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
    state, in place. The parameters must be the same ones in the same order. `model`, for which
    Horovod asks in case the state is empty, is not needed for that."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast torch.optim.LBFGS state")
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    groups = [{key: value for key, value in group.items() if key != "params"}
              for group in optimizer.param_groups]
    numbers = {id(p): number for number, p in enumerate(_parameters(optimizer))}
    state = {numbers[id(p)]: values for p, values in optimizer.state.items() if id(p) in numbers}
    theirs, values = _broadcast_with_tensors(
        ([len(group["params"]) for group in optimizer.param_groups], (groups, state)), root_rank)
    counts = [len(group["params"]) for group in optimizer.param_groups]
    if theirs != counts:
        raise errors.invalid(f"rank {root_rank}'s optimizer has groups of {theirs} parameters, "
                             f"this rank's of {counts}")
    if rank() != root_rank:
        _take_state(optimizer, *values)


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _take_state(optimizer: torch.optim.Optimizer, groups: list[dict[str, Any]],
                state: dict[int, Any]) -> None:
    # In place: learning rate schedulers hold the groups.
    for group, options in zip(optimizer.param_groups, groups, strict=True):
        group.update(options)
    for number, p in enumerate(_parameters(optimizer)):
        optimizer.state.pop(p, None)
        if number in state:
            optimizer.state[p] = _beside(p, state[number])


def _beside(p: torch.Tensor, values: Any) -> Any:
    """A parameter's state, whose tensors on a GPU are to lie on the parameter's."""
    if isinstance(values, torch.Tensor) and values.device.type == p.device.type:
        return values.to(p.device)
    if isinstance(values, dict):
        return {key: _beside(p, value) for key, value in values.items()}
    return values
