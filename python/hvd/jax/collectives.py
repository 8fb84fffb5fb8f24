# SPDX-License-Identifier: Apache-2.0
"""Collectives on pytrees of arrays, eager or within jit, grad, scan, cond and vmap.

The leaves of a tree travel together. Within what JAX traces, ranks have equally many rows, and
their programs are the same: calls without a name are counted as they are traced, in the same order
on all ranks. Under vmap an allreduce and a broadcast take the whole batch; the others run once for
each of its elements.

Gradients are as in hvd.torch: that of an allreduce is the same allreduce, that of an allgather the
average of the ranks' gradients of this rank's rows, that of a broadcast the average on its root.
There is no forward mode (jax.jvp, jax.hessian: nest jax.grad instead).

jax.checkpoint refuses calls, as all that has effects ("Effects not supported in partial-eval"): it
would repeat them. Put the call behind what is checkpointed, or behind the gradient.

A function of Python's within a program (io_callback) may call hvd, but not hvd.jax: JAX forbids its
own functions there.
"""
from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import ops
from .._core import abi, errors
from .._names import meeting, shown
from ..basics import global_process_set, rank
from ..process_sets import ProcessSet
from .calls import Arrays, Call, beside_of, run

Tree = Any  # of arrays

_Gradients = tuple[jax.Array | np.ndarray, ...]
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def allreduce(tree: Tree, op: int = ops.Average, *, name: str | None = None,
              prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set) -> Tree:
    """Reduces each leaf elementwise over the ranks; all get the same bits. Inputs are multiplied
    by `prescale_factor`, results by `postscale_factor`."""
    return _on_leaves(tree, Call("allreduce", process_set, name, op, 0, prescale_factor,
                                 postscale_factor))


def allgather(tree: Tree, *, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> Tree:
    """Concatenates each leaf of the ranks along its first dimension, in rank order."""
    return _on_leaves(tree, Call("allgather", process_set, name))


def reducescatter(tree: Tree, op: int = ops.Average, *, name: str | None = None,
                  prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                  process_set: ProcessSet = global_process_set) -> Tree:
    """Reduces each leaf over the ranks, of which each gets its part of the rows; the first ranks
    have one more where they cannot be divided evenly."""
    return _on_leaves(tree, Call("reducescatter", process_set, name, op, 0, prescale_factor,
                                 postscale_factor))


def broadcast(tree: Tree, root_rank: int = 0, *, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> Tree:
    """The leaves of `root_rank`, a global rank, on all."""
    return _on_leaves(tree, Call("broadcast", process_set, name, root=root_rank))


def alltoall(tree: Tree, *, name: str | None = None,
             process_set: ProcessSet = global_process_set) -> Tree:
    """Sends each rank its part of each leaf's rows, which can be divided evenly, and concatenates
    what came, in rank order."""
    return _on_leaves(tree, Call("alltoall", process_set, name))


def _on_leaves(tree: Tree, call: Call) -> Tree:
    """The leaves meet those of other ranks by their paths in the tree."""
    leaves, shape = jax.tree_util.tree_flatten_with_path(tree)
    if not leaves:
        return tree
    order = meeting(["/".join(map(_name_of, path)) for path, _ in leaves])
    arrays = [jnp.asarray(leaves[place][1]) for place in order.places]
    results = _together(dataclasses.replace(call, contents=shown(order.contents)),
                        tuple(_data(call, array) for array in arrays))
    found = dict(zip(order.places, map(_like, arrays, results), strict=True))
    return jax.tree_util.tree_unflatten(shape, [found[i] for i in range(len(leaves))])


def _name_of(key: object) -> str:
    """A part of a path. A key that is no text or number may be shown by its address."""
    for kind in ("key", "idx", "name"):
        if hasattr(key, kind):
            return _ADDRESS.sub("", str(getattr(key, kind)))
    return _ADDRESS.sub("", str(key))


def reduce_named(arrays: Sequence[jax.typing.ArrayLike], call: Call) -> list[jax.Array]:
    """The arrays reduced, in the order that they have. The caller has said in the call what they
    are."""
    return list(_together(call, tuple(map(jnp.asarray, arrays))))


def _data(call: Call, array: jax.Array) -> jax.Array:
    """Keys of jax.random travel as the numbers that they are."""
    if not jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return array
    if call.kind in ("allreduce", "reducescatter"):
        raise errors.invalid(f"{call.kind}: keys of jax.random cannot be reduced; broadcast them")
    return jax.random.key_data(array)


def _like(array: jax.Array, result: jax.Array) -> jax.Array:
    if not jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return result
    key: jax.Array = jax.random.wrap_key_data(result, impl=jax.random.key_impl(array))
    return key


def _together(call: Call, arrays: Arrays) -> Arrays:
    # Asked for here: what _run does is a function of its own when JAX lowers it.
    return _run(call, arrays, beside_of(call))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _run(call: Call, arrays: Arrays, beside: jax.Array) -> Arrays:
    return run(call, arrays, beside)


def _forward(call: Call, arrays: Arrays, beside: jax.Array) -> tuple[Arrays, Arrays]:
    if call.kind == "allreduce" and call.op not in (abi.AVERAGE, abi.SUM, abi.ADASUM):
        raise errors.invalid("hvd.jax differentiates allreduce for Average, Sum and Adasum only")
    return _run(call, arrays, beside), arrays


def _backward(call: Call, arrays: Arrays, gradients: Arrays) -> tuple[_Gradients, np.ndarray]:
    # Integers have none: their gradients are of JAX's type float0.
    real = [i for i, each in enumerate(gradients) if each.dtype != jax.dtypes.float0]
    mine: list[jax.Array | np.ndarray] = list(gradients)
    found = _gradients(call, tuple(arrays[i] for i in real), tuple(gradients[i] for i in real))
    for i, gradient in zip(real, found, strict=True):
        mine[i] = gradient
    for i, array in enumerate(arrays):
        if i not in real:
            mine[i] = np.zeros(array.shape, jax.dtypes.float0)
    return tuple(mine), np.zeros((), jax.dtypes.float0)


def _gradients(call: Call, arrays: Arrays, gradients: Arrays) -> Arrays:
    if not gradients:
        return ()
    if call.kind == "allreduce":
        return _together(call.behind("allreduce", op=call.op, prescale=call.prescale,
                                postscale=call.postscale), gradients)
    if call.kind == "alltoall":
        return _together(call.behind("alltoall"), gradients)
    if call.kind == "reducescatter":
        if call.op not in (abi.AVERAGE, abi.SUM):
            raise errors.invalid("hvd.jax differentiates reducescatter for Average and Sum only")
        scale = call.prescale * call.postscale * (
            1 if call.op == abi.AVERAGE else call.process_set.size() or 1)
        return _together(call.behind("allgather"), tuple(each * scale for each in gradients))
    totals = _together(call.behind("allreduce", op=abi.AVERAGE), gradients)
    if call.kind == "broadcast":
        # Chosen, not left out: the others take part in the gradient of this, too.
        mine = rank() == call.root
        return tuple(jnp.where(mine, each, jnp.zeros_like(each)) for each in totals)
    first = call.process_set.rank() or 0
    return tuple(jax.lax.dynamic_slice_in_dim(total, first * array.shape[0], array.shape[0])
                 for total, array in zip(totals, arrays, strict=True))


_run.defvjp(_forward, _backward)
