# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, dict-item"
"""hvd.torch on tensors of a GPU without a torch that has CUDA: streams, waits and kept memory."""

import pytest

torch = pytest.importorskip("torch")

import fake_cuda  # noqa: E402
from fake_cuda import Stream, on_gpu  # noqa: E402

import hvd.torch as hvd  # noqa: E402
from hvd._core.library import LIBRARY  # noqa: E402


@pytest.fixture
def cuda(monkeypatch, stream):
    """torch.cuda, whose current stream is `stream`."""
    yield from fake_cuda.current(monkeypatch, stream)


@pytest.fixture
def current(cuda):
    return cuda.current_stream(0)


def ramp(rank, dtype=torch.float32, shape=(4, 3)):
    return (torch.arange(torch.Size(shape).numel()).view(shape) + 10 * rank).to(dtype)


def total(size, **how):
    return sum(ramp(rank, **how) for rank in range(size))


def test_reductions_and_broadcast(current, rank, size):
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        wanted = total(size, dtype=dtype)
        mine = on_gpu(ramp(rank, dtype), current)
        result = hvd.allreduce(mine, op=hvd.Sum)
        assert result is not mine and torch.equal(result.fetch(current.cuda_stream), wanted)
        assert hvd.allreduce_(mine, op=hvd.Sum) is mine
        assert torch.equal(mine.fetch(current.cuda_stream), wanted)
        theirs = hvd.broadcast(on_gpu(ramp(rank, dtype), current), size - 1)
        assert torch.equal(theirs.fetch(current.cuda_stream), ramp(size - 1, dtype))


def test_groups(current, rank, size):
    group = [on_gpu(ramp(rank, shape=shape), current) for shape in ((3,), (2, 2))]
    results = hvd.grouped_allreduce(group, op=hvd.Sum)
    handle = hvd.grouped_allreduce_async_(group, op=hvd.Sum)
    assert hvd.synchronize(handle)[0] is group[0]
    for result in (*results, *group):
        assert torch.equal(result.fetch(current.cuda_stream), total(size, shape=result.shape))


def test_gathers_and_exchanges(current, rank, size):
    rows = hvd.allgather(on_gpu(ramp(rank, torch.bfloat16, (rank + 1, 2)), current))
    assert rows.dtype == torch.bfloat16 and torch.equal(
        rows.fetch(current.cuda_stream),
        torch.cat([ramp(one, torch.bfloat16, (one + 1, 2)) for one in range(size)]))
    came, received = hvd.alltoall(on_gpu(ramp(rank, shape=(size, 2)), current), [1] * size)
    assert received.tolist() == [1] * size and received.is_cpu
    assert torch.equal(came.fetch(current.cuda_stream),
                       torch.stack([ramp(one, shape=(size, 2))[rank] for one in range(size)]))
    share = hvd.reducescatter(on_gpu(ramp(rank, shape=(size, 2)), current), op=hvd.Sum)
    assert torch.equal(share.fetch(current.cuda_stream),
                       total(size, shape=(size, 2))[rank:rank + 1])


def test_synchronize_orders_the_streams_that_are_current(cuda, current, other_stream, rank, size):
    mine = on_gpu(ramp(rank), current)
    handle = hvd.allreduce_async_(mine, op=hvd.Sum)
    waiter = Stream(other_stream)
    with cuda.stream(waiter):
        hvd.synchronize(handle)
        assert torch.equal(mine.fetch(other_stream), total(size))
    assert torch.equal(mine.fetch(current.cuda_stream), total(size))
    # The allocator must not give it away before both are through.
    assert set(mine.memory.streams) == {current.cuda_stream, other_stream}


def test_a_second_wait_orders_its_stream_too(cuda, current, other_stream, rank, size):
    mine = on_gpu(ramp(rank), current)
    handle = hvd.allreduce_async_(mine, op=hvd.Sum)
    hvd.synchronize(handle)
    assert set(mine.memory.streams) == {current.cuda_stream}
    with cuda.stream(Stream(other_stream)):
        hvd.synchronize(handle)
        assert torch.equal(mine.fetch(other_stream), total(size))


def test_a_call_belongs_to_the_stream_of_its_submission(cuda, current, other_stream, rank, size):
    with cuda.stream(Stream(other_stream)):
        mine = on_gpu(ramp(rank), Stream(other_stream))
        handle = hvd.allreduce_async(mine, op=hvd.Sum)
    result = hvd.synchronize(handle)
    assert torch.equal(result.fetch(other_stream), total(size))
    assert set(mine.memory.streams) == {other_stream, current.cuda_stream}
    assert set(result.memory.streams) == {other_stream, current.cuda_stream}


def test_a_handle_that_is_dropped(cuda, current, size):
    mine = on_gpu(torch.ones(1000), current)
    hvd.allreduce_async_(mine, op=hvd.Sum, name="dropped")
    LIBRARY.check(LIBRARY.released.hvd_barrier(None))  # waits for it, as hvd.barrier does not
    later = on_gpu(torch.ones(3), current)
    hvd.synchronize(hvd.allreduce_async_(later))  # looks after what was dropped
    assert mine.memory.streams == [current.cuda_stream, 0]
    assert torch.equal(mine.fetch(0), torch.full((1000,), float(size)))
    later.fetch(current.cuda_stream)


def test_sparse(current, rank, size):
    """Its parts are gathered each by itself."""
    handles = [hvd.allgather_async(on_gpu(ramp(rank, dtype, (2, 1)), current))
               for dtype in (torch.int64, torch.float32)]
    for handle, dtype in zip(handles, (torch.int64, torch.float32), strict=True):
        gathered = hvd.synchronize(handle).fetch(current.cuda_stream)
        assert gathered.dtype == dtype and gathered.shape == (2 * size, 1)


def test_gradients(current, rank, size):
    """They travel one by one, in the first step and later: buckets lie in host memory."""
    from hvd._torch.gradients.early import EarlyGradients
    from hvd._torch.gradients.layout import Layout
    from hvd._torch.gradients.reduction import Reduction

    class Parameter:
        is_cpu, dtype, grad = False, torch.float32, None

    p = Parameter()
    reduction = Reduction(hvd.Sum, 1.0, hvd.Compression.none, False, hvd.global_process_set)
    gradients = EarlyGradients(Layout(("p",), frozenset(["p"])), {"p": p}, reduction)
    for step in range(3):
        p.grad = mine = on_gpu(ramp(rank + step), current)
        gradients.begin()
        gradients.starters[id(p)](p)
        gradients.wait()
        gradients.put(())
        assert p.grad is mine
        assert torch.equal(mine.fetch(current.cuda_stream),
                           sum(ramp(one + step) for one in range(size)))


def test_what_is_mixed_is_told(several, cuda, current, rank):
    mine = on_gpu(torch.ones(2), current)
    with pytest.raises(ValueError, match="tensor 0 of the group lies on GPU 0, tensor 1 in"):
        hvd.grouped_allreduce_([mine, torch.ones(2)])
    with pytest.raises(hvd.HorovodInternalError, match="different devices: rank 0"):
        hvd.allreduce(mine if rank == 0 else torch.ones(2))
    with pytest.raises(ValueError, match="on meta; hvd takes tensors in host memory and on CUDA"):
        hvd.allreduce(torch.ones(2, device="meta"))
    mine.fetch(current.cuda_stream)
