# SPDX-License-Identifier: Apache-2.0
"""tf.IndexedSlices over the ranks: all ranks' slices, one behind the other."""
from __future__ import annotations

from typing import Any

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


def reduce(slices: tf.IndexedSlices, op: int, name: str | None, process_set: ProcessSet,
           ignore_name_scope: bool) -> tf.IndexedSlices:
    """Average or Sum of them. An average of integers is of floating-point numbers, as Horovod's:
    slices of one row are added up later, and to truncate each would lose what they are together."""
    if op not in (abi.AVERAGE, abi.SUM):
        raise NotImplementedError("IndexedSlices are reduced by Average and Sum only; "
                                  "sparse_as_dense=True makes gradients dense")

    def gathered(tensor: tf.Tensor, what: str) -> Any:
        return run(Call("allgather", number_of(process_set), name and f"{name}.{what}",
                        ignore_name_scope=ignore_name_scope), [tensor])[0]

    values, indices = gathered(slices.values, "values"), gathered(slices.indices, "indices")
    members = process_set.size() or 1
    if op == abi.AVERAGE and (members > 1 or values.dtype.is_integer):
        values = values / members
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)
