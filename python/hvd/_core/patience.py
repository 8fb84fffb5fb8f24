# SPDX-License-Identifier: Apache-2.0
"""Blocking calls of libhvd during which the handlers of signals run.

Python runs them in the main thread, between two of its instructions: a C function that waits for
other ranks would keep them waiting as long. The main thread therefore has another one make the
call, and waits for that, which signals interrupt. An exception of a handler leaves the wait; the
call goes on.
"""
from __future__ import annotations

import threading
from collections.abc import Callable

from .library import LIBRARY


def call(function: Callable[[], int]) -> None:
    """Calls it, and raises what it returns as an error."""
    if threading.current_thread() is threading.main_thread():
        _call_beside(function)
    else:
        LIBRARY.check(function())


def _call_beside(function: Callable[[], int]) -> None:
    failed: list[Exception] = []
    done = threading.Lock()
    done.acquire()

    def run() -> None:
        try:
            LIBRARY.check(function())  # the message is this thread's
        except Exception as error:
            failed.append(error)
        finally:
            done.release()

    thread = threading.Thread(target=run, name="hvd-wait", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is about to end: no thread can be started any more
        LIBRARY.check(function())
        return
    done.acquire()  # signals interrupt it
    thread.join()
    if failed:
        raise failed[0]
