# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backend "hvd": c10d's process group over hvd's collectives.

Every call is asynchronous and returns a Work. Members must make the calls of one group in the same
order, as c10d says; hvd matches them by that order, and tells all of them when they differ.

Threads: any, one at a time a group.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from .._core import abi, errors
from .._core.handles import Handle
from .._core.runtime import RUNTIME
from .._torch.operators import collectives
from ..process_sets import ProcessSet
from . import members, monitored
from .forms import (
    ALONE,
    NO_TIMEOUT,
    Given,
    GivenLists,
    Timeout,
    as_time,
    check_width,
    elements,
    first_list,
    listed,
    reduce_op,
    root_of,
)
from .reductions import reduction
from .tensors import Landings, as_one, joined, land_parts, room_for, to_move, to_reduce
from .work import COMPLETIONS, Work

if TYPE_CHECKING:  # torch's stubs do not say that dist has them
    from torch._C._distributed_c10d import Store

# As a base without types: c10d's stubs list overloads that differ between its versions.
_Base: Any = dist.ProcessGroup


class ProcessGroup(_Base):  # type: ignore[misc]
    """The members of one c10d group; made by torch.distributed."""

    def __init__(self, place: members.Place) -> None:
        super().__init__(place.rank, place.size)
        self._place = place
        self._set: ProcessSet = place.process_set
        self._timeout = place.timeout
        self._monitored = 0

    # ---- what torch asks of a group ----

    def rank(self) -> int:
        return self._place.rank

    def size(self) -> int:
        return self._place.size

    def name(self) -> str:
        return "hvd"

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return "hvd"

    def get_group_store(self) -> Store:
        return self._place.store

    @property
    def group_name(self) -> str:
        return self._place.name

    @property
    def pg_name(self) -> str:
        return self._place.name

    @property
    def group_desc(self) -> str:
        return self._place.description

    def _set_group_name(self, name: str) -> None:
        self._place.name = name

    def _set_group_desc(self, description: str) -> None:
        self._place.description = description

    # torch asks a group for its backend, and that what it can do: here they are one.
    supports_coalescing = False
    supports_splitting = False
    supports_shrinking = False
    supports_time_estimate = False

    def _get_backend(self, _: torch.device) -> ProcessGroup:
        return self

    def _get_backend_name(self) -> str:
        return "hvd"

    def _has_hooks(self) -> bool:
        return False

    def _set_sequence_number_for_group(self) -> None:
        """hvd numbers calls itself."""

    def set_timeout(self, timeout: Timeout) -> None:
        self._timeout = as_time(timeout)

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Ends the group; the last one that began the job leaves it."""
        members.leave(self._place)

    def abort(self) -> None:
        """Ends the group on this rank alone."""
        members.give_up(self._place)

    # ---- reductions and broadcast ----

    def allreduce(self, tensors: Given, opts: object = None) -> Work:
        given = listed(tensors)
        landings = Landings()
        wanted = reduction(reduce_op(opts))
        flat = [to_reduce(tensor, landings) for tensor in given]
        options = self._options(wanted.op, prescale=wanted.prescale)
        if len(flat) == 1:
            return self._start("all_reduce", opts, given, landings, options,
                               lambda one: collectives.allreduce(flat[0], flat[0], one))
        return self._start("all_reduce", opts, given, landings, options,
                           lambda one: collectives.grouped_allreduce(flat, flat, one))

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Given, opts: object) -> Work:
        given = listed(tensors)
        landings = Landings()
        wanted = reduction(reduce_op(opts))
        source = to_reduce(given[0])
        if root_of(opts) == self.rank():
            target = to_reduce(given[0], landings)
            source = target
        else:
            target = torch.empty_like(source)  # the others' tensors stay as they are
        return self._start("reduce", opts, given, landings,
                           self._options(wanted.op, prescale=wanted.prescale),
                           lambda one: collectives.allreduce(source, target, one))

    def broadcast(self, tensors: Given, opts: object) -> Work:
        given = listed(tensors)
        landings = Landings()
        flat = to_move(given[0], None if root_of(opts) == self.rank() else landings)
        return self._start("broadcast", opts, given, landings,
                           self._options(root=self._place.ranks[root_of(opts)]),
                           lambda one: collectives.broadcast(flat, flat, one))

    def reduce_scatter(self, outputs: Given, inputs: GivenLists, opts: object = None) -> Work:
        parts = listed(first_list(inputs))
        output = listed(outputs)[0]
        counts = {part.numel() for part in parts}
        if len(counts) != 1:
            raise errors.invalid("reduce_scatter needs tensors of one size; these have "
                                 f"{sorted(counts)} elements")
        return self.reduce_scatter_single(output, joined(parts), opts)

    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor,
                              opts: object = None) -> Work:
        return self.reduce_scatter_single_coalesced([output], [given], opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Sequence[torch.Tensor],
                                        inputs: Sequence[torch.Tensor],
                                        opts: object = None) -> Work:
        landings = Landings()
        wanted = reduction(reduce_op(opts))
        sources = [self._rows(to_reduce(one), "reduce_scatter's input") for one in inputs]
        targets = [to_reduce(one, landings).view(1, -1) for one in outputs]
        for source, target in zip(sources, targets, strict=True):
            check_width(source, target, "reduce_scatter")
        return self._start(
            "reduce_scatter", opts, list(outputs), landings,
            self._options(wanted.op, prescale=wanted.prescale),
            lambda one: collectives.grouped_reducescatter_into(sources, targets, one)
            if len(sources) > 1
            else collectives.reducescatter(sources[0], targets[0], one, self._set))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- gathers ----

    def allgather(self, outputs: GivenLists, inputs: Given, opts: object = None) -> Work:
        source = listed(inputs)[0]
        return self._gather_lists([list(first_list(outputs))], [source], opts)

    def allgather_coalesced(self, outputs: Sequence[Sequence[torch.Tensor]],
                            inputs: Sequence[torch.Tensor], opts: object = None) -> Work:
        # c10d has a list for each rank; here a list for each tensor is needed.
        return self._gather_lists([list(row) for row in zip(*outputs, strict=True)], list(inputs),
                                  opts)

    def _gather_lists(self, lists: list[list[torch.Tensor]], sources: list[torch.Tensor],
                      opts: object) -> Work:
        landings = Landings()
        wholes = []
        for parts in lists:
            whole = as_one(parts)
            if whole is None:
                whole = room_for(parts)
                land_parts(whole, parts, landings)
            wholes.append(to_move(whole))
        return self._start(
            "all_gather", opts, [part for parts in lists for part in parts], landings,
            self._options(), self._gathering([to_move(source) for source in sources], wholes))

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor,
                          opts: object = None) -> Work:
        return self.all_gather_single_coalesced([output], [given], opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: Sequence[torch.Tensor],
                                    inputs: Sequence[torch.Tensor], opts: object = None) -> Work:
        landings = Landings()
        targets = [to_move(output, landings) for output in outputs]
        sources = [to_move(one) for one in inputs]
        for source, target in zip(sources, targets, strict=True):
            if source.numel() * self.size() != target.numel():
                raise errors.invalid(
                    f"all_gather's output has {target.numel()} elements; {self.size()} ranks give "
                    f"{source.numel()} each")
        return self._start("all_gather", opts, list(outputs), landings, self._options(),
                           self._gathering(sources, targets))

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def _gathering(self, sources: list[torch.Tensor],
                   targets: list[torch.Tensor]) -> Callable[[object], Handle[object]]:
        if len(sources) == 1:
            return lambda one: collectives.allgather(sources[0], targets[0], one)
        return lambda one: collectives.grouped_allgather_into(sources, targets, one)

    def gather(self, outputs: GivenLists, inputs: Given, opts: object) -> Work:
        source = to_move(listed(inputs)[0])
        root = root_of(opts) == self.rank()
        parts = listed(outputs[0]) if root else []
        landings = Landings()
        whole = room_for(parts) if root else source[:0]
        land_parts(whole, parts, landings)
        splits = [source.numel() if rank == root_of(opts) else 0 for rank in range(self.size())]
        return self._exchange("gather", opts, parts, landings, (source, splits, to_move(whole)))

    def scatter(self, outputs: Given, inputs: GivenLists, opts: object) -> Work:
        output = listed(outputs)[0]
        landings = Landings()
        target = to_move(output, landings)
        parts = listed(inputs[0]) if root_of(opts) == self.rank() else []
        source = to_move(joined(parts)) if parts else target[:0]
        width = source.numel() // max(len(parts), 1)
        splits = [width if parts else 0] * self.size()
        return self._exchange("scatter", opts, [output], landings, (source, splits, target))

    # ---- alltoall ----

    def all_to_all_single(self, output: torch.Tensor, given: torch.Tensor,
                          output_split_sizes: Sequence[int], input_split_sizes: Sequence[int],
                          opts: object = None) -> Work:
        landings = Landings()
        target, source = to_move(output, landings), to_move(given)
        splits = elements(given, input_split_sizes, source.numel(), self.size())
        elements(output, output_split_sizes, target.numel(), self.size())
        return self._exchange("all_to_all", opts, [output], landings, (source, splits, target))

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Given, inputs: Given, opts: object = None) -> Work:
        sources, parts = listed(inputs), listed(outputs)
        landings = Landings()
        whole = as_one(parts)
        if whole is None:
            whole = room_for(parts)
            land_parts(whole, parts, landings)
        source = to_move(joined(sources))
        unit = source.numel() // max(sum(one.numel() for one in sources), 1)
        splits = [one.numel() * unit for one in sources]
        return self._exchange("all_to_all", opts, parts, landings,
                              (source, splits, to_move(whole)))

    def _exchange(self, what: str, opts: object, value: list[torch.Tensor], landings: Landings,
                  how: tuple[torch.Tensor, list[int], torch.Tensor]) -> Work:
        source, splits, target = how
        return self._start(what, opts, value, landings, self._options(),
                           lambda one: collectives.alltoall_into(source, splits, target, one))

    # ---- between two ranks ----

    def send(self, tensors: Given, destination: int, tag: int = 0) -> Work:
        given = listed(tensors)
        flat, rank = to_move(given[0]), self._place.ranks[destination]
        return self._start(f"send to rank {destination}", ALONE, given, Landings(),
                           self._options(), lambda one: collectives.send(flat, rank, tag, one))

    def recv(self, tensors: Given, source: int, tag: int = 0) -> Work:
        given = listed(tensors)
        landings = Landings()
        flat, rank = to_move(given[0], landings), self._place.ranks[source]
        return self._start(f"recv from rank {source}", ALONE, given, landings,
                           self._options(), lambda one: collectives.recv(flat, rank, tag, one))

    def recv_anysource(self, tensors: Given, tag: int = 0) -> Work:
        raise errors.unsupported('backend "hvd" cannot receive from any rank: say from which, '
                                 "recv(tensor, src=…)")

    # ---- barriers ----

    def monitored_barrier(self, timeout: Timeout | None = None,
                          wait_all_ranks: bool = False) -> None:
        limit = self._timeout if timeout is None else as_time(timeout)
        self._monitored += 1
        monitored.barrier(self, self._monitored, monitored.Patience(limit, wait_all_ranks))

    def barrier(self, opts: object = None) -> Work:
        return self._start("barrier", opts, [], Landings(), self._options(), collectives.barrier)

    # ---- how each begins ----

    def _options(self, op: int = abi.AVERAGE, root: int = 0, prescale: float = 1.0) -> object:
        return RUNTIME.options("", None, self._set, op, root, prescale)

    def _start(self, what: str, opts: object, value: list[torch.Tensor], landings: Landings,
               options: object, submit: Callable[[object], Handle[object]]) -> Work:
        timeout = as_time(getattr(opts, "timeout", NO_TIMEOUT))
        work = Work(f"{what} of {self._place.described()}",
                    timeout if timeout > NO_TIMEOUT else self._timeout, value, landings)
        if not getattr(opts, "asyncOp", True):
            return work.start(lambda: submit(options))  # waited for at once: no future
        told = COMPLETIONS.enter(options, work)
        try:
            return work.start(lambda: submit(told))
        except BaseException:
            COMPLETIONS.leave(told)
            raise

    def _rows(self, flat: torch.Tensor, what: str) -> torch.Tensor:
        if flat.numel() % self.size():
            raise errors.invalid(f"{what} has {flat.numel()} elements, which {self.size()} ranks "
                                 "cannot share evenly")
        return flat.view(self.size(), -1) if flat.numel() else flat.view(self.size(), 0)
