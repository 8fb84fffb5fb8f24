# SPDX-License-Identifier: Apache-2.0
"""Has XLA run the calls of a compiled program side by side.

XLA on CPUs takes a computation of few steps, or of small arrays only, to be quicker one step after
the other, in an order of its own. Then a call waits for the one before, and ranks whose programs
differ a little wait for each other for ever. Each computation that has calls within therefore gets
steps that do nothing, as many, and of as large an operand, as it takes: XLA looks at nothing else.

Two things stay in the program's order: loops (scan, while, fori) that have calls in them, since XLA
gives what they compute in between the same memory; and sometimes a call whose input is computed in
the memory of another's result. Where ranks wait for each other for that, `orders` ends it. The
first of those steps has a list of all calls, so that `orders` knows of the ones that a program has
not come to.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from . import handlers, orders

# XLA's ThunkExecutor: up to 8 steps, or up to 512 bytes in each buffer, run one by one. (Not all
# alike: XLA would make the constant when it runs.)
_STEPS = 8
_LARGE = np.arange(1024).astype(np.uint8)

side_by_side_p = Primitive("hvd_side_by_side")
side_by_side_p.def_abstract_eval(  # type: ignore[no-untyped-call]
    lambda *, keys: jax.core.ShapedArray((), np.uint8))
side_by_side_p.def_impl(  # type: ignore[no-untyped-call]
    lambda *, keys: jax.numpy.uint8(0))  # of a call that runs at once


class Keys:
    """The keys by which libhvd_jax knows a call, known when it has been traced; several where it is
    several."""

    def __init__(self) -> None:
        self.all: list[str] = []


def side_by_side(keys: Keys) -> jax.Array:
    """The operand that a call takes besides its arrays, so that it may run beside others."""
    operand: jax.Array = side_by_side_p.bind(keys=keys)  # type: ignore[no-untyped-call]
    return operand


def shape_of(shape: tuple[int, ...], dtype: np.dtype) -> jax.ShapeDtypeStruct:
    """A result's shape and type, as JAX is told them."""
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def keep(results: Sequence[jax.Array], arrays: Sequence[jax.Array]) -> tuple[jax.Array, ...]:
    """The results. The arrays' memory is kept until they are there: XLA would give it to the
    results of another call, which then would have to wait for this one."""
    kept = jax.ffi.ffi_call(
        handlers.NOTHING, [shape_of(each.shape, each.dtype) for each in results],
        vmap_method="sequential", input_output_aliases={i: i for i in range(len(results))})
    return tuple(kept(*results, *arrays))


def _lower(context: Any, *, keys: Keys) -> Any:
    functions = list(_open_functions(context.module_context.module))
    for block in [*_around(), *functions]:
        if block.owner.name != "builtin.module" and not _is_nothing(block):
            with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
                for _ in range(_STEPS - 1):
                    _do_nothing([])
                _do_nothing([mlir.ir_constant(_LARGE)])
    if functions:  # the program's own comes first
        _list(functions[0].operations[0], keys.all)
        orders.watch()
    return [mlir.ir_constant(np.uint8(0))]


def _list(step: Any, keys: Sequence[str]) -> None:
    """Adds them to the list that the step has."""
    attributes = step.attributes["backend_config"]
    listed = attributes["calls"].value.split(handlers.BETWEEN_KEYS) if "calls" in attributes else []
    listed += [key for key in keys if key not in listed]
    step.attributes["backend_config"] = ir.DictAttr.get(
        {"calls": ir.StringAttr.get(handlers.BETWEEN_KEYS.join(listed))})


def _around() -> Iterator[Any]:
    """The block that is being made, and those around it up to its function. JAX makes a function of
    a loop or a branch first, and then puts that where it belongs."""
    block = ir.InsertionPoint.current.block
    yield block
    inner = block.owner
    while inner.name != "func.func" and inner.parent is not None:
        outer = inner.parent
        for each in (block for region in outer.regions for block in region.blocks):
            count = len(each.operations)
            if count > 0 and each.operations[count - 1].operation == inner.operation:
                yield each
        inner = outer


def _open_functions(module: Any) -> Iterator[Any]:
    """The blocks of the functions that have no end yet: calls of what is made come there."""
    for each in module.body.operations:
        if each.operation.name == "func.func" and each.regions[0].blocks:
            block = each.regions[0].blocks[0]
            count = len(block.operations)
            if count == 0 or block.operations[count - 1].operation.name != "func.return":
                yield block


def _is_nothing(block: Any) -> bool:
    """Whether the block begins with what is put there."""
    if len(block.operations) == 0:
        return False
    attributes = block.operations[0].attributes
    return "call_target_name" in attributes and (
        attributes["call_target_name"].value == handlers.NOTHING)


def _do_nothing(operands: Sequence[Any]) -> None:
    # It has no result, whose memory another would have to wait for.
    stablehlo.CustomCallOp.build_generic(results=[], operands=operands, attributes={
        "call_target_name": ir.StringAttr.get(handlers.NOTHING),
        "has_side_effect": ir.BoolAttr.get(True),
        "api_version": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 4),
        "backend_config": ir.DictAttr.get({}),
    })


# Where the rest is lowered, not once for all.
mlir.register_lowering(side_by_side_p, _lower, cacheable=False)
