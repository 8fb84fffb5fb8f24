# SPDX-License-Identifier: Apache-2.0
"""One collective on a list of arrays: within what JAX traces as a call of libhvd_jax's, else at
once. Names tell which calls of different ranks belong together."""
from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import ops
from .._core import abi, errors
from .._core.arrays import code_of
from ..basics import is_initialized
from ..process_sets import ProcessSet
from . import handlers
from .side_by_side import Keys, keep, shape_of, side_by_side

Arrays = tuple[jax.Array, ...]

_traced = itertools.count(1)


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """The call that is asked for on the arrays."""

    kind: str  # of handlers.KINDS
    process_set: ProcessSet
    name: str | None = None
    op: int = abi.AVERAGE  # of reductions
    root: int = 0  # a global rank
    prescale: float = 1.0
    postscale: float = 1.0
    contents: str = ""  # what the arrays are; all ranks must say the same
    keys: Keys = dataclasses.field(default_factory=Keys)

    def behind(self, kind: str, **changes: Any) -> Call:
        """A call that belongs to this one: of its gradient."""
        name = None if self.name is None else f"{self.name}.gradient"
        return Call(kind, self.process_set, name, **changes)


def beside_of(call: Call) -> jax.Array:
    """The operand that `run` takes besides the arrays."""
    return side_by_side(call.keys)


def run(call: Call, arrays: Arrays, beside: jax.Array) -> Arrays:
    """The results, in the arrays' order."""
    if any(isinstance(array, jax.core.Tracer) for array in arrays):
        return _trace(call, arrays, beside)
    return tuple(jnp.asarray(result) for result in _now(call, [np.asarray(a) for a in arrays]))


def _trace(call: Call, arrays: Arrays, beside: jax.Array) -> Arrays:
    if not is_initialized():
        raise errors.not_initialized()
    members = call.process_set.size()
    if members is None:
        raise errors.invalid(f"this rank is no member of {call.process_set}, or that is not "
                             "registered: hvd.add_process_set() does it")
    for array in arrays:
        _check(call, array, members)
    call = dataclasses.replace(call, name=call.name or f"jax.{next(_traced)}")
    if call.kind in ("broadcast", "alltoall") and len(arrays) > 1:  # which have no groups
        each = [dataclasses.replace(call, name=f"{call.name}.{i}") for i in range(len(arrays))]
        return tuple(_start(one, (array,), members, beside)[0]
                     for one, array in zip(each, arrays, strict=True))
    return _start(call, arrays, members, beside)


def _check(call: Call, array: jax.Array, members: int) -> None:
    """Checks what can be known before the program runs."""
    code_of(np.dtype(array.dtype))
    if call.kind not in ("allgather", "reducescatter", "alltoall"):
        return
    if not array.shape:
        raise errors.invalid(f"{call.kind} works along the first dimension, and the input is a "
                             "scalar, which has none; give it the shape [1]")
    if call.kind == "alltoall" and array.shape[0] % members:
        raise errors.invalid(f"the input's {array.shape[0]} rows cannot be divided evenly among "
                             f"{members} ranks; within what JAX traces they must be")


def _start(call: Call, arrays: Arrays, members: int, beside: jax.Array) -> Arrays:
    in_place = call.kind in ("allreduce", "broadcast")
    elementwise = in_place and call.op != abi.ADASUM  # which looks at a tensor as a whole
    group = "grouped_" if len(arrays) > 1 else ""
    # XLA keeps or drops nothing of its own accord: the other ranks count on each call.
    start = jax.ffi.ffi_call(
        handlers.target(call.kind), [_result(call, array, members) for array in arrays],
        has_side_effect=True, vmap_method="broadcast_all" if elementwise else "sequential",
        input_output_aliases={i: i for i in range(len(arrays))} if in_place else {})
    name, process_set = f"{group}{call.kind}.{call.name}", call.process_set.process_set_id or 0
    call.keys.all.append(f"{process_set}:{name}")
    results = tuple(start(
        *arrays, beside, name=name, op=np.int32(call.op),
        root=np.int32(call.root), process_set=np.int32(process_set),
        prescale=np.float64(call.prescale), postscale=np.float64(call.postscale),
        contents=call.contents))
    return results if in_place else keep(results, arrays)


def _result(call: Call, array: jax.Array, members: int) -> jax.ShapeDtypeStruct:
    """A compiled program knows all shapes: the ranks have equally many rows."""
    shape = tuple(array.shape)
    if call.kind == "allgather":
        shape = (shape[0] * members, *shape[1:])
    elif call.kind == "reducescatter":
        rest = shape[0] % members
        shape = (shape[0] // members + ((call.process_set.rank() or 0) < rest), *shape[1:])
    return shape_of(shape, array.dtype)


def _now(call: Call, arrays: Sequence[np.ndarray]) -> Sequence[Any]:
    """By NumPy's way, which has an order of its own where there is no name."""
    name, members = call.name, call.process_set
    several = len(arrays) > 1
    if call.kind == "allreduce":
        scaled = (call.op, call.prescale, call.postscale, members)
        return (ops.grouped_allreduce(arrays, name, *scaled, contents=call.contents) if several
                else [ops.allreduce(arrays[0], name, *scaled, contents=call.contents)])
    if call.kind == "reducescatter":
        scattered = (call.op, members, call.prescale, call.postscale)
        return (ops.grouped_reducescatter(arrays, name, *scattered) if several
                else [ops.reducescatter(arrays[0], name, *scattered)])
    if call.kind == "allgather":
        return (ops.grouped_allgather(arrays, name, members) if several
                else [ops.allgather(arrays[0], name, members)])
    if call.kind == "broadcast":
        return [ops.broadcast(array, call.root, _numbered(name, i, several), members,
                              contents=call.contents)
                for i, array in enumerate(arrays)]
    return [ops.alltoall(array, None, _numbered(name, i, several), members)
            for i, array in enumerate(arrays)]


def _numbered(name: str | None, index: int, several: bool) -> str | None:
    return f"{name}.{index}" if name is not None and several else name
