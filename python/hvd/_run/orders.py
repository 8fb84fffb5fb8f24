# SPDX-License-Identifier: Apache-2.0
"""An order for the ranks of hvd.run in their environment, where late ones find it, too."""
from __future__ import annotations

import base64
import zlib

from .._core import errors

VARIABLE = "_HVD_RUN_ORDER"  # not HVD_: it is no setting
_MOST = 96 * 1024  # the kernel takes 128 KiB for a variable


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
