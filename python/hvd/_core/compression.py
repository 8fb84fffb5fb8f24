# SPDX-License-Identifier: Apache-2.0
"""The frameworks' classes of compression as libhvd knows them."""
from __future__ import annotations

from typing import Any, Protocol, TypeVar

T = TypeVar("T")  # a kind of tensor


class Compresses(Protocol[T]):
    """The interface of a class of compression, also of one that the program has written."""

    def compress(self, tensor: T, /) -> tuple[T, Any]:
        """The smaller tensor, and what decompress will need."""

    def decompress(self, tensor: T, ctx: Any, /) -> T:
        """The tensor as it was, up to rounding."""


def wire_of(compression: object) -> int | None:
    """The hvd_compression_t that does the same on the way; None for a class of the user's, also one
    that derives from ours."""
    return compression.__dict__.get("wire") if isinstance(compression, type) else None
