# SPDX-License-Identifier: Apache-2.0
"""The handlers of signals run in every public function that waits for other ranks."""
import functools
import inspect

import numpy as np
import pytest
from interrupted import must_be_heard

import hvd
from hvd._core.runtime import RUNTIME

ONES = np.ones(5, np.float32)


def several_ones():
    return [np.ones(5, np.float32), np.ones((2, 3), np.float32)]


def rows():
    return np.ones((hvd.size(), 3), np.float32)


def bucket():
    made = hvd.Bucket([4, 5000], op=hvd.Sum, chunk_bytes=4096)
    for index, count in enumerate(made.counts):
        made.put(index, np.ones(count))
    return made


def half_ready_bucket():
    made = hvd.Bucket([4, 5000], op=hvd.Sum, chunk_bytes=4096)
    made.put(0, np.ones(4))
    return made


def wait_tensor():
    made = bucket()
    made.wait_tensor(1)
    made.wait()


def in_turn(first, then):
    """The first call makes what the second takes; only the second is interrupted."""
    def call():
        made = first()
        return then(made)
    return call


def add_by_members():
    return hvd.add_process_set([0, 1], members_only=True, key="signals")


def set_of(ranks):
    """The youngest of these."""
    registered = RUNTIME.sets._registered
    return registered[max(number for number, one in registered.items() if one.ranks == ranks)]


@functools.cache
def state():
    return hvd.elastic.ObjectState(step=1)


def between_two(mine, others):
    """Rank 1 is rank 0's other side, further ranks have no part."""
    return mine, lambda: others() if hvd.rank() == 1 else None


CALLS = {
    "allreduce": lambda: hvd.allreduce(ONES),
    "allreduce_": lambda: hvd.allreduce_(ONES.copy()),
    "allreduce_async": lambda: hvd.allreduce_async(ONES).wait(),
    "allreduce_async_": lambda: hvd.synchronize(hvd.allreduce_async_(ONES.copy())),
    "grouped_allreduce": lambda: hvd.grouped_allreduce(several_ones()),
    "grouped_allreduce_": lambda: hvd.grouped_allreduce_(several_ones()),
    "grouped_allreduce_async": lambda: hvd.wait(hvd.grouped_allreduce_async(several_ones())),
    "grouped_allreduce_async_": lambda: hvd.grouped_allreduce_async_(several_ones()).wait(),
    "allgather": lambda: hvd.allgather(ONES),
    "allgather_async": lambda: hvd.allgather_async(ONES).wait(),
    "grouped_allgather": lambda: hvd.grouped_allgather(several_ones()),
    "grouped_allgather_async": lambda: hvd.grouped_allgather_async(several_ones()).wait(),
    "broadcast": lambda: hvd.broadcast(ONES, 1),
    "broadcast_": lambda: hvd.broadcast_(ONES.copy(), 1),
    "broadcast_async": lambda: hvd.broadcast_async(ONES, 1).wait(),
    "broadcast_async_": lambda: hvd.broadcast_async_(ONES.copy(), 1).wait(),
    "alltoall": lambda: hvd.alltoall(rows()),
    "alltoall_async": lambda: hvd.alltoall_async(rows()).wait(),
    "reducescatter": lambda: hvd.reducescatter(rows()),
    "reducescatter_async": lambda: hvd.reducescatter_async(rows()).wait(),
    "grouped_reducescatter": lambda: hvd.grouped_reducescatter([rows(), rows()]),
    "grouped_reducescatter_async":
        lambda: hvd.grouped_reducescatter_async([rows(), rows()]).wait(),
    "send": between_two(lambda: hvd.send(np.ones(1 << 20), 1), lambda: hvd.recv(
        np.ones(1 << 20), 0)),
    "send_async": between_two(lambda: hvd.send_async(np.ones(1 << 20), 1).wait(),
                              lambda: hvd.recv(np.ones(1 << 20), 0)),
    "recv": between_two(lambda: hvd.recv(ONES.copy(), 1), lambda: hvd.send(ONES, 0)),
    "recv_async": between_two(lambda: hvd.recv_async(ONES.copy(), 1).wait(),
                              lambda: hvd.send(ONES, 0)),
    "barrier": hvd.barrier,
    "join": hvd.join,
    "join_async": lambda: hvd.join_async().wait(),
    "broadcast_object": lambda: hvd.broadcast_object({"a": 1}, 1),
    "allgather_object": lambda: hvd.allgather_object({"a": 1}),
    "Bucket": in_turn(bucket, lambda made: made.wait()),
    "Bucket.wait_tensor": wait_tensor,
    "Bucket.reset": in_turn(half_ready_bucket, lambda made: made.reset()),
    "add_process_set": lambda: hvd.add_process_set([1]),
    "remove_process_set": lambda: hvd.remove_process_set(set_of([1])),
    "add_process_set by members": between_two(add_by_members, add_by_members),
    "remove_process_set by members": between_two(lambda: hvd.remove_process_set(set_of([0, 1])),
                                                 lambda: hvd.remove_process_set(set_of([0, 1]))),
    "Store.get": (lambda: hvd.Store().get("signals.get"),
                  lambda: hvd.Store().set("signals.get", b"")),
    "Store.wait": (lambda: hvd.Store().wait(["signals.wait"]),
                   lambda: hvd.Store().set("signals.wait", b"")),
    "State.sync": lambda: state().sync(),
    "State.commit": lambda: state().commit(),
    "State.check_host_updates": lambda: state().check_host_updates(),
    "shutdown": hvd.shutdown,
    "init": hvd.init,
}
# Calls that wait for no other rank, but for something here, or for hvdrun.
AT_ONCE = {
    "ProcessSet", "alloc", "build_info", "library_version", "metrics", "on_stream", "poll", "rank",
    "size", "local_rank", "local_size", "cross_rank", "cross_size", "is_homogeneous",
    "is_initialized", "get_process_set_ids_and_ranks", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "gloo_built", "gloo_enabled", "nccl_built", "ddl_built", "ccl_built",
    "cuda_built", "rocm_built", "set_grace",
}
# They are tried below, or elsewhere: `run` waits for a job of its own, in Python.
ELSEWHERE = {"Store", "start_timeline", "stop_timeline", "run", "synchronize", "wait"}


def test_each_public_function_is_here():
    calls = {name for name in hvd.__all__ if callable(getattr(hvd, name)) and not (
        inspect.isclass(getattr(hvd, name)) and issubclass(getattr(hvd, name), BaseException))}
    assert calls == (set(CALLS) & calls) | AT_ONCE | ELSEWHERE
    assert not set(CALLS) & (AT_ONCE | ELSEWHERE)


# In this order: some undo what others did.
@pytest.mark.parametrize("what", [name for name in CALLS if name not in ("shutdown", "init")])
def test_a_handler_runs(what, several):
    given = CALLS[what]
    must_be_heard(what, *(given if isinstance(given, tuple) else (given,)))


def test_a_handler_runs_while_ranks_leave_and_join(several):
    must_be_heard("shutdown", hvd.shutdown)
    must_be_heard("init", hvd.init)
