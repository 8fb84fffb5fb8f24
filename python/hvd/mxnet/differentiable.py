# SPDX-License-Identifier: Apache-2.0
"""The collectives that make new arrays, with gradients while MXNet's autograd records.

Gradients are as in hvd.torch: that of an allreduce is the same allreduce, that of an allgather the
average of the ranks' gradients of this rank's rows, that of a broadcast the average on its root,
that of a reducescatter an allgather, and that of an alltoall the way back. MXNet asks for them on
threads of its own, in any order: their names say what belongs together.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mxnet
import numpy as np

from .._core import abi, errors
from .._core.runtime import RUNTIME
from . import engine
from .engine import Asked, NDArray

Arrays = Sequence[NDArray]


class _Recorded(mxnet.autograd.Function):
    """A call that autograd remembers."""

    def __init__(self, call: Callable[[Arrays], Arrays],
                 gradients: Callable[[Arrays], Arrays]) -> None:
        super().__init__()
        self._call = call
        self._gradients = gradients

    def forward(self, *tensors: NDArray) -> NDArray | tuple[NDArray, ...]:
        """See autograd.Function."""
        try:
            return _alone(self._call(tensors))
        except Exception:
            mxnet.autograd.set_recording(True)  # as it was; MXNet forgets it
            raise

    def backward(self, *gradients: NDArray) -> NDArray | tuple[NDArray, ...]:
        """See autograd.Function."""
        return _alone(self._gradients(gradients))


def _alone(arrays: Arrays) -> NDArray | tuple[NDArray, ...]:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _run(call: Callable[[Arrays], Arrays], gradients: Callable[[Arrays], Arrays],
         tensors: Arrays) -> list[NDArray]:
    if not mxnet.autograd.is_recording():
        return list(call(tensors))
    found = _Recorded(call, gradients)(*tensors)
    return [found] if len(tensors) == 1 else list(found)


def _behind(asked: Asked, kind: str, what: str = "gradient", **words: Any) -> Callable[..., Asked]:
    """Makes the call of a gradient, of so many arrays."""
    return lambda count: Asked(kind, f"{asked.own_name}.{what}", asked.process_set, asked.priority,
                               group=count > 1, **words)


# ---- elementwise, and reducescatter ----

def new(asked: Asked, tensors: Arrays) -> list[NDArray]:
    """As engine.new."""
    return _run(lambda arrays: engine.new(asked, arrays),
                lambda gradients: _gradients(asked, gradients), tensors)


def _gradients(asked: Asked, gradients: Arrays) -> Arrays:
    count = len(gradients)
    if asked.kind == "broadcast":
        totals = engine.new(_behind(asked, "allreduce")(count), gradients)
        mine = RUNTIME.rank() == asked.words["root"]
        return totals if mine else [mxnet.nd.zeros_like(total) for total in totals]
    if asked.kind == "reducescatter":
        _check_op(asked, abi.AVERAGE, abi.SUM)
        average = asked.words["op"] == abi.AVERAGE
        scale = asked.words["prescale"] * asked.words["postscale"] * (
            1 if average else len(asked.process_set.ranks))
        whole, _ = engine.gathered(_behind(asked, "allgather")(count), gradients)
        return [_scaled(each, scale) for each in whole]
    _check_op(asked, abi.AVERAGE, abi.SUM, abi.ADASUM)
    return engine.new(_behind(asked, "allreduce", **asked.words)(count), gradients)


def _scaled(array: NDArray, factor: float) -> NDArray:
    """MXNet makes the factor an integer where the array has integers."""
    if array.dtype in (np.float16, np.float32, np.float64):
        return array * factor
    return (array.astype("float64") * factor).astype(array.dtype)


def _check_op(asked: Asked, *differentiable: int) -> None:
    if asked.words["op"] not in differentiable:
        raise errors.invalid(f"hvd.mxnet has no gradient of a {asked.kind} of this op")


# ---- those that gather ----

def gathered(asked: Asked, tensors: Arrays, splits: Sequence[int] | None = None,
             members: int = 0) -> tuple[list[NDArray], list[int]]:
    """As engine.gathered."""
    received: list[int] = []

    def call(arrays: Arrays) -> Arrays:
        made, rows = engine.gathered(asked, arrays, splits, members)
        received.extend(rows)
        return made

    def gradients(given: Arrays) -> Arrays:
        if asked.kind == "alltoall":
            return engine.gathered(_behind(asked, "alltoall")(1), given, received)[0]
        return _own_rows(asked, given, [each.shape[0] for each in tensors])

    return _run(call, gradients, tensors), received


def _own_rows(asked: Asked, gradients: Arrays, rows: list[int]) -> Arrays:
    """The gradients of an allgather's inputs."""
    totals = engine.new(_behind(asked, "allreduce")(len(rows)), gradients)
    counts = engine.gathered(_behind(asked, "allgather", "rows")(1),
                             [mxnet.nd.array([rows], dtype="int64")])[0][0]
    before = counts.asnumpy()[:asked.process_set.rank()].sum(0).tolist()
    return [total[first:first + own]
            for total, first, own in zip(totals, before, rows, strict=True)]
