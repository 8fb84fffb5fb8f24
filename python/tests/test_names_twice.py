# SPDX-License-Identifier: Apache-2.0
"""A name that is submitted again before the program can know that its first call is done."""
import numpy as np
import pytest

import hvd
from hvd._core.runtime import RUNTIME

SUBMITS = {"new": hvd.allreduce_async, "in place": hvd.allreduce_async_}


def test_a_name_twice(rank, size, several):
    if rank == 0:
        first = hvd.allreduce_async(np.ones(2), "twice", hvd.Sum)
        with pytest.raises(hvd.DuplicateError) as caught:
            hvd.allreduce_async(np.ones(2), "twice", hvd.Sum)
        assert isinstance(caught.value, ValueError) and "twice" in str(caught.value)
        hvd.allgather_async(np.ones(1), "go").wait()
        assert first.wait().tolist() == [size] * 2
    else:
        hvd.allgather_async(np.ones(1), "go").wait()
        hvd.allreduce(np.ones(2), "twice", hvd.Sum)


@pytest.mark.parametrize("how", SUBMITS)
def test_twice_in_a_row_is_refused_however_fast_the_first_is(rank, size, how):
    submit = SUBMITS[how]
    for _ in range(100):
        submit(np.ones(2), "dropped", hvd.Max)
        with pytest.raises(hvd.DuplicateError, match="dropped"):
            submit(np.ones(2), "dropped", hvd.Max)
        hvd.barrier()


@pytest.mark.parametrize("how", SUBMITS)
def test_a_blocking_call_of_the_name_is_refused_likewise(rank, size, how):
    for _ in range(100):
        SUBMITS[how](np.ones(2), "blocking", hvd.Max)
        with pytest.raises(hvd.DuplicateError, match="blocking"):
            hvd.allreduce(np.ones(2), "blocking", hvd.Max)
        hvd.barrier()


@pytest.mark.parametrize("how", SUBMITS)
def test_whoever_has_asked_for_the_end_may_submit_again(rank, size, how):
    for ask in (hvd.synchronize, lambda handle: handle.wait_for(60), lambda _: hvd.barrier()):
        for _ in range(20):
            handle = SUBMITS[how](np.ones(2), "seen", hvd.Max)
            ask(handle)
    hvd.barrier()


@pytest.mark.parametrize("call", [
    hvd.allreduce, hvd.allreduce_, hvd.allgather, hvd.barrier,
    lambda ones=None: hvd.allreduce_async(ones, "other"), lambda ones=None: hvd.broadcast(ones, 0)])
def test_any_other_call_comes_between(rank, size, call):
    mine = hvd.allreduce_async(np.ones(2), "between", hvd.Max)
    first = RUNTIME.unseen
    assert first is not None
    call() if call is hvd.barrier else call(np.ones(2))
    assert RUNTIME.unseen is not first
    hvd.synchronize(mine)
    hvd.barrier()


def test_without_a_name_calls_are_many(rank, size):
    for _ in range(20):
        hvd.allreduce_async_(np.ones(2))
    hvd.barrier()
