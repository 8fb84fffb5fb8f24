"""The gradients of a model on their way: each starts when backward has made it, all are waited for
at once.

In the first step they travel one by one. Those that were dense then lie in buckets from there on:
memory that all ranks of a host see. A gradient is copied into its place as soon as it is there, and
`p.grad` becomes that place. What cannot (those on a GPU, sparse ones, groups, a compression of the
user's, parameters that came later) goes on one by one.

The first step is what makes the ranks agree on what lies in buckets without asking one another:
when it succeeds, all of them have reduced the same names in the same way.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._core import abi
from .._core.compression import wire_of
from .._torch.operators import _CODES, collectives, dense, options, tensor_over
from ..buckets import Bucket
from ..process_sets import ProcessSet
from . import mpi_ops
from .mpi_ops import Average


class Reduction:
    """How the gradients of an optimizer are reduced: op, scales, compression, process set."""

    def __init__(self, op: int, predivide: float, compression: Any, sparse_as_dense: bool,
                 process_set: ProcessSet) -> None:
        self.op = op
        # libhvd divides by the number of ranks besides.
        self.scales = (1.0 / predivide, predivide) if op == Average else (1.0, 1.0)
        self.compression = compression
        self.wire = wire_of(compression)
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set

    def options(self, kind: str, name: str) -> object:
        """Those of one gradient's, or of a group's, allreduce."""
        return options(kind, name, self.process_set, self.op, 0, *self.scales,
                       self.wire or abi.COMPRESSION_NONE)


class Buckets:
    """Gradients of parameters that lie in buckets, one bucket for each type of elements."""

    def __init__(self, params: Sequence[torch.Tensor], reduction: Reduction) -> None:
        """`params` in the order in which their gradients are likely to come."""
        self._places: dict[torch.Tensor, tuple[Bucket, int, torch.Tensor]] = {}
        self._buckets: list[Bucket] = []
        self._under_way = False
        for dtype in dict.fromkeys(p.dtype for p in params):
            alike = [p for p in params if p.dtype == dtype]
            bucket = Bucket([p.numel() for p in alike], _CODES[dtype], None, reduction.op,
                            *reduction.scales, reduction.process_set,
                            reduction.wire or abi.COMPRESSION_NONE)
            self._buckets.append(bucket)
            for index, p in enumerate(alike):
                view = tensor_over(bucket.memory(index), p.shape, dtype)
                self._places[p] = (bucket, index, view)

    def __contains__(self, p: torch.Tensor) -> bool:
        return p in self._places

    def ready(self, p: torch.Tensor) -> None:
        """p.grad is there (None means zero); until wait() returns it is hvd's."""
        bucket, index, view = self._places[p]
        grad = p.grad
        if grad is not view:
            if grad is None:
                view.zero_()
            else:
                # Sparse now, though it was dense in the first step: all ranks expect it dense.
                view.copy_(grad.to_dense() if grad.is_sparse else grad)
            p.grad = view
        bucket.ready(index)
        self._under_way = True

    def wait(self) -> None:
        """All parameters' gradients are reduced. All must be ready."""
        if not self._under_way:
            return
        self._under_way = False
        failed = None
        for bucket in self._buckets:
            try:
                bucket.wait()
            except RuntimeError as error:  # the others must begin their next step too
                failed = failed or error
        if failed is not None:
            raise failed

    def params(self) -> list[torch.Tensor]:
        """Those that lie in buckets."""
        return list(self._places)


class SingleGradients:
    """Gradients that travel one by one, or in groups that become ready together."""

    def __init__(self, reduction: Reduction, names: dict[torch.Tensor, str]) -> None:
        self._reduction = reduction
        self._names = names
        self._handles: list[tuple[Any, Any]] = []  # handle, and what to do with its result
        self.sparse: set[torch.Tensor] = set()

    def start(self, p: torch.Tensor) -> None:
        """Reduces p.grad; None means zero."""
        grad, name = self._gradient(p), self._names[p]
        if grad.is_sparse:
            if self._reduction.op not in (Average, mpi_ops.Sum):
                raise NotImplementedError("sparse gradients can be averaged and summed only; "
                                          "DistributedOptimizer(sparse_as_dense=True) takes others")
            self.sparse.add(p)
            handle = mpi_ops.sparse_allreduce_async(grad, name, self._reduction.op,
                                                    self._reduction.process_set)
            self._handles.append((handle, lambda output: setattr(p, "grad", output)))
            return
        tensor, ctx = self._small(grad)
        started = collectives.allreduce(tensor, tensor,
                                        self._reduction.options("allreduce", name))
        self._handles.append((started, lambda output: self._put(p, grad, output, ctx)))

    def start_group(self, params: Sequence[torch.Tensor], number: int) -> None:
        """Reduces the gradients of `params` together."""
        grads = [self._gradient(p) for p in params]
        if any(grad.is_sparse for grad in grads):
            raise NotImplementedError("sparse gradients cannot be in groups; use sparse_as_dense")
        small = [self._small(grad) for grad in grads]
        tensors = [one[0] for one in small]
        options = self._reduction.options("grouped_allreduce",
                                          f"{self._names[params[0]]}.group{number}")
        started = collectives.grouped_allreduce(tensors, tensors, options)

        def put(outputs: list[torch.Tensor]) -> None:
            for p, grad, output, one in zip(params, grads, outputs, small, strict=True):
                self._put(p, grad, output, one[1])

        self._handles.append((started, put))

    def wait(self) -> None:
        """All that were started are reduced."""
        handles, self._handles, failed = self._handles, [], None
        for handle, put in handles:
            try:
                put(handle.wait())
            except RuntimeError as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _gradient(self, p: torch.Tensor) -> torch.Tensor:
        if p.grad is None:  # other ranks may have one
            p.grad = torch.zeros_like(p, memory_format=torch.contiguous_format)
        elif p.grad.is_sparse and self._reduction.sparse_as_dense:
            p.grad = p.grad.to_dense()
        return p.grad

    def _small(self, grad: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if self._reduction.wire is not None:
            return dense(grad), None
        tensor, ctx = self._reduction.compression.compress(grad)
        return dense(tensor), ctx

    def _put(self, p: torch.Tensor, grad: torch.Tensor, output: torch.Tensor, ctx: Any) -> None:
        if self._reduction.wire is None:
            output = self._reduction.compression.decompress(output, ctx)
        if output is not grad:
            with torch.no_grad():
                grad.copy_(output)
        p.grad = grad


class Gradients:
    """All gradients of an optimizer. `start` each, then `wait` for all."""

    def __init__(self, reduction: Reduction, names: dict[torch.Tensor, str],
                 groups: list[list[torch.Tensor]]) -> None:
        self._reduction = reduction
        self._names = names
        self._single = SingleGradients(reduction, names)
        self._groups = groups
        self._group_of = {p: number for number, group in enumerate(groups) for p in group}
        self._ready: dict[int, set[torch.Tensor]] = {n: set() for n in range(len(groups))}
        self._buckets: Buckets | None = None
        self._first = True

    def start(self, p: torch.Tensor) -> None:
        """p.grad is final. It may be replaced, and is not to be touched until wait() returns."""
        if self._buckets is not None and p in self._buckets:
            self._buckets.ready(p)
            return
        number = self._group_of.get(p)
        if number is None:
            self._single.start(p)
            return
        self._ready[number].add(p)
        if len(self._ready[number]) == len(self._groups[number]):
            self._ready[number].clear()
            self._single.start_group(self._groups[number], number)

    def wait(self, params: Sequence[torch.Tensor]) -> None:
        """All are reduced, and in p.grad. `params`: those that were started."""
        try:
            self._single.wait()
        finally:
            if self._buckets is not None:
                self._buckets.wait()
        if self._first:
            self._first = False
            self._fill_buckets(params)

    def abandon(self) -> None:
        """A step has failed: what of it is under way is nobody's any more, and the next one is as
        the first."""
        self._single = SingleGradients(self._reduction, self._names)
        for ready in self._ready.values():
            ready.clear()
        self._buckets = None
        self._first = True

    def _fill_buckets(self, params: Sequence[torch.Tensor]) -> None:
        if self._groups or self._reduction.wire is None:
            return
        fit = [p for p in params
               if p.is_cpu and p not in self._single.sparse and p.dtype in _CODES]
        if fit:
            self._buckets = Buckets(fit, self._reduction)
