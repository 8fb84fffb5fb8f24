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

from .._torch.gradients.agreement import Agreement, Told
from .._torch.gradients.layout import DENSE, NONE
from .._torch.gradients.reduction import Reduction
from .._torch.gradients.step import describe
from .._torch.operators import collectives
from .mpi_ops import Adasum
from .parameters import BeforeOptimizer, Parameters, Passes, Watch, copied, untraced


class AdasumOptimizer(BeforeOptimizer):
    """The methods that DistributedOptimizer(op=Adasum) adds to an optimizer's class."""

    def _begin(self, parameters: Parameters, reduction: Reduction, passes: int) -> None:
        parameters.belong_to(self)
        self._parameters = parameters
        self._parameter_names = parameters.names()
        self.process_set = reduction.process_set
        self.op = Adasum
        self._reduction = reduction
        self._passes = Passes(passes)
        self._agreement = Agreement(reduction.process_set)
        self._watch = Watch(self, type(self)._coming, type(self)._arrived)
        self._watch.look(parameters)

    def _coming(self, p: torch.Tensor) -> None:
        self._passes.check(p)

    def _arrived(self, p: torch.Tensor) -> None:
        self._passes.count(p)

    def __deepcopy__(self, memo: dict[int, Any]) -> AdasumOptimizer:
        made, parameters = copied(self, self._parameters, memo)
        made._begin(parameters, self._reduction, self._passes.per_step)
        return made

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

    @untraced
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes the optimizer's own step, and replaces what it changed by all ranks' combined. A
        parameter for which no rank has a gradient stays as it is."""
        inner = super().step
        if not self.process_set.included():
            return inner(closure)
        names = self._parameters.names()
        self._watch.look(self._parameters)
        starts = {name: p.detach().clone(memory_format=torch.contiguous_format)
                  for p, name in names.items() if p.requires_grad or p.grad is not None}
        loss = inner(closure)
        self._passes.restart()
        used = self._used(names)
        with torch.no_grad():
            self._combine({name: p for p, name in names.items() if name in used}, starts)
        return loss

    step.hooked = True  # type: ignore[attr-defined]  # torch wraps the inner one, once is enough

    def _used(self, names: dict[torch.Tensor, str]) -> set[str]:
        """The names of parameters for which some rank has a gradient."""
        description = describe(names, self._parameters, self._reduction)
        self._agreement.about = description.digest
        params = {name: p for p, name in names.items()}
        order = sorted(params)
        mine = Told(bytes(NONE if params[name].grad is None else DENSE for name in order), False)
        told = self._agreement.tell(description.digest or 1, mine)
        if told is None:
            _, told = self._agreement.meet(description, None, mine)
        return {name for name, kind in zip(order, told.kinds, strict=True) if kind != NONE}

    def _combine(self, params: dict[str, torch.Tensor], starts: dict[str, torch.Tensor]) -> None:
        under_way = []
        for name, p in params.items():
            now = p.detach().contiguous()
            start = starts.get(name)
            delta = now - start if start is not None else torch.zeros_like(now)
            small, ctx = ((delta, None) if self._reduction.wire is not None
                          else self._reduction.compression.compress(delta))
            options = self._reduction.options("allreduce", name)
            under_way.append((collectives.allreduce(small, small, options), p,
                              start if start is not None else now, ctx))
        for handle, p, start, ctx in under_way:
            delta = handle.wait()
            if self._reduction.wire is None:
                delta = self._reduction.compression.decompress(delta, ctx)
            p.copy_(start + delta)

    @untraced
    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's own."""
        self._passes.restart()
        super().zero_grad(*args, **kwargs)
