# SPDX-License-Identifier: Apache-2.0
"""Calls that wait for other ranks, and whether handlers of signals run meanwhile.

Rank 0 makes the call; the others come only when a handler has run on rank 0 in the middle of it. If
none can, the test fails instead of hanging: they come anyhow when patience is at its end.
"""
import os
import signal
import sys
import threading
import time

import hvd

PATIENCE = 60.0  # seconds, in which a handler must have run
_BETWEEN_LOOKS = 0.03


class Ringing:
    """In this scope SIGUSR1 comes whenever the main thread stands still within `call`, until its
    handler has run. `heard`: whether it has."""

    def __init__(self, call, heard):
        self._call = call.__code__
        self._tell = heard
        self._over = threading.Event()
        self._has_run = False
        self.heard = False

    def __enter__(self):
        self._before = signal.signal(signal.SIGUSR1, self._handle)
        self._thread = threading.Thread(target=self._ring)
        self._thread.start()
        return self

    def _handle(self, _, frame):
        self._has_run = True

    def _place(self):
        """Where the main thread is, if that is within the call."""
        innermost = frame = sys._current_frames().get(threading.main_thread().ident)
        while frame is not None and frame.f_code is not self._call:
            frame = frame.f_back
        return None if frame is None else (id(innermost), innermost.f_lasti)

    def _ring(self):
        end, before = time.monotonic() + PATIENCE, None
        while not self._has_run and time.monotonic() < end and not self._over.wait(_BETWEEN_LOOKS):
            place = self._place()
            if place is not None and place == before:
                os.kill(os.getpid(), signal.SIGUSR1)
            before = place
        self.heard = self._has_run  # what runs later has waited for the others
        self._tell()

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        signal.signal(signal.SIGUSR1, self._before)


def must_be_heard(key, mine, others=None):
    """Rank 0 calls `mine`, the others `others`, or the same. Returns what that returned."""
    store, key = hvd.Store(), f"interrupted.{key}"
    if os.environ["HVD_RANK"] != "0":
        store.get(key, None)
        return (others or mine)()

    def call():
        return mine()

    with Ringing(call, lambda: store.set(key, b"")) as ringing:
        answer = call()
    assert ringing.heard, f"no handler ran while {key} waited"
    return answer
