# SPDX-License-Identifier: Apache-2.0
"""The frameworks' classes of compression as libhvd knows them."""
from __future__ import annotations

from typing import Any


def wire_of(compression: Any) -> int | None:
    """The hvd_compression_t that does the same on the way; None for a class of the user's, also one
    that derives from ours."""
    return compression.__dict__.get("wire") if isinstance(compression, type) else None
