# SPDX-License-Identifier: Apache-2.0
"""The job's key-value store, seen from Python on all ranks."""
import os
import signal
import threading
from datetime import timedelta

import pytest

import hvd

LONG = 120  # far more than any of it takes


@pytest.fixture
def store():
    return hvd.Store(LONG)


def named(request, what):
    return f"{request.node.name}.{what}"


def test_values_of_all_ranks(request, store, rank, size):
    store.set(named(request, rank), bytes([rank, 0, 255]))
    store.wait([named(request, other) for other in range(size)])
    for other in range(size):
        assert store.get(named(request, other)) == bytes([other, 0, 255])
    assert store.check([named(request, 0)]) and not store.check([named(request, "none")])
    hvd.barrier()
    store.set(named(request, rank), "täxt")
    assert store.get(named(request, rank), 0) == "täxt".encode()
    assert store.delete(named(request, rank)) and not store.delete(named(request, rank))


def test_counting_together(request, store, size):
    key = named(request, "n")
    for _ in range(100):
        store.add(key, 2)
    hvd.barrier()
    assert store.add(key, 0) == 200 * size
    assert store.get(key) == str(200 * size).encode()
    with pytest.raises(ValueError, match="64 bits"):
        store.add(key, 2**63)


def test_one_wins(request, store, rank, size):
    key = named(request, "chosen")
    assert store.compare_set(named(request, "absent"), b"x", b"y") is None
    found = store.compare_set(key, b"", str(rank))
    if found == str(rank).encode():
        store.add(named(request, "winners"), 1)
    hvd.barrier()
    assert store.get(named(request, "winners"), 0) == b"1"
    assert store.compare_set(key, found, b"") == b"" or size > 1


def test_time_is_over(request, store):
    with pytest.raises(hvd.TimedOutError, match="nobody has set.*none"):
        store.get(named(request, "none"), 0)
    with pytest.raises(TimeoutError, match="within"):
        store.wait([named(request, "none")], timedelta(milliseconds=20))
    with pytest.raises(ValueError, match="negative"):
        store.get("k", -1)


def test_what_is_no_key_and_no_value(store):
    with pytest.raises(hvd.InvalidError, match="NUL"):
        store.set("a\0b", b"")
    with pytest.raises(hvd.InvalidError, match="at most 4096"):
        store.set(4097 * "k", b"")
    with pytest.raises(hvd.InvalidError, match="at most 16777216"):
        store.set("k", bytes(2**24 + 1))
    with pytest.raises(hvd.InvalidError, match="several"):
        store.wait("key")


def test_keys_are_counted(request, store, rank):
    hvd.barrier()
    if rank == 0:
        before = store.num_keys()
        store.set(named(request, "one more"), b"")
        assert store.num_keys() == before + 1
    hvd.barrier()


def test_threads_wait_beside_one_another(request, store, rank):
    got = {}

    def wait_for(what):
        got[what] = store.get(named(request, f"{rank}.{what}"))

    threads = [threading.Thread(target=wait_for, args=(what,)) for what in range(5)]
    for thread in threads:
        thread.start()
    for what in range(5):
        store.set(named(request, f"{rank}.{what}"), str(what))
    for thread in threads:
        thread.join()
    assert got == {what: str(what).encode() for what in range(5)}


class Rung(Exception):
    """Raised by the signal's handler."""


def test_a_handler_may_end_a_wait(request, store, rank):
    raised = threading.Event()

    def ring(_, frame):
        while frame is not None and frame.f_code is not hvd.Store.get.__code__:
            frame = frame.f_back
        if frame is not None:  # it waits
            raised.set()
            raise Rung

    def keep_ringing():
        while not raised.wait(0.01):
            os.kill(os.getpid(), signal.SIGUSR1)

    waiting = named(request, rank)
    before = signal.signal(signal.SIGUSR1, ring)
    rings = threading.Thread(target=keep_ringing)
    rings.start()
    try:
        with pytest.raises(Rung):
            store.get(waiting, None)
    finally:
        raised.set()
        rings.join()
        signal.signal(signal.SIGUSR1, before)
    store.set(waiting, b"later")
    assert store.get(waiting) == b"later"
