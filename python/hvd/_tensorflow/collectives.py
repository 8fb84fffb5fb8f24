# SPDX-License-Identifier: Apache-2.0
"""The collectives with Horovod's names, arguments and defaults, on tf.Tensor, tf.Variable and,
where it says so, tf.IndexedSlices: eager or within tf.function and graphs.

`name` tells which calls of different ranks belong together; within a graph a call without one is
counted within its tf.function. Gradients are as in Horovod: that of an allreduce is the same
allreduce, that of an allgather the average of the ranks' gradients of this rank's rows, that of a
broadcast the average on its root, that of an alltoall the way back, that of a reducescatter an
allgather.

Eager calls raise hvd's own errors; what goes wrong while a tf.function runs is TensorFlow's error
(`error_of` makes hvd's of it). Tensors are in the CPU's memory: TensorFlow brings those of a GPU.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from .. import ops as _ops
from .._arguments import op_of
from .._core.compression import Compresses, wire_of
from .._core.errors import unsupported
from .._names import meeting
from ..basics import global_process_set
from ..process_sets import ProcessSet
from . import errors, slices
from .calls import (
    Call,
    Tensors,
    Value,
    name_of,
    number_of,
    run,
    unique_name,
    without_autograph,
)
from .compression import Compression
from .operator_library import OPS

Average = _ops.Average
Sum = _ops.Sum
Adasum = _ops.Adasum
Min = _ops.Min
Max = _ops.Max
Product = _ops.Product

_PLACES = ("size", "rank", "local_size", "local_rank", "included")  # as the op numbers them


@without_autograph
def allreduce(tensor: Value | tf.IndexedSlices, average: bool | None = None, device_dense: str = "",
              device_sparse: str = "", compression: Compresses[tf.Tensor] = Compression.none,
              op: int | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0, name: str | None = None,
              process_set: ProcessSet = global_process_set,
              ignore_name_scope: bool = False, *, contents: str = "") -> Any:
    """`tensor` reduced over the ranks; of IndexedSlices those of all ranks together, for Average
    and Sum. device_dense and device_sparse: where TensorFlow is to place what is done. `contents`:
    what the tensor is to the program; a mismatch where the ranks do not say the same."""
    op = op_of(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        with tf.device(device_sparse):
            if (prescale_factor, postscale_factor) != (1.0, 1.0):
                raise NotImplementedError("prescale_factor and postscale_factor are not for "
                                          "IndexedSlices: multiply their values")
            return slices.reduce(tensor, slices.Asked(op, name, process_set, ignore_name_scope,
                                                      contents))
    call = Call("allreduce", number_of(process_set), name, op, 0, prescale_factor, postscale_factor,
                ignore_name_scope=ignore_name_scope, contents=contents)
    with tf.device(device_dense):
        return _reduce(call, [tensor], compression)[0]


@without_autograph
def grouped_allreduce(tensors: Sequence[Value | tf.IndexedSlices], average: bool | None = None,
                      device_dense: str = "", device_sparse: str = "",
                      compression: Compresses[tf.Tensor] = Compression.none,
                      op: int | None = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0, name: str | None = None,
                      process_set: ProcessSet = global_process_set,
                      ignore_name_scope: bool = False, *, contents: str = "") -> list[Any]:
    """The same of each of them; they become ready, and travel, together. IndexedSlices go their
    own way."""
    op = op_of(op, average)
    results: list[Any] = list(tensors)
    dense = {i: each for i, each in enumerate(tensors) if not isinstance(each, tf.IndexedSlices)}
    for i, each in enumerate(tensors):
        if i not in dense:
            results[i] = allreduce(each, None, device_dense, device_sparse, compression, op,
                                   prescale_factor, postscale_factor,
                                   name if name is None else f"{name}.{i}", process_set,
                                   ignore_name_scope, contents=contents)
    if dense:
        call = Call("allreduce", number_of(process_set), name, op, 0, prescale_factor,
                    postscale_factor, ignore_name_scope=ignore_name_scope, contents=contents)
        with tf.device(device_dense):
            reduced = _reduce(call, list(dense.values()), compression)
        for i, result in zip(dense, reduced, strict=True):
            results[i] = result
    return results


def _reduce(call: Call, tensors: Sequence[Value], compression: Compresses[tf.Tensor]) -> Tensors:
    wire = wire_of(compression)
    if wire is not None:
        return run(dataclasses.replace(call, compression=wire), tensors)
    small = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
    reduced = run(call, [tensor for tensor, _ in small])
    return [compression.decompress(tensor, context)
            for tensor, (_, context) in zip(reduced, small, strict=True)]


@without_autograph
def allgather(tensor: Value, name: str | None = None, ignore_name_scope: bool = False,
              process_set: ProcessSet = global_process_set) -> tf.Tensor:
    """The ranks' tensors, one behind the other along the first dimension, which may differ."""
    return grouped_allgather([tensor], name, ignore_name_scope, process_set)[0]


@without_autograph
def grouped_allgather(tensors: Sequence[Value], name: str | None = None,
                      ignore_name_scope: bool = False,
                      process_set: ProcessSet = global_process_set) -> list[tf.Tensor]:
    """The same of each of them; they travel together."""
    return run(Call("allgather", number_of(process_set), name,
                    ignore_name_scope=ignore_name_scope), tensors)


@without_autograph
def broadcast(tensor: Value, root_rank: int, name: str | None = None,
              ignore_name_scope: bool = False,
              process_set: ProcessSet = global_process_set, *, contents: str = "") -> tf.Tensor:
    """The tensor of `root_rank`, a global rank. `contents`: see allreduce."""
    return run(Call("broadcast", number_of(process_set), name, root=root_rank,
                    ignore_name_scope=ignore_name_scope, contents=contents), [tensor])[0]


@without_autograph
def broadcast_(variables: Sequence[tf.Variable], root_rank: int, name: str | None = None,
               process_set: ProcessSet = global_process_set) -> list[tf.Tensor]:
    """The variables get the values that they have on `root_rank`. Returns these. They meet by
    their names: see hvd._names."""
    prefix = unique_name(name or "hvd_variables")
    order = meeting(list(map(name_of, variables)))
    assigned = {place: variables[place].assign(broadcast(
        variables[place], root_rank, prefix and f"{prefix}.{i}", True, process_set,
        contents=contents)) for i, (place, contents) in enumerate(zip(*order, strict=True))}
    return [assigned[place] for place in range(len(variables))]


@without_autograph
def alltoall(tensor: Value, splits: Value | None = None, name: str | None = None,
             ignore_name_scope: bool = False,
             process_set: ProcessSet = global_process_set) -> Any:
    """Sends splits[r] rows to rank r of the set, or equally many to each, and returns what came, in
    rank order; with `splits` also how many rows came from each rank, of the type of `splits`."""
    call = Call("alltoall", number_of(process_set), name, ignore_name_scope=ignore_name_scope)
    if splits is None:
        return run(call, [tensor])[0]
    splits = tf.convert_to_tensor(splits)
    if not splits.dtype.is_integer:
        raise errors.invalid(f"splits are numbers of rows: integers, not {splits.dtype.name}")
    result, received = run(call, [tensor], splits)
    return result, tf.cast(received, splits.dtype)


@without_autograph
def reducescatter(tensor: Value, device_dense: str = "",
                  compression: Compresses[tf.Tensor] = Compression.none,
                  op: int = Average, name: str | None = None,
                  process_set: ProcessSet = global_process_set, ignore_name_scope: bool = False,
                  prescale_factor: float = 1.0, postscale_factor: float = 1.0) -> tf.Tensor:
    """This rank's rows of what the ranks' tensors are when reduced; the first ranks have one more
    where they cannot be divided evenly."""
    return grouped_reducescatter([tensor], device_dense, compression, op, name, process_set,
                                 ignore_name_scope, prescale_factor, postscale_factor)[0]


@without_autograph
def grouped_reducescatter(tensors: Sequence[Value | tf.IndexedSlices], device_dense: str = "",
                          compression: Compresses[tf.Tensor] = Compression.none, op: int = Average,
                          name: str | None = None, process_set: ProcessSet = global_process_set,
                          ignore_name_scope: bool = False, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> list[tf.Tensor]:
    """The same of each of them; they travel together."""
    dense = [each for each in tensors if not isinstance(each, tf.IndexedSlices)]
    if len(dense) < len(tensors):
        raise NotImplementedError("reducescatter takes no IndexedSlices; tf.convert_to_tensor "
                                  "makes them dense")
    call = Call("reducescatter", number_of(process_set), name, op, 0, prescale_factor,
                postscale_factor, ignore_name_scope=ignore_name_scope)
    with tf.device(device_dense):
        return list(_reduce(call, dense, compression))


def join() -> int:
    """This rank has no more work; returns, when all ranks have joined, which did last."""
    if not tf.executing_eagerly():
        raise unsupported("hvd.join() within a graph: call it outside of tf.function")
    return _ops.join()


def _place(what: str, number: int, name: str | None) -> tf.Tensor:
    with errors.ours_raised():
        answer: tf.Tensor = OPS.hvd_place(what=_PLACES.index(what), process_set=number, name=name)
    answer.set_shape([])
    return answer


def size_op(process_set_id: int = 0, name: str | None = None) -> tf.Tensor:
    """size(), asked when the graph runs."""
    return _place("size", process_set_id, name)


def rank_op(name: str | None = None) -> tf.Tensor:
    """rank(), asked when the graph runs."""
    return _place("rank", 0, name)


def local_size_op(name: str | None = None) -> tf.Tensor:
    """local_size(), asked when the graph runs."""
    return _place("local_size", 0, name)


def local_rank_op(name: str | None = None) -> tf.Tensor:
    """local_rank(), asked when the graph runs."""
    return _place("local_rank", 0, name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> tf.Tensor:
    """1 where this rank is a member, else 0; asked when the graph runs."""
    return _place("included", process_set_id, name)
