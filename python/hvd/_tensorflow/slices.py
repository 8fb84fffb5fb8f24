# SPDX-License-Identifier: Apache-2.0
"""tf.IndexedSlices over the ranks: all ranks' slices, one behind the other."""
from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from .._core import abi
from ..process_sets import ProcessSet
from .calls import Call, number_of, run


def divided(tensor: tf.Tensor, divisor: int) -> tf.Tensor:
    """The quotient, of the tensor's type: integers are truncated towards zero."""
    if divisor == 1:
        return tensor
    if tensor.dtype.is_integer:
        return tf.truncatediv(tensor, tf.cast(divisor, tensor.dtype))
    return tensor / divisor


class Asked(NamedTuple):
    """As allreduce's arguments."""

    op: int
    name: str | None
    process_set: ProcessSet
    ignore_name_scope: bool
    contents: str


def reduce(slices: tf.IndexedSlices, asked: Asked) -> tf.IndexedSlices:
    """Average or Sum of them. An average of integers is of floating-point numbers, as Horovod's:
    slices of one row are added up later, and to truncate each would lose what they are together."""
    if asked.op not in (abi.AVERAGE, abi.SUM):
        raise NotImplementedError("IndexedSlices are reduced by Average and Sum only; "
                                  "sparse_as_dense=True makes gradients dense")

    def gathered(tensor: tf.Tensor, what: str) -> Any:
        return run(Call("allgather", number_of(asked.process_set),
                        asked.name and f"{asked.name}.{what}",
                        ignore_name_scope=asked.ignore_name_scope,
                        contents=asked.contents and f"{asked.contents} ({what})"), [tensor])[0]

    values, indices = gathered(slices.values, "values"), gathered(slices.indices, "indices")
    members = asked.process_set.size() or 1
    if asked.op == abi.AVERAGE and (members > 1 or values.dtype.is_integer):
        values = values / members
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)
