# SPDX-License-Identifier: Apache-2.0
"""Keras on JAX: by hvd.jax, within the compiled step. All gradients travel in one group."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ... import jax as hvd
from ..._core import abi
from ..._core.compression import wire_of
from ..._names import shown
from ...basics import global_process_set
from ...jax.calls import Call
from ...jax.collectives import reduce_named
from ...process_sets import ProcessSet
from .settings import Settings, in_meeting_order

# Ranks make their optimizers in one order. A count of what is traced would not do: a rank whose
# last batch has another length traces its step again.
_numbers = itertools.count(1)


class _Compressor:
    """None of its own: arrays stay as they are."""

    wire = abi.COMPRESSION_NONE
    small: Any = None

    @classmethod
    def compress(cls, tensor: Any) -> tuple[Any, Any]:
        """The smaller array, and what decompress will need."""
        if cls.small is None or not jnp.issubdtype(tensor.dtype, jnp.floating):
            return tensor, tensor.dtype
        return tensor.astype(cls.small), tensor.dtype

    @classmethod
    def decompress(cls, tensor: Any, ctx: Any) -> Any:
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


_BY_WIRE: dict[Any, Any] = {each.wire: each for each in (_Compressor, _Fp16, _Bf16)}


def _compressor(asked: Any) -> Any:
    """Also for another framework's Compression.fp16; a class of the user's is used as it is."""
    return _BY_WIRE.get(wire_of(asked), asked) if asked is not None else _Compressor


class Reduction:
    """The reduction of one optimizer; its calls have a name, which is the same on all ranks."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._compressor = _compressor(settings.compression)
        self._name = f"keras.{next(_numbers)}"

    key_of = staticmethod(id)

    def reduce(self, found: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """The gradients of all ranks; a None stays None."""
        return in_meeting_order(
            found, variables, lambda ordered, contents: self._together(
                ordered, self._settings.op, self._compressor, self._settings.scales, "", contents))

    def greatest(self, found: Sequence[Any]) -> list[Any]:
        """The greatest of all ranks', element by element."""
        return self._together(found, hvd.Max, _Compressor, (1.0, 1.0), ".greatest")

    def scale_local(self, gradient: Any) -> Any:
        """A gradient that is not reduced, as large as if the others' had been zero."""
        members = self._settings.process_set.size() or 1
        return gradient if gradient is None or members == 1 else gradient / members

    def all_true(self, flag: Any) -> Any:
        """Whether it is true on all ranks of the process set."""
        flags = jnp.asarray(flag).astype(jnp.int32)
        return self._together([flags], hvd.Min, _Compressor, (1.0, 1.0), ".finite")[0] != 0

    def _together(self, found: Sequence[Any], op: int, compressor: Any,
                  scales: tuple[float, float], suffix: str, contents: Sequence[str] = ()
                  ) -> list[Any]:
        there = [i for i, each in enumerate(found) if each is not None]
        results = list(found)
        if not there or not self._settings.process_set.included():
            return results
        small = [compressor.compress(found[i]) for i in there]
        reduced = reduce_named([each for each, _ in small], Call(
            "allreduce", self._settings.process_set, self._name + suffix, op, 0, *scales,
            contents=shown([contents[i] for i in there] if contents else ())))
        for i, each, (_, context) in zip(there, reduced, small, strict=True):
            results[i] = compressor.decompress(each, context)
        return results


def at_update(optimizer: Any, change: Callable[[list[Any]], list[Any]], found: list[Any]
              ) -> list[Any]:
    """Keras computes a step each time and drops what is not yet due; the ranks' exchange is in a
    branch of its own."""
    due = (optimizer._iterations.value + 1) % optimizer.gradient_accumulation_steps == 0
    return list(jax.lax.cond(due, change, lambda unchanged: unchanged, list(found)))


def allreduce(value: Any, name: str | None, op: int, prescale: float, postscale: float,
              compression: Any, process_set: ProcessSet) -> Any:
    """See functions.allreduce."""
    compressor = _compressor(compression)
    small, context = compressor.compress(jnp.asarray(value))
    return compressor.decompress(
        hvd.allreduce(small, op, name=name, prescale_factor=prescale, postscale_factor=postscale,
                      process_set=process_set), context)


def allgather(value: Any, name: str | None) -> Any:
    """See functions.allgather."""
    return hvd.allgather(jnp.asarray(value), name=name)


def broadcast(value: Any, root_rank: int, name: str | None) -> Any:
    """See functions.broadcast."""
    return hvd.broadcast(jnp.asarray(value), root_rank, name=name)


def reducescatter(value: Any, name: str | None, op: int) -> Any:
    """See functions.reducescatter."""
    return hvd.reducescatter(jnp.asarray(value), op, name=name)


def sum_over_ranks(value: Any, name: str,
                   process_set: ProcessSet = global_process_set) -> Any:
    """The sum of all ranks' values, which can be differentiated."""
    return hvd.allreduce(value, hvd.Sum, name=name, process_set=process_set)
