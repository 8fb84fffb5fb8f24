# SPDX-License-Identifier: Apache-2.0
"""The questions that SyncBatchNormalization of both Keras asks first."""
from __future__ import annotations

from ..basics import is_initialized, size


def alone() -> bool:
    """Whether there are no others to ask."""
    return not is_initialized() or size() == 1


def must_not_be_fused(fused: bool | None) -> None:
    """Keras' fused kernels know only their own batch."""
    if fused in (True, None):
        raise ValueError("SyncBatchNormalization does not support fused=True.")
