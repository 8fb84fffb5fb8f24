# SPDX-License-Identifier: Apache-2.0
"""The gradients of a model on their way: each starts when backward has made it, all are waited for
at once.

Once a step the ranks tell one another which gradients they have (`agreement`). A parameter for
which no rank has one therefore keeps None, and where only some have one the others count as zeros.
The agreement also says whether all ranks have the same layout, which tells what travels early. A
rank that has none starts nothing before all have told what they have: it may be in its first step,
while others are not.

A gradient that is not in the layout's early part goes when all have told what they have: then it is
known who has a sparse gradient.
"""
from __future__ import annotations

from collections.abc import Callable, Container
from typing import Protocol

import torch

from ..._core import abi, errors
from ..sparse import SparseHandle, sparse_allreduce_async
from .agreement import Agreement, Told
from .early import EarlyGradients, Singles
from .layout import DENSE, NONE, Description, Layout, Outline, sparse_dimensions, sparse_kind
from .reduction import Reduction

_NOTHING: frozenset[int] = frozenset()
_NO_STARTERS: dict[int, Callable[[torch.Tensor], None]] = {}


class Parameters(Protocol):
    """The parameters that an optimizer has now; there may come more."""

    groups: list[list[torch.Tensor]]  # of those that are reduced together
    groups_told: bool

    def ids(self) -> tuple[int, ...]:
        """The ids of all."""

    def names(self) -> dict[torch.Tensor, str]:
        """In their order."""


class Gradients:
    """All gradients of an optimizer. `start` each that backward makes, then `finish` the step."""

    def __init__(self, reduction: Reduction, parameters: Parameters) -> None:
        self._reduction = reduction
        self._parameters = parameters
        self._agreement = Agreement(reduction.process_set)
        self._ids: tuple[int, ...] = ()  # of the parameters that the following are about
        self._description = Description(())
        self._params: dict[str, torch.Tensor] = {}
        self._in_order: list[torch.Tensor] = []  # of names
        self.abandon()

    def abandon(self) -> None:
        """Gives up what of a step is under way: it is nobody's any more, and the next step
        is as the first."""
        self._layout: Layout | None = None
        self._early: EarlyGradients | None = None
        self._starters = _NO_STARTERS  # of _early
        self._began = False
        self._started: set[int] = set()
        self._settled = b""  # kinds that have changed nothing of the layout
        self._kinds: dict[int, int] = {}  # of sparse gradients that have been made dense

    @property
    def under_way(self) -> bool:
        """Some gradient has been started, and the step is not finished."""
        return bool(self._started)

    def lies_in_bucket(self, p: torch.Tensor) -> bool:
        """Whether its gradient travels in memory that the host's ranks share."""
        return self._early is not None and self._early.lies_in_bucket(p)

    def start(self, p: torch.Tensor) -> None:
        """p.grad is final. It may be replaced, and is not to be touched until finish() returns."""
        if not self._began:
            self._begin()
        self._started.add(id(p))
        grad = p.grad
        if grad is not None and (grad.requires_grad or grad.is_sparse):
            self._check(p, grad)
        starter = self._starters.get(id(p))
        if starter is not None:
            starter(p)

    def _check(self, p: torch.Tensor, grad: torch.Tensor) -> None:
        if grad.requires_grad:
            raise AssertionError(
                "backward(create_graph=True) has made a gradient that has a graph of its own; "
                "hvd.DistributedOptimizer cannot reduce such. Make what needs the graph by "
                "torch.autograd.grad(loss, parameters, create_graph=True), and what the optimizer "
                "is to use by backward() without create_graph.")
        if id(p) in self._starters:  # it travels dense
            self._kinds[id(p)] = self._kind(grad)
            p.grad = grad.to_dense()

    def finish(self) -> None:
        """All are reduced, and in p.grad. Blocks until all ranks come."""
        if not self._began:
            self._begin()
        done: set[int] = set()
        before: Layout | None = None
        while self._round(done):
            before = self._layout
            self.abandon()
        if before is not None and self._layout is not None:
            self._follow(self._layout.like(before))
        self._began = False
        self._started.clear()
        self._kinds.clear()

    def _begin(self) -> None:
        self._began = True
        if self._layout is None:
            return
        if self._early is None:
            self._early = EarlyGradients(self._layout, self._params, self._reduction)
        self._early.begin()
        self._starters = self._early.starters

    def _describe(self) -> None:
        names = self._parameters.names()
        self._ids = self._parameters.ids()
        self._params = {name: p for p, name in names.items()}
        self._in_order = [self._params[name] for name in sorted(self._params)]
        self._description = describe(names, self._parameters, self._reduction)
        self._agreement.about = self._description.digest

    # ---- a round: what has been started, and what has come beside it ----

    def _round(self, done: set[int]) -> bool:
        """Reduces all but those whose ids are in `done`, and adds these. Whether some rank's
        optimizer has other parameters than the layout, for which there is to be another round
        without it."""
        layout, more = self._layout, self._parameters.ids() != self._ids
        if layout is None and more:
            self._describe()
        mine = Told(self._kinds_now(done), layout is not None and more)
        if layout is not None:
            self._fill(frozenset(self._started))
        told = self._agreement.tell(layout.digest if layout is not None else 0, mine)
        if told is None:
            agreed, told = self._agreement.meet(self._description, layout, mine)
            if layout is None:
                layout = self._layout = agreed
                self._early = EarlyGradients(layout, self._params, self._reduction)
                self._starters = self._early.starters
                self._fill(())
        assert layout is not None and self._early is not None
        self._early.wait()
        unused = {id(self._in_order[at]) for at, kind in enumerate(told.kinds) if kind == NONE
                  } if NONE in told.kinds else _NOTHING
        self._early.put(unused)
        self._reduce_late(told.kinds)
        if told.more:
            done.update(id(p) for p in self._in_order if id(p) not in unused)
        if told.kinds != self._settled:
            self._settled = told.kinds
            self._follow(layout.after(told.kinds))
        return told.more

    def _follow(self, layout: Layout) -> None:
        """The next step's."""
        if layout is not self._layout:
            self._layout, self._early, self._settled = layout, None, b""
            self._starters = _NO_STARTERS

    def _kind(self, grad: torch.Tensor) -> int:
        if not grad.is_sparse or self._reduction.sparse_as_dense:
            return sparse_kind(0)
        return sparse_kind(grad.sparse_dim())

    def _kinds_now(self, done: set[int]) -> bytes:
        kinds = bytearray(len(self._in_order))
        for at, p in enumerate(self._in_order):
            grad = p.grad
            if grad is not None:
                kinds[at] = self._kind(grad) if grad.is_sparse else DENSE
        if self._kinds or done:
            for at, p in enumerate(self._in_order):
                kinds[at] = NONE if id(p) in done else self._kinds.get(id(p), kinds[at])
        return bytes(kinds)

    def _fill(self, started: Container[int]) -> None:
        """Starts what is to travel early, but for those whose ids are in `started`."""
        assert self._early is not None
        for p in self._early.params:
            if id(p) not in started:
                self.start(p)

    def _reduce_late(self, all_kinds: bytes) -> None:
        assert self._layout is not None
        kinds = {name: all_kinds[at] for at, name in self._layout.late if all_kinds[at] != NONE}
        if not kinds:
            return
        sparse = [name for name, kind in kinds.items() if sparse_dimensions(kind)]
        if sparse and self._reduction.op not in (abi.AVERAGE, abi.SUM):
            raise errors.unsupported("sparse gradients can be averaged and summed only; "
                                     "DistributedOptimizer(sparse_as_dense=True) takes others")
        singles = Singles(self._reduction)
        for name, kind in kinds.items():
            if not sparse_dimensions(kind):
                singles.start(self._params[name], name)
        handles = [(self._params[name], self._start_sparse(name, sparse_dimensions(kinds[name])))
                   for name in sparse]
        singles.wait()
        for p, result in singles.take():
            p.grad = result
        for p, handle in handles:
            p.grad = handle.wait()

    def _start_sparse(self, name: str, dimensions: int) -> SparseHandle:
        p = self._params[name]
        grad = p.grad if p.grad is not None else _no_rows(p, dimensions)
        return sparse_allreduce_async(grad, name, self._reduction.op,
                                              self._reduction.process_set)


def _no_rows(p: torch.Tensor, dimensions: int) -> torch.Tensor:
    return torch.sparse_coo_tensor(
        torch.empty((dimensions, 0), dtype=torch.int64, device=p.device),
        torch.empty((0, *p.shape[dimensions:]), dtype=p.dtype, device=p.device), p.shape,
        check_invariants=False)


def describe(names: dict[torch.Tensor, str], parameters: Parameters,
             reduction: Reduction) -> Description:
    """Describes what the other ranks must have alike."""
    outlines = tuple(
        Outline(name, tuple(p.shape), str(p.dtype).removeprefix("torch."), p.device.type)
        for p, name in names.items())
    groups = (tuple(names[p] for p in group if p in names) for group in parameters.groups)
    return Description(outlines, tuple(group for group in groups if group),
                       parameters.groups_told, reduction.settings())
