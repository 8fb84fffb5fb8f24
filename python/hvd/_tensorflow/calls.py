# SPDX-License-Identifier: Apache-2.0
"""One collective on a list of tensors, as an op of libhvd_tensorflow's; and the ops' gradients.

Eager calls without a name have an order of their own. Within a graph each gets a name of its
tf.function's, which is the same on ranks that run the same program.
"""
from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import tensorflow as tf

from .._core import abi
from .._core.library import LIBRARY
from ..process_sets import ProcessSet
from . import errors
from .operator_library import OPS

if TYPE_CHECKING:
    import numpy as np

Tensors = Sequence[tf.Tensor]
# Whatever TensorFlow makes a tensor of.
Value: TypeAlias = "tf.Tensor | tf.Variable | np.ndarray | float | Sequence[int]"

# The graphs of gradients of branches and loops are of subclasses of these.
_GRAPHS_WITHIN = {"CondBranchFuncGraph", "WhileCondFuncGraph", "WhileBodyFuncGraph"}
# The names of what TensorFlow makes of a function: it numbers these by what the process has made
# before.
_NUMBERED = re.compile(r"__(forward|backward|inference)_(.*)_\d+")


@dataclasses.dataclass(frozen=True)
class Call:
    """The call that is asked for on the tensors."""

    kind: str  # "allreduce" and its like
    process_set: int  # its number
    name: str | None = None
    op: int = abi.AVERAGE  # of reductions
    root: int = 0  # a global rank
    prescale: float = 1.0
    postscale: float = 1.0
    compression: int = abi.COMPRESSION_NONE
    flags: int = 0
    ignore_name_scope: bool = False  # the name is taken as it is, wherever the call is made
    is_gradient: bool = False  # of a call of this name, which may have several
    contents: str = ""  # what the tensors are; all ranks must say the same


def number_of(process_set: ProcessSet) -> int:
    """The number by which the ops know it."""
    number = process_set.process_set_id
    held = LIBRARY.held
    if number is None:
        raise errors.invalid(f"{process_set} is not registered: hvd.add_process_set() does it")
    # Where the call is made: a graph would say so when it runs.
    if held.hvd_is_initialized() and held.hvd_process_set_size(number) < 0:
        raise errors.invalid(f"process set {number} does not exist: hvd.add_process_set() makes "
                             "one")
    return number


def name_of(variable: object) -> str:
    """The name that ranks know it by. Keras 3 has paths, of which the name is the last part; a
    tensor that is no variable has none."""
    if isinstance(variable, tf.Variable):
        return str(variable.name)
    return str(getattr(variable, "path", "tensor"))


# TensorFlow rewrites the Python of what a tf.function calls; hvd's own is meant to run as it is.
without_autograph = tf.autograph.experimental.do_not_convert


@without_autograph
def run(call: Call, tensors: Sequence[Value], splits: tf.Tensor | None = None) -> list[tf.Tensor]:
    """The results, in the tensors' order; of an alltoall also the rows from each rank."""
    inputs = [tf.convert_to_tensor(tensor) for tensor in tensors]
    op = getattr(OPS, f"hvd_{call.kind}")
    more = () if call.kind != "alltoall" else (
        tf.constant([], tf.int64) if splits is None else tf.cast(splits, tf.int64),)
    with errors.ours_raised():
        out = op(inputs, *more, call_name=_name(call, len(inputs) > 1),
                 process_set=call.process_set, op=call.op, root=call.root,
                 prescale=_bits(call.prescale), postscale=_bits(call.postscale),
                 compression=call.compression, flags=call.flags, contents=call.contents)
    results = list(out[0]) if more else list(out)
    if call.kind in ("allgather", "reducescatter", "alltoall"):
        for result, tensor in zip(results, inputs, strict=True):
            _say_shape(result, tensor)
    return [*results, out[1]] if more else results


def _say_shape(result: tf.Tensor, tensor: tf.Tensor) -> None:
    """Only the exchange tells the rows."""
    if not tf.executing_eagerly() and tensor.shape.rank:
        result.set_shape([None, *tensor.shape[1:]])


def _name(call: Call, group: bool) -> str:
    """Eager calls keep their own; within a graph there is always one."""
    name = call.name if tf.executing_eagerly() else _name_in_graph(call)
    return "" if name is None else f"{'grouped_' if group else ''}{call.kind}.{name}"


def _name_in_graph(call: Call) -> str | None:
    if call.name is None or call.is_gradient:
        return unique_name(call.name or f"hvd_{call.kind}")
    scope = "" if call.ignore_name_scope else tf.compat.v1.get_default_graph().get_name_scope()
    return f"{scope}/{call.name}" if scope else call.name


def unique_name(word: str) -> str | None:
    """A name of this tf.function's that no other call in it has; None outside of graphs."""
    if tf.executing_eagerly():
        return None
    function = _function_of(tf.compat.v1.get_default_graph())
    name = function.unique_name(word)
    # Graphs of tf.function have the function's own.
    return f"{_plain(function.name)}/{name}" if hasattr(function, "name") else str(name)


def _plain(name: str) -> str:
    """The function's name, without a number that another rank may not have."""
    found = _NUMBERED.fullmatch(name)
    return f"{found[1]} {_plain(found[2])}" if found else name


def _function_of(graph: tf.Graph) -> tf.Graph:
    """The graph of the tf.function to which this one belongs: branches and bodies of loops have
    graphs of their own, whose names are numbered by what the process has done before."""
    while any(kind.__name__ in _GRAPHS_WITHIN for kind in type(graph).__mro__):
        graph = graph.outer_graph
    return graph


def _bits(value: float) -> int:
    """A double as a number that an op's attribute can be."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _call_of(node: tf.Operation, kind: str, **changes: Any) -> Call:
    """The call that the gradient of this node's is."""
    number = node.get_attr("process_set")
    text = node.get_attr("call_name").decode()
    # Without that of the function, which unique_name gives.
    name = f"{text.split('.', 1)[1].rpartition('/')[2]}.gradient" if text else None
    return Call(kind, number, name, is_gradient=True, **changes)


def _members(op: tf.Operation) -> tuple[int, int]:
    """This rank's index among the members of the op's set, and how many these are."""
    number = op.get_attr("process_set")
    return (LIBRARY.held.hvd_process_set_rank(number), LIBRARY.held.hvd_process_set_size(number))


@tf.RegisterGradient("HvdAllreduce")
def _allreduce_gradient(op: tf.Operation, *gradients: tf.Tensor) -> list[tf.Tensor]:
    reduction = op.get_attr("op")
    if reduction not in (abi.AVERAGE, abi.SUM, abi.ADASUM):
        raise errors.invalid("hvd.tensorflow differentiates allreduce for Average, Sum and Adasum "
                             "only")
    scales = [struct.unpack("<d", struct.pack("<q", op.get_attr(name)))[0]
              for name in ("prescale", "postscale")]
    return run(_call_of(op, "allreduce", op=reduction, prescale=scales[0], postscale=scales[1]),
               gradients)


@tf.RegisterGradient("HvdAllgather")
def _allgather_gradient(op: tf.Operation, *gradients: tf.Tensor) -> list[tf.Tensor]:
    """The average of the ranks' gradients of this rank's rows."""
    totals = run(_call_of(op, "allreduce", op=abi.AVERAGE), gradients)
    own = [tf.shape(tensor, tf.int64)[:1] for tensor in op.inputs]
    call = _call_of(op, "allgather")
    call = dataclasses.replace(call, name=None if call.name is None else f"{call.name}.rows")
    index, _ = _members(op)
    return [total[tf.reduce_sum(rows[:index]):tf.reduce_sum(rows[:index + 1])]
            for total, rows in zip(totals, run(call, own), strict=True)]


@tf.RegisterGradient("HvdReducescatter")
def _reducescatter_gradient(op: tf.Operation, *gradients: tf.Tensor) -> list[tf.Tensor]:
    reduction = op.get_attr("op")
    if reduction not in (abi.AVERAGE, abi.SUM):
        raise errors.invalid("hvd.tensorflow differentiates reducescatter for Average and Sum only")
    scale = 1.0
    for name in ("prescale", "postscale"):
        scale *= struct.unpack("<d", struct.pack("<q", op.get_attr(name)))[0]
    if reduction == abi.SUM:
        scale *= _members(op)[1]
    if scale != 1.0:
        gradients = tuple(each * tf.cast(scale, each.dtype) for each in gradients)
    return run(_call_of(op, "allgather"), gradients)


@tf.RegisterGradient("HvdBroadcast")
def _broadcast_gradient(op: tf.Operation, gradient: tf.Tensor) -> list[tf.Tensor]:
    """The average on the root, zeros elsewhere. There the average is chosen against, too, not left
    out: the root waits for it, and zeros of a known shape are a constant to TensorFlow, which needs
    nothing else. The same holds for the gradient of this one."""
    totals = run(_call_of(op, "allreduce", op=abi.AVERAGE), [gradient])
    mine = LIBRARY.held.hvd_rank() == op.get_attr("root")
    return [tf.where(mine, total, tf.zeros_like(total)) for total in totals]


@tf.RegisterGradient("HvdAlltoall")
def _alltoall_gradient(op: tf.Operation, gradient: tf.Tensor, *_: object
                       ) -> list[tf.Tensor | None]:
    """Back the way they came."""
    sent, _received = run(_call_of(op, "alltoall"), [gradient], op.outputs[1])
    return [sent, None]
