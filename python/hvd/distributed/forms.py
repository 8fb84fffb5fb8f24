# SPDX-License-Identifier: Apache-2.0
"""The forms in which c10d gives its arguments, read."""
from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .._core import errors

NO_TIMEOUT = timedelta(0)
Timeout = timedelta | float  # seconds, as torch's own groups take them
# A tensor, or several; and a list of such for each tensor of a call.
Given = torch.Tensor | Sequence[torch.Tensor]
GivenLists = Sequence[torch.Tensor] | Sequence[Sequence[torch.Tensor]]


class Alone:
    """Options of a call whose end nobody but its waiter wants to know."""

    asyncOp = False  # noqa: N815 - torch's name
    timeout = NO_TIMEOUT


ALONE = Alone()


def as_time(timeout: Timeout) -> timedelta:
    """TypeError for what is neither."""
    if isinstance(timeout, timedelta):
        return timeout
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool):
        return timedelta(seconds=timeout)
    raise TypeError(f"a timeout is a timedelta or a number of seconds, not {timeout!r}")


def listed(given: Given) -> list[torch.Tensor]:
    return [given] if isinstance(given, torch.Tensor) else list(given)


def first_list(given: GivenLists) -> Sequence[torch.Tensor]:
    """The list of the first tensor; or `given` itself, where that is one."""
    found: Any = given[0] if isinstance(given[0], (list, tuple)) else given
    parts: Sequence[torch.Tensor] = found
    return parts


def reduce_op(opts: object) -> object:
    """The op of c10d's options; or the op itself, as the methods' short forms take it."""
    if opts is None or isinstance(opts, int):
        return dist.ReduceOp.SUM
    return getattr(opts, "reduceOp", opts)


def root_of(opts: Any) -> int:
    """The root of c10d's options; or the group rank itself, as the methods' short forms take it."""
    return int(getattr(opts, "rootRank", opts))


def check_width(source: torch.Tensor, target: torch.Tensor, what: str) -> None:
    if source.shape[1] != target.shape[1]:
        raise errors.invalid(f"{what}'s output has {target.shape[1]} elements, and its share of "
                             f"the input {source.shape[1]}")


def elements(tensor: torch.Tensor, sizes: Sequence[int], flat: int, ranks: int) -> list[int]:
    """Rows for each rank as elements of the flat tensor. No sizes: even shares."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if rows % ranks:
            raise errors.invalid(f"all_to_all cannot share {rows} rows evenly among {ranks} ranks")
        return [flat // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != rows or min(sizes) < 0:
        raise errors.invalid(f"all_to_all's splits {list(sizes)} do not share {rows} rows among "
                             f"{ranks} ranks")
    row = flat // rows if rows else 0
    return [size * row for size in sizes]
