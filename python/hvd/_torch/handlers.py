# SPDX-License-Identifier: Apache-2.0
"""The parts that an elastic state keeps of a model, an optimizer, a sampler; and how programs add
their own types. Each is a part of the state (hvd._state.Part)."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import torch

from .._core import abi
from .._elastic.box import Entry
from . import memory
from .sampler import ElasticSampler


class StateHandler:
    """The base of programs' own handlers, as Horovod's: for types that get_handler_registry() is
    told of. `value` is the attribute."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def save(self) -> None:
        """Keeps a copy."""
        raise NotImplementedError

    def restore(self) -> None:
        """Goes back to what was saved last."""
        raise NotImplementedError

    def sync(self) -> None:
        """All ranks get rank 0's."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """The attribute has been set."""
        self.value = value
        self.save()


class HasState(Protocol):
    """A scheduler, a gradient scaler, …"""

    def state_dict(self) -> dict[str, Any]:
        """What it goes on with."""

    def load_state_dict(self, state_dict: dict[str, Any], /) -> object:
        """Goes on with that."""


V = TypeVar("V", bound=HasState)


class KeptHandler(Generic[V]):
    """The base of hvd's own: a part whose tensors lie in the hosts' memory."""

    def __init__(self, value: V) -> None:
        self.value = value

    def set_value(self, value: V) -> None:
        """The attribute has been set: the next commit has it."""
        self.value = value

    def _tensors(self) -> Iterator[tuple[str, torch.Tensor, int]]:
        """Name, tensor, kind."""
        yield from ()

    def entries(self) -> dict[str, Entry]:
        return {name: memory.entry_of(tensor, kind) for name, tensor, kind in self._tensors()
                if tensor.numel()}

    def outline(self) -> object:
        return self.value.state_dict()

    def load(self, outline: Any, held: dict[str, abi.TensorStruct]) -> None:
        self.value.load_state_dict(outline)

    def level(self, root: int, all_of_it: bool) -> None:
        memory.broadcast((tensor for _, tensor, kind in self._tensors()
                          if all_of_it or kind == abi.STATE_FIRST), root)

    def meet(self) -> None:
        """Each rank has the same."""


class StateDictHandler(KeptHandler[HasState]):
    """Keeps an object that has a small state_dict(): schedulers, gradient scalers."""


class SamplerStateHandler(KeptHandler[ElasticSampler]):
    """Keeps an ElasticSampler."""

    def meet(self) -> None:
        self.value.meet()


class ModelStateHandler(KeptHandler[torch.nn.Module]):
    """Keeps a module: parameters, which are the same on all ranks, and buffers, which may not
    be."""

    def _tensors(self) -> Iterator[tuple[str, torch.Tensor, int]]:
        for name, p in self.value.named_parameters():
            if torch.nn.parameter.is_lazy(p):
                raise ValueError(f"parameter {name} of the model has no shape yet: run a batch "
                                 "through it before it is put into a state")
            yield name, p, abi.STATE_REPLICATED
        for prefix, module in self.value.named_modules():
            for name, buffer in module._buffers.items():
                if buffer is not None and name not in module._non_persistent_buffers_set:
                    yield f"{prefix}.{name}" if prefix else name, buffer, abi.STATE_FIRST

    def outline(self) -> dict[str, Any]:
        own = torch.nn.Module.get_extra_state
        return {name: module.get_extra_state() for name, module in self.value.named_modules()
                if type(module).get_extra_state is not own}

    def load(self, outline: dict[str, Any], held: dict[str, abi.TensorStruct]) -> None:
        modules = dict(self.value.named_modules())
        for name, extra in outline.items():
            modules[name].set_extra_state(extra)


class OptimizerStateHandler(KeptHandler[torch.optim.Optimizer]):
    """Keeps an optimizer: its groups' options and its state, in place."""

    def _params(self) -> dict[str, torch.Tensor]:
        """By the names that a DistributedOptimizer has for them, so that ranks may list them in
        another order; else by their numbers."""
        own = getattr(self.value, "_parameters", None)
        if own is not None:  # a name's slashes are none of a path's
            return {name.replace("/", "|"): p for p, name in own.names().items()}
        every = (p for group in self.value.param_groups for p in group["params"])
        return {str(number): p for number, p in enumerate(every)}

    def _whole(self) -> dict[str, Any]:
        names = {p: name for name, p in self._params().items()}
        return {
            "groups": [{key: value for key, value in group.items()
                        if key not in ("params", "param_names")}
                       for group in self.value.param_groups],
            "state": {names[p]: values for p, values in self.value.state.items() if p in names},
            "more": {p: values for p, values in self.value.state.items()
                     if not isinstance(p, torch.Tensor)}}

    def _tensors(self) -> Iterator[tuple[str, torch.Tensor, int]]:
        for path, tensor in _tensors_in(self._whole(), ""):
            yield f"{path}:{memory.outline_of(tensor)}", tensor, abi.STATE_REPLICATED

    def outline(self) -> object:
        return _outlined(self._whole())

    def load(self, outline: Any, held: dict[str, abi.TensorStruct]) -> None:
        params = self._params()
        present = dict(_tensors_in(self._whole(), ""))

        def made(path: str, wanted: memory.Outline) -> torch.Tensor:
            if wanted.fits(present.get(path)):
                return present[path]
            name = path.split("/")[2] if path.startswith("/state/") else ""
            beside = params[name].device if name in params else None
            if beside is not None and beside.type != wanted.device:
                beside = None
            tensor = wanted.empty(beside)
            whole = f"{path}:{wanted}"
            if whole in held:
                memory.fill(tensor, held[whole])
            return tensor

        whole = _filled(outline, "", made)
        # In place: schedulers hold the groups.
        for group, options in zip(self.value.param_groups, whole["groups"], strict=True):
            group.update(options)
        self.value.state.clear()
        self.value.state.update((params[name], values) for name, values in whole["state"].items())
        self.value.state.update(whole["more"])


def _tensors_in(value: object, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _tensors_in(one, f"{path}/{key}")
    elif isinstance(value, (list, tuple)):
        for index, one in enumerate(value):
            yield from _tensors_in(one, f"{path}/{index}")


def _outlined(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return memory.outline_of(value)
    if isinstance(value, dict):
        return {key: _outlined(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return _sequence_like(value, [_outlined(one) for one in value])
    return value


def _filled(value: Any, path: str, made: Callable[[str, memory.Outline], torch.Tensor]) -> Any:
    if isinstance(value, memory.Outline):
        return made(path, value)
    if isinstance(value, dict):
        return {key: _filled(one, f"{path}/{key}", made) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return _sequence_like(value, [_filled(one, f"{path}/{i}", made)
                                      for i, one in enumerate(value)])
    return value


def _sequence_like(value: Any, items: list[object]) -> object:
    """A list or tuple of the value's type, which may be a named tuple's."""
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


Handler = StateHandler | KeptHandler[Any]


class _Registry:
    """Which handler a type has: the first that fits."""

    def __init__(self) -> None:
        self.handlers: list[tuple[type, type[Handler]]] = [
            (torch.nn.Module, ModelStateHandler),
            (torch.optim.Optimizer, OptimizerStateHandler),
            (ElasticSampler, SamplerStateHandler),
            (torch.optim.lr_scheduler.LRScheduler, StateDictHandler),
            (torch.amp.GradScaler if hasattr(torch.amp, "GradScaler")  # torch 2.3
             else torch.cuda.amp.GradScaler, StateDictHandler)]


_REGISTRY = _Registry()


def get_handler_registry() -> list[tuple[type, type[Handler]]]:
    """(type, class of its handler); the first that fits an attribute counts."""
    return _REGISTRY.handlers


def set_handler_registry(registry: list[tuple[type, type[Handler]]]) -> None:
    """Replaces it, for the states that are made from now on."""
    _REGISTRY.handlers = registry


def handler_of(value: object) -> Handler | None:
    """A handler for it, or None."""
    for kind, handler in _REGISTRY.handlers:
        if isinstance(value, kind):
            return handler(value)
    return None
