# SPDX-License-Identifier: Apache-2.0
"""A worker that behaves in a chosen way: python victim.py MODE. For tests/system/test_python.py."""
import contextlib
import os
import signal
import sys
import threading

import numpy as np

import hvd
from hvd._core.runtime import RUNTIME

MODES = {}


def mode(function):
    MODES[function.__name__.replace("_", "-")] = function
    return function


@mode
def leaves_without_shutdown():
    hvd.init()
    assert hvd.allreduce(np.ones(3), op=hvd.Sum)[0] == hvd.size()
    print("done", flush=True)


@mode
def raises_on_rank_1():
    """The others wait for it, and must be told that it has gone."""
    hvd.init()
    if hvd.rank() == 1:
        raise KeyError("out of cheese")
    try:
        hvd.allreduce(np.ones(3), name="never")
    except hvd.AbortedError as error:
        assert "rank 1" in str(error), error
        print("was told", flush=True)
        sys.exit(4)


@mode
def forks():
    """A child of fork gets a clean error, and does the parent no harm."""
    hvd.init()
    pending = hvd.allreduce_async(np.ones(4), "across the fork", hvd.Sum)
    bucket = hvd.Bucket([4])
    places = (hvd.is_initialized, hvd.rank, hvd.size, hvd.local_rank, hvd.local_size,
              hvd.cross_rank, hvd.cross_size, hvd.is_homogeneous)
    known = [ask() for ask in places]
    child = os.fork()
    if child == 0:
        if [ask() for ask in places] != known:
            os._exit(6)
        for call in (lambda: hvd.allreduce(np.ones(1)), hvd.init, pending.wait,
                     lambda: bucket.ready(0), hvd.barrier):
            try:
                call()
            except hvd.Error as error:
                assert "fork" in str(error) or "initialized" in str(error), error
            else:
                os._exit(5)
        del bucket
        sys.exit(0)  # with all that an exit does
    assert os.waitpid(child, 0)[1] == 0
    assert pending.wait()[0] == hvd.size()
    hvd.shutdown()
    print("done", flush=True)


@mode
def sessions():
    """A thousand epochs; memory, threads and descriptors do not grow."""
    def used():
        hvd.init()
        for _ in range(3):
            hvd.allreduce_async(np.ones(1000), op=hvd.Sum).wait()
        hvd.shutdown()
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    first = used()
    for _ in range(200):  # what is kept for later is kept then
        assert used() == first, (used(), first)
    before = resident()
    for _ in range(800):
        assert used() == first, (used(), first)
    assert resident() - before < 2**20, (resident(), before)  # 1300 bytes an epoch
    assert len(os.listdir("/proc/self/task")) < 50  # the kernel's; the last may still be ending
    print("done", flush=True)


@mode
def handles_signals():
    """A handler of the program's runs; hvd goes on."""
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    hvd.init()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert hvd.allreduce(np.ones(1), op=hvd.Sum)[0] == hvd.size() and seen
    print("done", flush=True)


@mode
def handles_a_signal_in_a_wait():
    """Rank 0 waits for the others, which come when its handler has met them."""
    hvd.init()
    if hvd.rank() == 0:
        signal.signal(signal.SIGALRM, lambda *_: hvd.allreduce_async(np.ones(1), "go").wait())
        signal.setitimer(signal.ITIMER_REAL, 0.3)
    else:
        hvd.allreduce_async(np.ones(1), "go").wait()
    assert hvd.allreduce_async(np.ones(1), "late", op=hvd.Sum).wait()[0] == hvd.size()
    print("done", flush=True)


@mode
def interrupted_in_a_wait():
    """An exception that a handler raises leaves the handle as it is."""
    hvd.init()
    if hvd.rank() == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        handle = hvd.allreduce_async(np.ones(1), "late", op=hvd.Sum)
        try:
            handle.wait()
        except KeyboardInterrupt:
            hvd.allreduce_async(np.ones(1), "go").wait()
        assert handle.wait()[0] == hvd.size()
    else:
        hvd.allreduce_async(np.ones(1), "go").wait()  # comes from within the interruption alone
        assert hvd.allreduce_async(np.ones(1), "late", op=hvd.Sum).wait()[0] == hvd.size()
    print("done", flush=True)


@mode
def is_told_to_end_at_exit():
    """Each stop that a program's handlers ask for, while it is in hvd's own handler of the exit."""
    hvd.init()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGINT, signal.SIGTERM)[hvd.rank() % 2:]:
        RUNTIME.before_leaving.append(lambda number=number: os.kill(os.getpid(), number))  # type: ignore[misc]
    assert hvd.allreduce(np.ones(3), op=hvd.Sum)[0] == hvd.size()
    print("done", flush=True)


@mode
def leaves_with_work():
    """Its handle, bucket and arrays are alive at exit."""
    global kept
    hvd.init()
    shared = hvd.alloc(1000)
    bucket = hvd.Bucket([1000, 7])
    bucket.ready(0)
    kept = [shared, bucket, bucket.view(1)]
    with contextlib.suppress(hvd.AbortedError):  # another has left already
        kept.append(hvd.allreduce_async(np.ones(1), f"{hvd.rank()}"))
    print("done", flush=True)


class Rows:
    """A dataset whose workers can ask for the rank where they have it by a fork, and need no hvd
    elsewhere."""

    def __init__(self, rank):
        self.rank = rank  # None: workers cannot know

    def __len__(self):
        return 16

    def __getitem__(self, index):
        import torch

        try:
            known = hvd.rank() if hvd.is_initialized() else None
        except hvd.NotInitializedError:
            return torch.tensor([-1.0])
        return torch.tensor([float(index) if known == self.rank else -1.0])


@mode
def loads_data():
    import torch

    import hvd.torch as ht

    ht.init()
    for how in ("fork", "spawn", "forkserver"):
        sampler = torch.utils.data.DistributedSampler(range(16), ht.size(), ht.rank(),
                                                              shuffle=False)
        rows = Rows(ht.rank() if how == "fork" else None)
        loader = torch.utils.data.DataLoader(rows, batch_size=4, sampler=sampler, num_workers=1,
                                             multiprocessing_context=how)
        total = 0.0
        for batch in loader:
            total += ht.allreduce(batch, op=ht.Sum, name=how).sum().item()
        assert total == sum(range(16)), (how, total)
    print("done", flush=True)


if __name__ == "__main__":
    MODES[sys.argv[1]]()
