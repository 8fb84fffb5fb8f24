# SPDX-License-Identifier: Apache-2.0
"""Gradients that travel as soon as backward has made them: in buckets, memory that all ranks of a
host see, where they can; else one by one, or in groups that become ready together.
"""
from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any

import torch

from ..._core import abi
from ..._core.runtime import RUNTIME
from ...buckets import Bucket
from ..operators import _CODES, collectives, dense, tensor_over
from .layout import Layout
from .reduction import Reduction

# How many tensors share a storage. A torch that has another name for it gives copies of results.
_holders: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)


class _Place:
    """A parameter's part of a bucket."""

    __slots__ = ("bucket", "index", "view", "address")

    def __init__(self, bucket: Bucket, index: int, p: torch.Tensor) -> None:
        self.bucket = bucket
        self.index = index
        self.view = tensor_over(bucket.memory(index), p.shape, p.dtype)
        self.address = self.view.data_ptr()


class _OneType:
    """The bucket of one type of elements, and its parameters' places."""

    def __init__(self, params: list[torch.Tensor], name: str, reduction: Reduction) -> None:
        self.params = params
        dtype = params[0].dtype
        self.bucket = Bucket([p.numel() for p in params], _CODES[dtype], f"{name}.{dtype}",
                             reduction.op, *reduction.scales, reduction.process_set,
                             reduction.wire or abi.COMPRESSION_NONE, compared=True)
        self.places = {id(p): _Place(self.bucket, index, p) for index, p in enumerate(params)}
        self._storages = [place.view.untyped_storage()._cdata for place in self.places.values()]
        self._holders = self._count()

    def _count(self) -> list[int]:
        return [] if _holders is None else list(map(_holders, self._storages))

    def is_held(self) -> bool:
        """The program has kept a result, or a view of it, besides in p.grad."""
        now = self._count()
        if now == self._holders:
            return False
        for p, place, holders, before in zip(self.params, self.places.values(), now,
                                             self._holders, strict=True):
            if holders != before and (p.grad is None or p.grad.data_ptr() != place.address):
                return True
        return False


class Buckets:
    """Gradients that lie in buckets, one bucket for each type of elements."""

    def __init__(self, params: Sequence[torch.Tensor], layout: Layout,
                 reduction: Reduction) -> None:
        """`params` in the order in which their gradients are likely to come."""
        self._reduction = reduction
        self._under_way = False
        self._types: list[list[torch.Tensor]] = [
            [p for p in params if p.dtype == dtype]
            for dtype in dict.fromkeys(p.dtype for p in params)]
        self._name = f"gradients.{layout.digest:x}"
        if RUNTIME.is_elastic():  # those of the epochs before may be there still
            self._name += f".{RUNTIME.epoch_now().number}"
        self._made = [_OneType(alike, self._name, reduction) for alike in self._types]
        self._places: dict[int, _Place] = {}
        self._find_places()
        self.lacking: list[torch.Tensor] = []  # started without a gradient in this step

    def _find_places(self) -> None:
        for one in self._made:
            self._places.update(one.places)

    def begin(self) -> bool:
        """Begins a step. The last step's results that the program has kept stay as they are.
        Returns whether there are other starters for that."""
        self.lacking.clear()
        held = [number for number, one in enumerate(self._made) if one.is_held()]
        for number in held:
            self._made[number] = _OneType(self._types[number], self._name, self._reduction)
            self._find_places()
        return bool(held)

    def starters(self) -> dict[int, Callable[[torch.Tensor], None]]:
        """By the ids of parameters: p.grad is there, dense. None counts as zeros. Until wait()
        returns it is hvd's."""
        return {key: partial(self._start, place) for key, place in self._places.items()}

    def _start(self, place: _Place, p: torch.Tensor) -> None:
        grad = p.grad
        if grad is None:
            place.view.zero_()
            self.lacking.append(p)
        elif grad.data_ptr() != place.address:
            place.view.copy_(grad)
            p.grad = place.view.detach()
        self._under_way = True
        place.bucket.ready(place.index)

    def wait(self) -> None:
        """All are reduced. All must have been started."""
        if not self._under_way:
            return
        self._under_way = False
        failed = None
        for one in self._made:
            try:
                one.bucket.wait()
            except RuntimeError as error:  # the others must begin their next step too
                failed = failed or error
        if failed is not None:
            raise failed

    def put(self, p: torch.Tensor) -> None:
        """p.grad is the result, of one that was started without."""
        p.grad = self._places[id(p)].view.detach()

    def own_results(self) -> None:
        """Results that are no views, where it cannot be seen whether the program keeps them."""
        if _holders is None:
            for one in self._made:
                for p in one.params:
                    if p.grad is not None:
                        p.grad = p.grad.clone()


class Singles:
    """Gradients that travel one by one, or in groups."""

    def __init__(self, reduction: Reduction) -> None:
        self._reduction = reduction
        self._ends: list[Callable[[], None]] = []  # wait for a call, and take its results
        self._results: list[tuple[torch.Tensor, torch.Tensor]] = []

    def start(self, p: torch.Tensor, name: str) -> None:
        """Reduces p.grad, dense; None counts as zeros."""
        grad = dense_gradient(p)
        tensor, ctx = self._small(grad)
        started = collectives.allreduce(tensor, tensor,
                                        self._reduction.options("allreduce", name))
        self._ends.append(lambda: self._take(p, grad, started.wait(), ctx))

    def start_group(self, params: Sequence[torch.Tensor], name: str) -> None:
        """Reduces the gradients of `params` together."""
        grads = [dense_gradient(p) for p in params]
        small = [self._small(grad) for grad in grads]
        tensors = [one[0] for one in small]
        started = collectives.grouped_allreduce(
            tensors, tensors, self._reduction.options("grouped_allreduce", name))

        def take() -> None:
            for p, grad, output, one in zip(params, grads, started.wait(), small, strict=True):
                self._take(p, grad, output, one[1])

        self._ends.append(take)

    def wait(self) -> None:
        """All that were started are reduced."""
        ends, self._ends, failed = self._ends, [], None
        for end in ends:
            try:
                end()
            except RuntimeError as error:
                failed = failed or error
        if failed is not None:
            self._results.clear()
            raise failed

    def take(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Parameters and results."""
        results, self._results = self._results, []
        return results

    def _small(self, grad: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if self._reduction.wire is not None:
            return dense(grad), None
        tensor, ctx = self._reduction.compression.compress(grad)
        return dense(tensor), ctx

    def _take(self, p: torch.Tensor, grad: torch.Tensor, output: torch.Tensor, ctx: Any) -> None:
        if self._reduction.wire is None:
            output = self._reduction.compression.decompress(output, ctx)
        if output is not grad:
            with torch.no_grad():
                grad.copy_(output)
        self._results.append((p, grad))


def dense_gradient(p: torch.Tensor) -> torch.Tensor:
    """p.grad as a dense tensor, which it becomes; new zeros when there is none."""
    if p.grad is None:
        return torch.zeros_like(p, memory_format=torch.contiguous_format).detach()
    if p.grad.is_sparse:
        p.grad = p.grad.to_dense()
    return p.grad


class EarlyGradients:
    """The gradients that a layout has travel early. `begin` a step, start each by its one of
    `starters`, `wait` for all, and `put` those that some rank has had."""

    def __init__(self, layout: Layout, params: dict[str, torch.Tensor],
                 reduction: Reduction) -> None:
        """`params` by name."""
        self._singles = Singles(reduction)
        # Backward makes the last parameters' gradients first.
        names = [name for name in reversed(layout.order) if name in layout.early]
        self.params = [params[name] for name in names]
        self._names = {id(params[name]): name for name in names}
        self._groups: list[list[torch.Tensor]] = []
        self._group_of: dict[int, int] = {}
        self._ready: list[int] = []  # members of each group
        for group in layout.groups:
            self._add_group([params[name] for name in group if name in layout.early])
        fit = [] if layout.groups or reduction.wire is None else [
            p for p in self.params if p.is_cpu and p.dtype in _CODES]
        self._buckets = Buckets(fit, layout, reduction)
        self._in_buckets = frozenset(map(id, fit))
        self._find_starters()

    def _add_group(self, params: list[torch.Tensor]) -> None:
        if params:
            self._group_of.update((id(p), len(self._groups)) for p in params)
            self._groups.append(params)
            self._ready.append(0)

    def _find_starters(self) -> None:
        # By the ids of parameters: p.grad is final, and dense; None counts as zeros. It may be
        # replaced, and is not to be touched until wait() returns.
        self.starters: dict[int, Callable[[torch.Tensor], None]] = {
            **dict.fromkeys(self._names, self._start), **self._buckets.starters()}

    def lies_in_bucket(self, p: torch.Tensor) -> bool:
        """Whether it travels in memory that the host's ranks share."""
        return id(p) in self._in_buckets

    def begin(self) -> None:
        """A step begins."""
        if self._buckets.begin():
            self._find_starters()

    def _start(self, p: torch.Tensor) -> None:
        number = self._group_of.get(id(p))
        if number is None:
            self._singles.start(p, self._names[id(p)])
            return
        self._ready[number] += 1
        members = self._groups[number]
        if self._ready[number] == len(members):
            self._ready[number] = 0
            self._singles.start_group(members, f"{self._names[id(members[0])]}.group{number}")

    def wait(self) -> None:
        """All are reduced. All must have been started."""
        try:
            self._singles.wait()
        finally:
            self._buckets.wait()

    def put(self, unused: Container[int]) -> None:
        """Each p.grad is what all have together. It stays as it is for those of which nobody has
        had any, whose ids are told."""
        for p, result in self._singles.take():
            if id(p) not in unused:
                p.grad = result
        for p in self._buckets.lacking:
            if id(p) not in unused:
                self._buckets.put(p)
        self._buckets.own_results()
