# SPDX-License-Identifier: Apache-2.0
"""c10d's reductions in hvd's words."""
from __future__ import annotations

from typing import NamedTuple

import torch
import torch.distributed as dist

from .._core import abi, errors

_OPS = {dist.ReduceOp.SUM: abi.SUM, dist.ReduceOp.AVG: abi.AVERAGE,
        dist.ReduceOp.PRODUCT: abi.PRODUCT, dist.ReduceOp.MIN: abi.MIN,
        dist.ReduceOp.MAX: abi.MAX, dist.ReduceOp.BAND: abi.BAND,
        dist.ReduceOp.BOR: abi.BOR, dist.ReduceOp.BXOR: abi.BXOR}


class Reduction(NamedTuple):
    """An hvd_op_t, and what each input is multiplied by first."""

    op: int
    prescale: float = 1.0


def reduction(given: object) -> Reduction:
    """The reduction that c10d's ReduceOp asks for. InvalidError for one that hvd has not."""
    kind = getattr(given, "op", given)
    if kind == dist.ReduceOp.PREMUL_SUM:
        return Reduction(abi.SUM, _factor(given))
    if kind not in _OPS:
        raise errors.invalid(f'backend "hvd" has no reduction {kind}')
    return Reduction(_OPS[kind])


def _factor(given: object) -> float:
    factor = given.__getstate__()[1]  # type: ignore[attr-defined]  # as a ReduceOp is pickled
    if isinstance(factor, torch.Tensor):
        if factor.numel() != 1:
            raise errors.invalid("PREMUL_SUM takes one factor for all elements")
        return float(factor.item())
    return float(factor)
