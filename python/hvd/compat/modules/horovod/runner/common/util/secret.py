# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util.secret, answered by hvd."""
from __future__ import annotations

import hashlib
import hmac
import os

SECRET_LENGTH = 32  # bytes
DIGEST_LENGTH = 32  # bytes
HOROVOD_SECRET_KEY = "_HOROVOD_SECRET_KEY"


def make_secret_key() -> bytes:
    """A new key."""
    return os.urandom(SECRET_LENGTH)


def compute_digest(key: bytes, message: bytes) -> bytes:
    """The digest that only those who know the key can make of the message."""
    return hmac.new(key, message, hashlib.sha256).digest()


def check_digest(key: bytes, message: bytes, digest: bytes) -> bool:
    """Whether the digest is that of the message."""
    return hmac.compare_digest(compute_digest(key, message), digest)
