# SPDX-License-Identifier: Apache-2.0
"""The facts that DistributedOptimizer is told of its parameters: names, groups, passes, hooks."""
from __future__ import annotations

import copy
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import torch

F = TypeVar("F", bound=Callable[..., object])
Opt = TypeVar("Opt", bound=torch.optim.Optimizer)
W = TypeVar("W")

# The base of classes that are put before an optimizer's own class.
if TYPE_CHECKING:
    from torch.autograd.graph import Node
    from torch.utils.hooks import RemovableHandle

    BeforeOptimizer = torch.optim.Optimizer
else:
    BeforeOptimizer = object


def untraced(function: F) -> F:
    """The function, which torch.compile leaves as it is where a compiled program comes to it, with
    all that it calls: as torch does with parts of its own optimizers."""
    return cast(F, torch._disable_dynamo(function))  # type: ignore[attr-defined]


class Parameters:
    """An optimizer's parameters, whatever its groups are now, and their names."""

    def __init__(self, optimizer: torch.optim.Optimizer,
                 named: Iterable[tuple[str, torch.Tensor]] | None) -> None:
        """ValueError when names are missing or double."""
        self.belong_to(optimizer)
        self.groups: list[list[torch.Tensor]] = []
        self.groups_told = False
        self._given = None if named is None else _checked(list(named))
        self._known: dict[torch.Tensor, str] = {}
        missing = [p for p in self.all() if self._given is not None and p not in self._given]
        if missing:
            shapes = ", ".join(str(tuple(p.shape)) for p in missing[:8])
            raise ValueError(f"named_parameters was specified, but {len(missing)} of the "
                             f"optimizer's parameters were not named. Their shapes: {shapes}")
        self.names()

    def belong_to(self, optimizer: torch.optim.Optimizer) -> None:
        """They are this one's from now on, which keeps them."""
        self._optimizer = weakref.ref(optimizer)

    def _param_groups(self) -> list[dict[str, Any]]:
        optimizer = self._optimizer()
        return optimizer.param_groups if optimizer is not None else []

    def all(self) -> list[torch.Tensor]:
        """In the order of the groups."""
        return [p for group in self._param_groups() for p in group["params"]]

    def ids(self) -> tuple[int, ...]:
        """The ids of all."""
        return tuple([id(p) for group in self._param_groups() for p in group["params"]])

    def names(self) -> dict[torch.Tensor, str]:
        """The names of all, in their order. A parameter that named_parameters had not, and that
        came later, has the name that its group has for it, or that of its place."""
        given = self._given
        if given is None:
            given = names_of_groups(self._param_groups())
        names: dict[torch.Tensor, str] = {}
        for g, group in enumerate(self._param_groups()):
            for i, p in enumerate(group["params"]):
                names[p] = given.get(p) or self._known.get(p) or f"noname.{g}.{i}"
        self._known.update(names)
        return names

    def copied(self, copies: Mapping[int, torch.Tensor], optimizer: torch.optim.Optimizer
               ) -> Parameters:
        """For a deep copy of the optimizer. `copies`: by the id of what they are of."""
        made = object.__new__(Parameters)
        made.belong_to(optimizer)
        made.groups = [[copies[id(p)] for p in group if id(p) in copies] for group in self.groups]
        made.groups_told = self.groups_told
        made._known = {copies[id(p)]: name for p, name in self._known.items() if id(p) in copies}
        made._given = None if self._given is None else {
            copies[id(p)]: name for p, name in self._given.items() if id(p) in copies}
        return made

    def take_groups(self, groups: int | Sequence[Sequence[torch.Tensor]] | None) -> None:
        """Takes what DistributedOptimizer is told of `groups`."""
        self.groups = as_groups(groups, self.names())
        self.groups_told = isinstance(groups, (list, tuple))


def _checked(pairs: list[tuple[str, torch.Tensor]]) -> dict[torch.Tensor, str]:
    if any(not isinstance(pair, tuple) for pair in pairs):
        raise ValueError("named_parameters should be a sequence of tuples (name, parameter), "
                         "usually produced by model.named_parameters().")
    double = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if double:
        raise ValueError("Parameter names in named_parameters must be unique. Found duplicates: "
                         + ", ".join(double))
    return {p: name for name, p in pairs}


def names_of_groups(groups: list[dict[str, Any]]) -> dict[torch.Tensor, str]:
    """The names with which torch.optim's optimizers are made (from torch 2.6 on), if each is one
    parameter's."""
    names = {p: name for group in groups if "param_names" in group
             for name, p in zip(group["param_names"], group["params"], strict=False)}
    return names if len(set(names.values())) == len(names) else {}


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
    # Frozen parameters are in it, too: they may thaw, and on some ranks before others.
    made = [[p for p in group if p in names] for group in groups]
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


def take_over(optimizer: torch.optim.Optimizer, kind: type[Opt]) -> Opt:
    """An instance of `kind` that shares the optimizer's groups, state and hooks. Its `step` it does
    not share: a learning rate scheduler may have put one there that belongs to the other."""
    made = object.__new__(kind)
    made.__dict__.update({key: value for key, value in optimizer.__dict__.items()
                          if key != "step"})
    return made


def copied(optimizer: Opt, parameters: Parameters, memo: dict[int, Any]
           ) -> tuple[Opt, Parameters]:
    """A deep copy of an optimizer of ours, which is yet to begin, and its parameters."""
    kind = type(optimizer)
    made = take_over(copy.deepcopy(take_over(optimizer, kind.__bases__[1]), memo), kind)
    pairs = zip(optimizer.param_groups, made.param_groups, strict=True)
    copies = {id(p): q for group, other in pairs
              for p, q in zip(group["params"], other["params"], strict=True)}
    return made, parameters.copied(copies, made)


class Watch(Generic[W]):
    """Calls methods of `owner` for parameters whenever backward makes their gradients, as long as
    the owner lives: a model outlives the optimizers that it is given."""

    def __init__(self, owner: W, coming: Callable[[W, torch.Tensor], None] | None,
                 arrived: Callable[[W, torch.Tensor], None]) -> None:
        """`coming(owner, p)` is called before a gradient is added to p.grad, and `arrived` when it
        has been."""
        self._owner = weakref.ref(owner)
        self._coming = coming
        self._arrived = arrived
        self._hooks: list[RemovableHandle] = []
        self._nodes: list[Node] = []  # which have the hooks, and which parameters do not keep
        self._watched: set[int] = set()
        self._asleep: list[torch.Tensor] = []
        self._seen: tuple[int, ...] = ()
        weakref.finalize(owner, _remove, self._hooks, self._nodes).atexit = False

    def look(self, parameters: Parameters) -> None:
        """These are to be watched, from when they require gradients on."""
        ids = parameters.ids()
        if ids != self._seen:
            known = self._watched | {id(p) for p in self._asleep}
            self._asleep += [p for p in parameters.all() if id(p) not in known]
            self._seen = ids
        if self._asleep:
            self._wake()

    def _wake(self) -> None:
        if not any(p.requires_grad for p in self._asleep):
            return
        for p in self._asleep:
            if p.requires_grad:
                self._watch(p)
        self._asleep = [p for p in self._asleep if not p.requires_grad]

    def _watch(self, p: torch.Tensor) -> None:
        owner_of, coming, arrived = self._owner, self._coming, self._arrived

        def after(p: torch.Tensor) -> None:
            owner = owner_of()
            if owner is not None:
                arrived(owner, p)

        self._watched.add(id(p))
        self._hooks.append(p.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
            untraced(after)))
        if coming is None:
            return
        parameter = weakref.ref(p)

        def before(_: object) -> None:
            owner, p = owner_of(), parameter()
            if owner is not None and p is not None:
                coming(owner, p)

        with torch.enable_grad():
            view = p.expand_as(p).grad_fn
        assert view is not None
        node = view.next_functions[0][0]
        assert node is not None
        self._nodes.append(node)
        self._hooks.append(node.register_prehook(untraced(before)))


def _remove(hooks: list[RemovableHandle], nodes: list[Node]) -> None:
    for hook in hooks:
        hook.remove()
    nodes.clear()


class Passes:
    """Counts each parameter's backward passes in a step."""

    def __init__(self, per_step: int) -> None:
        self.per_step = per_step
        self._seen: dict[int, int] = {}

    @property
    def begun(self) -> bool:
        """Some parameter has had a pass in this step."""
        return bool(self._seen)

    def check(self, p: torch.Tensor) -> None:
        """One more is to come. AssertionError when the step has had all of its passes."""
        if self._seen.get(id(p), 0) >= self.per_step:
            raise AssertionError(
                "Gradients were computed more than backward_passes_per_step times before call to "
                "step(). Increase backward_passes_per_step to accumulate gradients locally.")

    def count(self, p: torch.Tensor) -> bool:
        """One more has come; whether it is the last one of the step."""
        seen = self._seen[id(p)] = self._seen.get(id(p), 0) + 1
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
