# SPDX-License-Identifier: Apache-2.0
"""The handlers of signals run while the main thread waits for other ranks.

On rank 0 a signal comes again and again; its handler lets the others begin, but only when it
interrupts the wait: if it did not run there, nobody would ever go on.
"""
import os
import signal
import threading

import numpy as np
import pytest

import hvd
from hvd import buckets
from hvd._core import handles, patience

# Where the main thread is when it waits.
WAITS = {patience._call_beside.__code__, handles.Handle._finish.__code__,
         buckets.Bucket.wait.__code__, buckets.Bucket.wait_tensor.__code__}


def waits(frame):
    while frame is not None and frame.f_code not in WAITS:
        frame = frame.f_back
    return frame is not None


class Ringing:
    """In this scope a signal comes every 10 ms, until `heard` of one that interrupts a wait."""

    def __init__(self, heard):
        self._heard = heard
        self._over = threading.Event()

    def __enter__(self):
        self._before = signal.signal(signal.SIGUSR1, self._ring)
        self._thread = threading.Thread(target=self._keep_ringing)
        self._thread.start()

    def _ring(self, _, frame):
        if waits(frame) and not self._over.is_set():
            self._over.set()
            self._heard()

    def _keep_ringing(self):
        while not self._over.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        signal.signal(signal.SIGUSR1, self._before)


def bucket_of_ones():
    bucket = hvd.Bucket([4, 5000], op=hvd.Sum, chunk_bytes=4096)
    for index, count in enumerate(bucket.counts):
        bucket.put(index, np.ones(count))
    return bucket


def ask_for_bucket():
    bucket = bucket_of_ones()
    bucket.wait()
    return bucket.view(1)[4999]


def ask_for_tensor():
    bucket = bucket_of_ones()
    bucket.wait_tensor(1)
    total = bucket.view(1)[4999]
    bucket.wait()
    return total


def ask_by_torch():
    torch = pytest.importorskip("torch")
    import hvd.torch
    return hvd.torch.allreduce(torch.ones(30000), op=hvd.torch.Sum)[29999].item()


ASKS = {
    "allreduce": lambda: hvd.allreduce(np.ones(4), op=hvd.Sum)[3],
    "large": lambda: hvd.allreduce(np.ones(100000), op=hvd.Sum)[99999],
    "in place": lambda: hvd.allreduce_(np.ones(4), op=hvd.Sum)[3],
    "torch": ask_by_torch,
    "gather": lambda: hvd.allgather(np.ones(1)).sum(),
    "barrier": hvd.barrier,
    "join": hvd.join,
    "bucket": ask_for_bucket,
    "tensor": ask_for_tensor,
}


@pytest.mark.parametrize("what", ASKS)
def test_a_handler_runs_in_a_wait(rank, size, several, what):
    store, key = hvd.Store(), f"signals.{what}"
    if what == "torch":
        pytest.importorskip("torch")
    if rank == 0:
        with Ringing(lambda: store.set(key, b"")):
            answer = ASKS[what]()
    else:
        store.get(key, None)
        answer = ASKS[what]()
    assert what in ("barrier", "join") or answer == size


class Rung(Exception):
    """Raised by a handler."""


def test_what_a_handler_raises_ends_the_wait(rank, size, several):
    store = hvd.Store()
    for kind in ("allreduce", "barrier"):
        if rank == 0:
            def ring():
                raise Rung
            with pytest.raises(Rung), Ringing(ring):
                ASKS[kind]()
            store.set(f"signals.raised.{kind}", b"")
        else:
            store.get(f"signals.raised.{kind}", None)
            ASKS[kind]()  # that of rank 0 goes on
    assert hvd.allreduce(np.ones(3), "after it", op=hvd.Sum)[0] == size


def test_leaving_and_joining(rank, size, several):
    """hvd.init and hvd.shutdown wait for the others too."""
    store = hvd.Store()
    for call, key in ((hvd.shutdown, "signals.shutdown"), (hvd.init, "signals.init")):
        if rank == 0:
            with Ringing(lambda key=key: store.set(key, b"")):
                call()
        else:
            store.get(key, None)
            call()
    assert hvd.allreduce(np.ones(3), op=hvd.Sum)[0] == size
