# SPDX-License-Identifier: Apache-2.0
"""The meaning of Horovod's older arguments beside the newer ones."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeAlias

from ._core import abi

# A number of groups, or the variables of each.
Groups: TypeAlias = "int | Sequence[Sequence[object]] | None"


def op_of(op: int | None, average: bool | None) -> int:
    """The op that `op` and Horovod's older `average` mean together."""
    if op is not None:
        if average is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of "
                             "them.")
        return op
    if average is None:
        return abi.AVERAGE
    warnings.warn("Parameter `average` has been replaced with `op`: hvd.Average or hvd.Sum.",
                  DeprecationWarning, stacklevel=3)
    return abi.AVERAGE if average else abi.SUM


def groups_asked(num_groups: int, groups: Groups) -> Groups:
    """The groups that `groups` and Horovod's older `num_groups` mean together."""
    if num_groups:
        warnings.warn("Parameter `num_groups` has been replaced by `groups`.", DeprecationWarning,
                      stacklevel=3)
        groups = num_groups if groups is None else groups
    if groups is None or (isinstance(groups, int) and groups >= 0):
        return groups or None
    if isinstance(groups, (list, tuple)) and all(isinstance(one, (list, tuple)) for one in groups):
        return groups
    raise ValueError("groups should be a non-negative integer or a list of lists of variables")
