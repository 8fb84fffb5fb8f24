# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.util.threads, answered by hvd: what other packages use of it."""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence


def in_thread(target: Callable[..., object], args: Sequence[object] = (), name: str | None = None,
              daemon: bool = True, silent: bool = False) -> threading.Thread:
    """Starts a thread that calls target(*args), and returns it. `silent`: what it raises is
    dropped."""
    if not isinstance(args, tuple):
        raise ValueError(f"args must be a tuple, not {args!r}; for one argument write (argument,)")

    def call() -> None:
        try:
            target(*args)
        except Exception:
            if not silent:
                raise

    thread = threading.Thread(target=call, name=name, daemon=daemon)
    thread.start()
    return thread
