# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util.host_hash, answered by hvd."""
from __future__ import annotations

import hashlib
import os
import socket

NAMESPACE_PATH = "/proc/self/ns"


def _namespaces() -> str:
    if not os.path.exists(NAMESPACE_PATH):
        return ""
    return " ".join(os.readlink(os.path.join(NAMESPACE_PATH, name))
                    for name in sorted(os.listdir(NAMESPACE_PATH)))


def _hash(string: str) -> str:
    return hashlib.md5(string.encode("ascii"), usedforsecurity=False).hexdigest()


def host_hash(salt: object = None) -> str:
    """A name for what shares memory with this process: the host's, and a hash of that and of the
    namespaces, with `salt`."""
    name = socket.gethostname()
    whole = f"{name}-{_namespaces()}" + (f"-{salt}" if salt else "")
    return f"{name.split('.')[0]}-{_hash(whole)}"
