# SPDX-License-Identifier: Apache-2.0
"""The allreduce of sparse tensors: what each rank has is gathered."""
from __future__ import annotations

import torch

from .._core import abi, errors
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .operators import Handle, collectives, options


class SparseHandle:
    """A sparse allreduce under way. Calling it is waiting for it, as in Horovod."""

    def __init__(self, tensor: torch.Tensor, indices: Handle[torch.Tensor],
                 values: Handle[torch.Tensor], divisor: int | None) -> None:
        self._size = tensor.size()
        self._indices = indices
        self._values = values
        self._divisor = divisor

    def wait(self) -> torch.Tensor:
        """The reduced tensor, sparse and not coalesced."""
        values, indices = self._values.wait(), self._indices.wait()
        if self._divisor is not None:  # also on one rank: an average of integers is one of floats
            values = values / self._divisor
        return torch.sparse_coo_tensor(indices.t(), values, self._size, check_invariants=False)

    __call__ = wait

    def done(self) -> bool:
        """Whether wait() would return at once."""
        return self._values.done() and self._indices.done()


def sparse_allreduce_async(tensor: torch.Tensor, name: str | None, op: int,
                           process_set: ProcessSet = global_process_set) -> SparseHandle:
    """Reduces a sparse tensor: its indices and values are gathered. `op` is Average or Sum."""
    if op not in (abi.AVERAGE, abi.SUM):
        raise errors.unsupported("sparse tensors can be averaged and summed only")
    mine = tensor.coalesce()
    indices = _allgather(mine.indices().t().contiguous(), name and name + ".indices", process_set)
    values = _allgather(mine.values().contiguous(), name and name + ".values", process_set)
    return SparseHandle(tensor, indices, values,
                        (process_set.size() or 1) if op == abi.AVERAGE else None)


def _allgather(tensor: torch.Tensor, name: str | None, process_set: ProcessSet
               ) -> Handle[torch.Tensor]:
    return collectives.allgather(tensor, None, options("allgather", name, process_set))
