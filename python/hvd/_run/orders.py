# SPDX-License-Identifier: Apache-2.0
"""An order for the ranks of hvd.run in their environment, where late ones find it, too."""
from __future__ import annotations

import base64
import zlib
from typing import TypedDict

from .._core import errors

VARIABLE = "_HVD_RUN_ORDER"  # not HVD_: it is no setting
_MOST = 96 * 1024  # the kernel takes 128 KiB for a variable


class Call(TypedDict):
    """The caller's word to all ranks: `call` is the pickled function with its arguments, `path`
    where it may find modules."""

    call: bytes
    path: list[str]


class Order(Call):
    """A call as it travels. `word` begins each frame of the job."""

    word: str


class Said(TypedDict, total=False):
    """A rank's word to the caller: `result`, pickled; or its error's class, `text`, and whether
    that is a consequence of another rank's end."""

    rank: int
    host: str
    result: bytes
    error: str
    text: str
    consequence: bool


def packed(order: bytes) -> str:
    """UnsupportedError when it is too long for a variable."""
    text = base64.b64encode(zlib.compress(order)).decode()
    if len(text) > _MOST:
        raise errors.unsupported(
            "hvd.run: in an elastic job the function and its arguments may have "
            f"{_MOST >> 10} KiB, packed, and have {len(text) >> 10} KiB; let the function read its "
            "data itself")
    return text


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
