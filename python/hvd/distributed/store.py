# SPDX-License-Identifier: Apache-2.0
"""The job's key-value store as torch.distributed's Store: `env://` without a port."""
from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlparse

import torch.distributed as dist

from .._core.library import LIBRARY
from .._core.runtime import RUNTIME
from ..store import Store as JobStore
from .forms import Timeout, as_time

if TYPE_CHECKING:  # torch's stubs do not say that dist has them
    from torch._C._distributed_c10d import PrefixStore
    from torch._C._distributed_c10d import Store as _Store
else:
    _Store, PrefixStore = dist.Store, dist.PrefixStore

_DEFAULT = timedelta(seconds=300)


class Store(_Store):
    """For torch's C++ too, which finds these methods by their names in any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._store = JobStore()
        self._limit = _DEFAULT

    @property
    def timeout(self) -> timedelta:
        return self._limit

    def set_timeout(self, timeout: Timeout) -> None:
        self._limit = as_time(timeout)

    def set(self, key: str, value: bytes | str) -> None:
        self._store.set(key, value)

    def get(self, key: str) -> bytes:
        return self._store.get(key, self._limit)

    def add(self, key: str, amount: int) -> int:
        return self._store.add(key, amount)

    def compare_set(self, key: str, expected: bytes | str, desired: bytes | str) -> bytes:
        now = self._store.compare_set(key, expected, desired)
        if now is not None:
            return now
        # If a key is not there, torch's stores return what was expected.
        return expected.encode() if isinstance(expected, str) else expected

    def check(self, keys: list[str]) -> bool:
        return self._store.check(keys)

    def wait(self, keys: list[str], timeout: Timeout | None = None) -> None:
        self._store.wait(keys, self._limit if timeout is None else timeout)

    def delete_key(self, key: str) -> bool:
        return self._store.delete(key)

    def num_keys(self) -> int:
        return self._store.num_keys()

    def clone(self) -> Store:
        return self

    def has_extended_api(self) -> bool:
        return False

    # As torch's C++ calls them.
    deleteKey = delete_key  # noqa: N815
    getNumKeys = num_keys  # noqa: N815


class _Rendezvous:
    """torch's C++ keeps a Store, but not its Python object; and each meeting has keys of its own,
    since the store outlives the groups."""

    def __init__(self) -> None:
        self.store: Store | None = None
        self.meetings = 0
        self._epoch = 0

    def next(self) -> str:
        """Members of an elastic job that are new have been at no meeting of earlier epochs."""
        if not RUNTIME.is_elastic():
            self.meetings += 1
            return str(self.meetings)
        epoch = RUNTIME.epoch_now().number
        self.meetings = self.meetings + 1 if epoch == self._epoch else 1
        self._epoch = epoch
        return f"epoch.{epoch}.{self.meetings}"


_RENDEZVOUS = _Rendezvous()


def at_rendezvous(url: str, timeout: timedelta) -> tuple[_Store, int, int]:
    """The tuple that a rendezvous handler yields: the store, this rank, and how many there are."""
    query = parse_qs(urlparse(url).query)
    rank, size = (int(_said(query, word, variable))
                  for word, variable in (("rank", "RANK"), ("world_size", "WORLD_SIZE")))
    if RUNTIME.is_elastic():
        # The launcher's words when it started this process may be of another epoch.
        RUNTIME.init(None, None)
        rank, size = RUNTIME.rank(), int(LIBRARY.held.hvd_size())
    if _RENDEZVOUS.store is None:
        _RENDEZVOUS.store = Store()
    _RENDEZVOUS.store.set_timeout(timeout)
    return PrefixStore(f"torch/{_RENDEZVOUS.next()}", _RENDEZVOUS.store), rank, size


def _said(query: dict[str, list[str]], word: str, variable: str) -> str:
    return query[word][0] if word in query else os.environ[variable]
