# SPDX-License-Identifier: Apache-2.0
"""Backend "hvd" on tensors of a GPU without a torch that has CUDA: whose stream waits for what."""
import contextlib

import pytest

torch = pytest.importorskip("torch")

import fake_cuda  # noqa: E402
import torch.distributed as dist  # noqa: E402
from fake_cuda import Stream, on_gpu  # noqa: E402

import hvd.distributed  # noqa: E402, F401


@pytest.fixture(scope="module", autouse=True)
def group():
    dist.init_process_group("hvd")
    yield
    dist.destroy_process_group()


@pytest.fixture
def cuda(monkeypatch, stream):
    yield from fake_cuda.current(monkeypatch, stream)


def test_the_group_is_for_both_kinds_of_devices():
    assert dist.Backend.backend_capability["hvd"] == ["cpu", "cuda"]


def test_collectives(cuda, rank, size):
    current = cuda.current_stream(0)
    mine = on_gpu(torch.full((6,), float(rank)), current)
    dist.all_reduce(mine)
    assert mine.fetch(current.cuda_stream).tolist() == [sum(range(size))] * 6
    dist.broadcast(mine, size - 1)
    whole = on_gpu(torch.zeros(6 * size), current)
    dist.all_gather_into_tensor(whole, mine)
    assert whole.fetch(current.cuda_stream).tolist() == [sum(range(size))] * 6 * size
    share = on_gpu(torch.zeros(6), current)
    dist.reduce_scatter_tensor(share, whole)
    assert share.fetch(current.cuda_stream).tolist() == [size * sum(range(size))] * 6
    dist.barrier()


def test_waits(cuda, other_stream, rank, size):
    current = cuda.current_stream(0)
    mine = on_gpu(torch.full((1000,), float(rank)), current)
    work = dist.all_reduce(mine, async_op=True)
    with cuda.stream(Stream(other_stream)):
        work.wait()
        assert mine.fetch(other_stream).tolist() == [sum(range(size))] * 1000
    work.wait()
    assert mine.fetch(current.cuda_stream).tolist() == [sum(range(size))] * 1000
    assert work.is_completed() and work.is_success()


def test_futures(cuda, rank, size, monkeypatch):
    """They are completed with the call's stream as the current one."""
    current = cuda.current_stream(0)
    completed = []

    class Future(torch.futures.Future):
        def set_result(self, value):
            completed.append(cuda.current_stream(0).cuda_stream)
            super().set_result(value)

    def made(devices):
        assert devices == [torch.device("cuda", 0)]
        return Future()

    monkeypatch.setattr(fake_cuda.FUTURES, "Future", made)
    mine = on_gpu(torch.ones(10), current)
    future = dist.all_reduce(mine, async_op=True).get_future()
    with cuda.stream(Stream(0)):
        assert future.wait()[0] is not None
    assert completed == [current.cuda_stream]
    assert mine.fetch(current.cuda_stream).tolist() == [size] * 10


def test_copies_land_on_the_calls_stream(cuda, other_stream):
    """Where a tensor is not contiguous: hvd's copy is copied back."""
    from hvd._torch.cuda import DeviceCall
    from hvd.distributed.tensors import Landings
    from hvd.distributed.work import Work

    seen = []

    class Looking(Landings):
        def land(self):
            seen.append(cuda.current_stream(0).cuda_stream)
            return super().land()

    class Done:
        device = DeviceCall(torch.device("cuda", 0))

        def wait(self):
            seen.append("waited")

        def wait_for(self, _):
            return True

    import datetime
    work = Work("it", datetime.timedelta(seconds=9), [], Looking())
    call = work.start(Done)._device
    with cuda.stream(Stream(other_stream)), contextlib.nullcontext():
        work.wait()
    assert seen == ["waited", call.stream.cuda_stream]


def test_what_is_mixed_is_told(cuda):
    mine = on_gpu(torch.ones(2), cuda.current_stream(0))
    with pytest.raises(ValueError, match="must lie on one device; these are on .'cpu', 'cuda:0'"):
        dist.all_gather([mine, torch.ones(2)], torch.ones(2))
    with pytest.raises(ValueError, match="in host memory and on CUDA GPUs; this one is on meta"):
        dist.all_reduce(torch.ones(2, device="meta"))
    mine.fetch(cuda.current_stream(0).cuda_stream)
