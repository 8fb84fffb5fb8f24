# SPDX-License-Identifier: Apache-2.0
"""The optimizer with op=Adasum: each rank takes its own step, and the steps are combined.

Adasum combines what the steps change (start − end), not gradients: so it sees what the optimizer
makes of them, momentum and all.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .._torch.operators import collectives
from .gradients import Reduction
from .mpi_ops import Adasum
from .parameters import Passes, watch


class AdasumOptimizer:
    """What DistributedOptimizer(op=Adasum) adds to an optimizer's class."""

    def _begin(self, names: dict[torch.Tensor, str], reduction: Reduction, passes: int) -> None:
        self._parameter_names = names
        self.process_set = reduction.process_set
        self.op = Adasum
        self._reduction = reduction
        self._passes = Passes(passes)
        for p in names:
            if p.requires_grad:
                watch(p, self, lambda self, p: self._passes.count(p))

    @property
    def backward_passes_per_step(self) -> int:
        """Backward passes whose gradients are added up before a step."""
        return self._passes.per_step

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Changes it, from the next step on."""
        self._passes.set(passes)

    def synchronize(self) -> None:
        """Nothing: gradients stay this rank's own; step() combines what they lead to."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Refused: there is nothing to skip."""
        raise AssertionError("Skipping synchronization is not supported when using Adasum "
                             "optimizer.")
        yield

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes the optimizer's own step, and replaces what it changed by all ranks' combined."""
        params = [p for p in self._parameter_names if p.requires_grad]
        for p in params:
            if p.grad is None:  # other ranks may have one
                p.grad = torch.zeros_like(p)
        starts = [p.detach().clone(memory_format=torch.contiguous_format) for p in params]
        if not self.process_set.included():
            return super().step(closure)  # type: ignore[misc]
        loss = super().step(closure)  # type: ignore[misc]
        self._passes.restart()
        with torch.no_grad():
            self._combine(params, starts)
        return loss

    step.hooked = True  # type: ignore[attr-defined]  # torch wraps the inner one, once is enough

    def _combine(self, params: list[torch.Tensor], starts: list[torch.Tensor]) -> None:
        under_way = []
        for p, start in zip(params, starts, strict=True):
            delta = p.detach().contiguous() - start
            small, ctx = ((delta, None) if self._reduction.wire is not None
                          else self._reduction.compression.compress(delta))
            options = self._reduction.options("allreduce", self._parameter_names[p])
            under_way.append((collectives.allreduce(small, small, options), p, start, ctx))
        for handle, p, start, ctx in under_way:
            delta = handle.wait()
            if self._reduction.wire is None:
                delta = self._reduction.compression.decompress(delta, ctx)
            p.copy_(start + delta)

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's own."""
        self._passes.restart()
        super().zero_grad(*args, **kwargs)  # type: ignore[misc]
