# SPDX-License-Identifier: Apache-2.0
"""Keras on JAX: by hvd.jax, within the compiled step. All gradients travel in one group."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from ... import jax as hvd
from ..._core import abi
from ..._core.compression import Compresses, wire_of
from ..._names import shown
from ...basics import global_process_set
from ...jax.calls import Call
from ...jax.collectives import reduce_named
from ...process_sets import ProcessSet
from .settings import Settings, in_meeting_order

if TYPE_CHECKING:
    import keras
    from jax.typing import DTypeLike

Gradient = jax.Array | None

# Ranks make their optimizers in one order. A count of what is traced would not do: a rank whose
# last batch has another length traces its step again.
_numbers = itertools.count(1)


class _Compressor:
    """None of its own: arrays stay as they are."""

    wire = abi.COMPRESSION_NONE
    small: DTypeLike | None = None

    @classmethod
    def compress(cls, tensor: jax.Array) -> tuple[jax.Array, jnp.dtype]:
        """The smaller array, and what decompress will need."""
        if cls.small is None or not jnp.issubdtype(tensor.dtype, jnp.floating):
            return tensor, tensor.dtype
        return tensor.astype(cls.small), tensor.dtype

    @classmethod
    def decompress(cls, tensor: jax.Array, ctx: jnp.dtype) -> jax.Array:
        """The array as it was, up to rounding."""
        return tensor.astype(ctx)


class _Fp16(_Compressor):
    """Floats as float16."""

    wire = abi.COMPRESSION_FP16
    small = jnp.float16


class _Bf16(_Compressor):
    """Floats as bfloat16."""

    wire = abi.COMPRESSION_BF16
    small = jnp.bfloat16


class Compression:
    """The compressions there are."""

    none = _Compressor
    fp16 = _Fp16
    bf16 = _Bf16


_BY_WIRE: dict[int | None, Compresses[jax.Array]] = {
    each.wire: each for each in (_Compressor, _Fp16, _Bf16)}


def _compressor(asked: Compresses[jax.Array] | None) -> Compresses[jax.Array]:
    """Also for another framework's Compression.fp16; a class of the user's is used as it is."""
    return _BY_WIRE.get(wire_of(asked), asked) if asked is not None else _Compressor


class Reduction:
    """The reduction of one optimizer; its calls have a name, which is the same on all ranks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._compressor = _compressor(settings.compression)
        self._name = f"keras.{next(_numbers)}"

    key_of = staticmethod(id)

    def reduce(self, found: Sequence[Gradient], variables: Sequence[object]) -> list[Gradient]:
        """The gradients of all ranks; a None stays None."""
        return in_meeting_order(
            found, variables, lambda ordered, contents: self._together(
                ordered, self._settings.op, self._compressor, self._settings.scales, "", contents))

    def greatest(self, found: Sequence[Gradient]) -> list[Gradient]:
        """The greatest of all ranks', element by element."""
        return self._together(found, hvd.Max, _Compressor, (1.0, 1.0), ".greatest")

    def scale_local(self, gradient: Gradient) -> Gradient:
        """A gradient that is not reduced, as large as if the others' had been zero."""
        members = self._settings.process_set.size() or 1
        return gradient if gradient is None or members == 1 else gradient / members

    def all_true(self, flag: jax.typing.ArrayLike) -> jax.Array:
        """Whether it is true on all ranks of the process set."""
        flags = jnp.asarray(flag).astype(jnp.int32)
        least = self._together([flags], hvd.Min, _Compressor, (1.0, 1.0), ".finite")[0]
        assert least is not None
        return least != 0

    def _together(self, found: Sequence[Gradient], op: int, compressor: Compresses[jax.Array],
                  scales: tuple[float, float], suffix: str, contents: Sequence[str] = ()
                  ) -> list[Gradient]:
        there = [i for i, each in enumerate(found) if each is not None]
        results = list(found)
        if not there or not self._settings.process_set.included():
            return results
        small = [compressor.compress(each) for each in found if each is not None]
        reduced = reduce_named([each for each, _ in small], Call(
            "allreduce", self._settings.process_set, self._name + suffix, op, 0, *scales,
            contents=shown([contents[i] for i in there] if contents else ())))
        for i, each, (_, context) in zip(there, reduced, small, strict=True):
            results[i] = compressor.decompress(each, context)
        return results


def at_update(optimizer: keras.optimizers.Optimizer,
              change: Callable[[list[Gradient]], list[Gradient]], found: list[Gradient]
              ) -> list[Gradient]:
    """Keras computes a step each time and drops what is not yet due; the ranks' exchange is in a
    branch of its own."""
    due = (optimizer._iterations.value + 1) % optimizer.gradient_accumulation_steps == 0
    return list(jax.lax.cond(due, change, lambda unchanged: unchanged, list(found)))


def allreduce(value: jax.typing.ArrayLike, name: str | None, op: int, prescale: float,
              postscale: float,
              compression: Compresses[jax.Array] | None, process_set: ProcessSet) -> jax.Array:
    """See functions.allreduce."""
    compressor = _compressor(compression)
    small, context = compressor.compress(jnp.asarray(value))
    return compressor.decompress(
        hvd.allreduce(small, op, name=name, prescale_factor=prescale, postscale_factor=postscale,
                      process_set=process_set), context)


def allgather(value: jax.typing.ArrayLike, name: str | None) -> jax.Array:
    """See functions.allgather."""
    result: jax.Array = hvd.allgather(jnp.asarray(value), name=name)
    return result


def broadcast(value: jax.typing.ArrayLike, root_rank: int, name: str | None) -> jax.Array:
    """See functions.broadcast."""
    result: jax.Array = hvd.broadcast(jnp.asarray(value), root_rank, name=name)
    return result


def reducescatter(value: jax.typing.ArrayLike, name: str | None, op: int) -> jax.Array:
    """See functions.reducescatter."""
    result: jax.Array = hvd.reducescatter(jnp.asarray(value), op, name=name)
    return result


def sum_over_ranks(value: jax.Array, name: str,
                   process_set: ProcessSet = global_process_set) -> jax.Array:
    """The sum of all ranks' values, which can be differentiated."""
    total: jax.Array = hvd.allreduce(value, hvd.Sum, name=name, process_set=process_set)
    return total
