# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer: any torch optimizer, whose gradients are reduced over the ranks."""
from __future__ import annotations

import contextlib
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from .._core.compression import Compresses
from .._core.errors import HorovodInternalError, NotInitializedError
from .._core.runtime import RUNTIME
from .._torch.gradients.reduction import Reduction
from .._torch.gradients.step import Gradients
from ..basics import global_process_set, rocm_built, size
from ..process_sets import ProcessSet
from .adasum import AdasumOptimizer
from .compression import Compression
from .mpi_ops import Adasum, Average
from .parameters import BeforeOptimizer, Parameters, Passes, Watch, copied, take_over, untraced

_Groups = int | Sequence[Sequence[torch.Tensor]] | None


def _several() -> bool:
    """Whether there are other ranks, or may be."""
    return size() > 1 or RUNTIME.is_elastic()


_ALIVE: weakref.WeakSet[DistributedMixin] = weakref.WeakSet()


def _begin_epoch() -> None:
    for optimizer in list(_ALIVE):
        optimizer._begin_epoch()


def _forget() -> None:
    """All ranks have joined, and go on together: some have taken steps without the others."""
    for optimizer in list(_ALIVE):
        optimizer._forget()


RUNTIME.after_joining.append(_begin_epoch)
RUNTIME.after_join.append(_forget)


class DistributedMixin(BeforeOptimizer):
    """The methods that DistributedOptimizer adds to an optimizer's class.

    A hook on each parameter starts its reduction when backward has made its gradient; step() waits
    for all. One thread at a time, as for any optimizer.
    """

    def _begin(self, parameters: Parameters, reduction: Reduction, passes: int) -> None:
        parameters.belong_to(self)
        self._parameters = parameters
        self._parameter_names = parameters.names()
        self.process_set = reduction.process_set
        self.op = reduction.op
        self._reduction = reduction
        self._gradients = Gradients(reduction, parameters)
        self._passes = Passes(passes)
        self._synchronized = False
        self._should_synchronize = True
        self._reduces = bool(self.process_set.included()) and _several()
        self._watch = Watch(self, type(self)._coming, type(self)._arrived)
        self._look_at_parameters()
        _ALIVE.add(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> DistributedMixin:
        made, parameters = copied(self, self._parameters, memo)
        made._begin(parameters, self._reduction, self._passes.per_step)
        return made

    def _begin_epoch(self) -> None:
        """This process has joined the job anew: what was under way has ended, and no rank knows
        what the others have."""
        self._forget()
        self._should_synchronize = True

    def _forget(self) -> None:
        self._gradients.abandon()
        self._passes.restart()
        self._synchronized = False

    def _look_at_parameters(self) -> None:
        if self._reduces:
            self._watch.look(self._parameters)

    def _coming(self, p: torch.Tensor) -> None:
        # Before it is added to what may be on its way.
        self._passes.check(p)

    def _arrived(self, p: torch.Tensor) -> None:
        if self._passes.count(p):
            self._gradients.start(p)

    @property
    def backward_passes_per_step(self) -> int:
        """Backward passes whose gradients are added up here before they are reduced."""
        return self._passes.per_step

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Changes it, from the next step on."""
        self._passes.set(passes)

    @untraced
    def synchronize(self) -> None:
        """Waits until all gradients are reduced, and in p.grad: for clipping them before step().
        Starts those of parameters that had no part in backward, or whose backward failed."""
        if self._reduces:
            try:
                self._look_at_parameters()
                self._gradients.finish()
                if isinstance(self, torch.optim.SparseAdam):
                    self._make_sparse()
            except Exception:
                self._gradients.abandon()
                raise
            finally:
                self._passes.restart()
        self._synchronized = True

    def _make_sparse(self) -> None:
        """Makes gradients that have travelled dense sparse, for an optimizer that takes nothing
        else."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and not p.grad.is_sparse:
                    p.grad = p.grad.to_sparse()

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """In this scope step() does not call synchronize(), which has been called before."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    @untraced
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Waits for the gradients and takes the optimizer's step. Gradients that a closure makes
        are reduced each time it is called."""
        if self._should_synchronize and closure is None:
            if self._synchronized:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() "
                              "context after optimizer.synchronize(): all gradients are reduced "
                              "again. You may want to use optimizer.skip_synchronize().",
                              stacklevel=2)
            self.synchronize()
        self._synchronized = False
        inner = super().step
        if closure is None:
            return inner()
        return inner(self._reducing(closure))

    step.hooked = True  # type: ignore[attr-defined]  # torch wraps the inner one, once is enough

    def _reducing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def reduced() -> Any:
            loss = closure()
            if self._should_synchronize:
                self.synchronize()
                self._synchronized = False
            return loss
        return reduced

    @untraced
    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's own; refused while gradients are on their way."""
        if self._gradients.under_way or self._passes.begun:
            self._refuse_zero_grad()
        super().zero_grad(*args, **kwargs)

    def _refuse_zero_grad(self) -> None:
        if self._gradients.under_way:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before "
                "optimizer.step() or optimizer.synchronize(). The gradients are on their way to "
                "other ranks: call one of these first.")
        self._passes.restart()  # what was added up is thrown away

    @untraced
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As the optimizer's own; the new parameters' gradients are reduced too."""
        super().add_param_group(param_group)
        if hasattr(self, "_parameters"):
            self._parameter_names = self._parameters.names()
            self._look_at_parameters()

    @untraced
    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """As the optimizer's own. A step that has begun is ended before, with the other ranks, but
        for the optimizer's part in it; where the job is broken it is given up."""
        if self._gradients.under_way:
            with contextlib.suppress(HorovodInternalError, NotInitializedError):
                self.synchronize()
        self._forget()
        self._should_synchronize = True
        super().load_state_dict(*args, **kwargs)


if TYPE_CHECKING:
    class ReducingOptimizer(DistributedMixin):
        """The type of what DistributedOptimizer returns, to type checkers. While the program runs
        it is of the class of the optimizer that was given."""


def _check_scale(factor: float, op: int) -> None:
    if factor == 1.0:
        return
    if rocm_built():
        raise ValueError("gradient_predivide_factor not supported yet with ROCm")
    if op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")


def _groups_asked(num_groups: int, groups: _Groups) -> _Groups:
    if num_groups == 0:
        return groups
    warnings.warn("Parameter `num_groups` has been replaced by `groups`.", DeprecationWarning,
                  stacklevel=3)
    return num_groups if groups is None else groups


def DistributedOptimizer(  # noqa: N802  (Horovod's name)
        optimizer: torch.optim.Optimizer,
        named_parameters: Iterable[tuple[str, torch.Tensor]] | None = None,
        compression: Compresses[torch.Tensor] = Compression.none,
        backward_passes_per_step: int = 1, op: int = Average,
        gradient_predivide_factor: float = 1.0, num_groups: int = 0,
        groups: _Groups = None,
        sparse_as_dense: bool = False,
        process_set: ProcessSet = global_process_set) -> ReducingOptimizer:
    """The optimizer, with gradients reduced over the ranks before each step.

    The result is an instance of the optimizer's own class; it shares its groups and its state.
    `named_parameters`: model.named_parameters(); the names tell which gradients of different ranks
    belong together. `backward_passes_per_step`: gradients of so many passes are added up first.
    `gradient_predivide_factor` f: gradients are divided by f before they are summed, and multiplied
    by f/size after. `groups`: a number of, or lists of, parameters that are reduced together.
    `sparse_as_dense`: sparse gradients are made dense. With op=Adasum each rank takes its own step,
    and what the steps changed is combined.

    ValueError for arguments that make no sense. synchronize(), skip_synchronize() and
    set_backward_passes_per_step() are added to the optimizer.
    """
    if isinstance(optimizer, (DistributedMixin, AdasumOptimizer)):
        raise ValueError("this optimizer is an hvd.DistributedOptimizer already, which reduces its "
                         "gradients; wrap the plain one, once")
    _check_scale(gradient_predivide_factor, op)
    groups = _groups_asked(num_groups, groups)
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be > 0")
    if process_set.process_set_id is None:
        raise ValueError(f"{process_set} is not registered: see hvd.add_process_set")
    alone = not _several()  # NotInitializedError, a ValueError, before init()
    parameters = Parameters(optimizer, named_parameters)
    reduction = Reduction(op, gradient_predivide_factor, compression, sparse_as_dense, process_set)
    if op == Adasum and not alone:
        if groups:
            raise ValueError("groups have no meaning with op=Adasum: each parameter is combined "
                             "by itself")
        return _made(optimizer, AdasumOptimizer, parameters, reduction, backward_passes_per_step)
    parameters.take_groups(groups)
    return _made(optimizer, DistributedMixin, parameters, reduction, backward_passes_per_step)


def _made(optimizer: torch.optim.Optimizer, mixin: type, parameters: Parameters,
          reduction: Reduction, passes: int) -> ReducingOptimizer:
    # Its own class comes second, so that isinstance, its repr and its schedulers go on as they did.
    kind: type[ReducingOptimizer] = type(type(optimizer).__name__, (mixin, type(optimizer)), {})
    made = take_over(optimizer, kind)
    made._begin(parameters, reduction, passes)
    return made
