# SPDX-License-Identifier: Apache-2.0
"""What DistributedOptimizer is told of its parameters: names, groups, passes, hooks."""
from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch


def named_list(optimizer: torch.optim.Optimizer,
               named: Iterable[tuple[str, torch.Tensor]] | None) -> dict[torch.Tensor, str]:
    """The optimizer's parameters in the order of its groups, with their names. ValueError when
    names are missing or double."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    if named is None:
        return {p: f"noname.{g}.{i}" for g, group in enumerate(optimizer.param_groups)
                for i, p in enumerate(group["params"])}
    pairs = list(named)
    if any(not isinstance(pair, tuple) for pair in pairs):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), "
                         "usually produced by model.named_parameters().")
    double = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if double:
        raise ValueError("Parameter names in named_parameters must be unique. Found duplicates: "
                         + ", ".join(double))
    names = {p: name for name, p in pairs}
    missing = [p for p in params if p not in names]
    if missing:
        shapes = ", ".join(str(tuple(p.shape)) for p in missing[:8])
        raise ValueError(f"named_parameters was specified, but {len(missing)} of the optimizer's "
                         f"parameters were not named. Their shapes: {shapes}")
    return {p: names[p] for p in params}


def as_groups(groups: int | Sequence[Sequence[torch.Tensor]] | None,
              names: dict[torch.Tensor, str]) -> list[list[torch.Tensor]]:
    """Which parameters are reduced together: `groups` lists of about as many each, or those that
    are told."""
    if groups is None:
        return []
    if not isinstance(groups, (list, tuple)):
        if not isinstance(groups, int) or groups < 0:
            raise ValueError("groups should be a non-negative integer or a list of list of "
                             "torch.Tensor.")
        return _split([p for p in names if p.requires_grad], groups)
    seen: set[torch.Tensor] = set()
    for group in groups:
        for p in group:
            if not isinstance(p, torch.Tensor):
                raise ValueError("groups must consist of torch.Tensor.")
            if p in seen:
                raise ValueError("A parameter can only appear once in groups.")
            if p.requires_grad and p not in names:
                raise ValueError("groups has a parameter that is none of the optimizer's.")
            seen.add(p)
    made = [[p for p in group if p.requires_grad] for group in groups]
    return [group for group in made if group]


def _split(params: list[torch.Tensor], count: int) -> list[list[torch.Tensor]]:
    count = min(count, len(params))
    if count == 0:
        return []
    least, more = divmod(len(params), count)
    made, at = [], 0
    for number in range(count):
        end = at + least + (number < more)
        made.append(params[at:end])
        at = end
    return made


def take_over(optimizer: torch.optim.Optimizer, kind: type) -> Any:
    """An instance of `kind` that shares the optimizer's groups, state and hooks. Its `step` it does
    not share: a learning rate scheduler may have put one there that belongs to the other."""
    made: Any = object.__new__(kind)
    made.__dict__.update({key: value for key, value in optimizer.__dict__.items()
                          if key != "step"})
    return made


def watch(p: torch.Tensor, owner: Any, method: Callable[[Any, torch.Tensor], Any]) -> None:
    """Calls method(owner, p) whenever backward has made p's gradient, as long as the owner lives:
    a model outlives the optimizers that it is given."""
    owner_of = weakref.ref(owner)

    def arrived(p: torch.Tensor) -> None:
        alive = owner_of()
        if alive is not None:
            method(alive, p)

    hook = p.register_post_accumulate_grad_hook(arrived)
    weakref.finalize(owner, hook.remove).atexit = False


class Passes:
    """Counts each parameter's backward passes in a step."""

    def __init__(self, per_step: int) -> None:
        self.per_step = per_step
        self._seen: dict[torch.Tensor, int] = {}

    @property
    def begun(self) -> bool:
        """Some parameter has had a pass in this step."""
        return bool(self._seen)

    def count(self, p: torch.Tensor) -> bool:
        """One more; whether it is the last one of the step. AssertionError beyond that."""
        seen = self._seen.get(p, 0) + 1
        if seen > self.per_step:
            raise AssertionError(
                "Gradients were computed more than backward_passes_per_step times before call to "
                "step(). Increase backward_passes_per_step to accumulate gradients locally.")
        self._seen[p] = seen
        return seen == self.per_step

    def restart(self) -> None:
        """The next pass is the first of its step."""
        self._seen.clear()

    def set(self, per_step: int) -> None:
        """How many make a step."""
        if per_step <= 0:
            raise ValueError("backward_passes_per_step must be > 0")
        self.per_step = per_step
        self.restart()
