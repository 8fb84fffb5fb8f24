# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util.codec, answered by hvd: objects as text. Text that is read is run as
code."""
from __future__ import annotations

import base64
import pickle
from typing import Any

from hvd.objects import pickler as _pickler


def dumps_base64(obj: object, to_ascii: bool = True) -> str | bytes:
    """The object, pickled, as text; or as the text's bytes."""
    encoded = base64.b64encode(_pickler.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL))
    return encoded.decode("ascii") if to_ascii else encoded


def loads_base64(encoded: str | bytes) -> Any:
    """The object of such a text."""
    return pickle.loads(base64.b64decode(encoded))
