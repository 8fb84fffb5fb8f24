# SPDX-License-Identifier: Apache-2.0
"""hvd.torch and backend "hvd" on tensors that torch has on a GPU, which the ranks may share. For a
machine with a GPU, and a torch with CUDA."""
import pytest

torch = pytest.importorskip("torch")

import hvd.torch as hvd  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(),
                                reason="torch.cuda.is_available() is false")
TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


@pytest.fixture(scope="module", autouse=True)
def gpu():
    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def ramp(rank, gpu, dtype=torch.float32, shape=(4, 3)):
    return (torch.arange(torch.Size(shape).numel(), device=gpu).view(shape) % 5 + rank).to(dtype)


def total(size, gpu, **how):
    return sum(ramp(rank, gpu, **how) for rank in range(size))


@pytest.mark.parametrize("dtype", TYPES)
def test_every_operation(dtype, gpu, rank, size):
    mine, wanted = ramp(rank, gpu, dtype), total(size, gpu, dtype=dtype)
    every = [ramp(one, gpu, dtype) for one in range(size)]
    result = hvd.allreduce(mine, op=hvd.Sum)
    assert result.device == gpu and torch.equal(result, wanted.to(dtype))
    assert torch.equal(hvd.allgather(mine), torch.cat(every))
    assert torch.equal(hvd.grouped_allgather([mine, mine])[1], torch.cat(every))
    assert torch.equal(hvd.broadcast(mine, size - 1), every[-1])
    assert torch.equal(hvd.grouped_allreduce([mine, mine], op=hvd.Max)[0], every[-1])
    rows = ramp(rank, gpu, dtype, (size, 2))
    assert torch.equal(hvd.reducescatter(rows, op=hvd.Max), ramp(
        size - 1, gpu, dtype, (size, 2))[rank:rank + 1])
    came, received = hvd.alltoall(rows, torch.ones(size, dtype=torch.int32, device=gpu))
    assert received.device == gpu and came.device == gpu
    assert torch.equal(came, torch.stack(
        [ramp(one, gpu, dtype, (size, 2))[rank] for one in range(size)]))
    assert hvd.allreduce_(mine, op=hvd.Sum) is mine and torch.equal(mine, result)


def test_results_of_hvds_memory_live_on(gpu, rank, size):
    rows = hvd.allgather(torch.full((1000, 7), float(rank), device=gpu))
    view = rows[-1000:]
    del rows
    torch.cuda.synchronize()
    assert view.sum().item() == 7000.0 * (size - 1)
    assert hvd.allgather(torch.zeros(0, 3, device=gpu)).shape == (0, 3)


def test_streams(gpu, rank, size):
    mine, side = torch.zeros(1 << 22, device=gpu), torch.cuda.Stream(gpu)
    for step in range(5):
        mine.fill_(float(rank + step))
        handle = hvd.allreduce_async_(mine, op=hvd.Sum)
        with torch.cuda.stream(side):
            hvd.synchronize(handle)
            copy = mine.clone()
        torch.cuda.current_stream(gpu).wait_stream(side)
        wanted = float(sum(one + step for one in range(size)))
        assert copy.eq(wanted).all() and mine.eq(wanted).all()


def test_memory_is_not_used_again_too_early(gpu, size):
    for _ in range(20):
        handle = hvd.allreduce_async(torch.ones(1 << 20, device=gpu), op=hvd.Sum)
        torch.full((1 << 20,), -1.0, device=gpu)
        assert hvd.synchronize(handle).eq(size).all()
        hvd.allreduce_async(torch.ones(1 << 20, device=gpu), op=hvd.Sum)  # dropped
        torch.full((1 << 20,), -1.0, device=gpu)


def test_sparse(gpu, rank, size):
    mine = torch.sparse_coo_tensor([[rank]], torch.ones(1, 2, device=gpu), (size, 2), device=gpu)
    result = hvd.synchronize(hvd.sparse_allreduce_async(mine, "sparse", hvd.Sum))
    assert result.device == gpu and torch.equal(result.to_dense(), torch.ones(size, 2, device=gpu))


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
@pytest.mark.parametrize("compression", [hvd.Compression.none, hvd.Compression.bf16])
def test_optimizer(op, compression, gpu, rank, size):
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), hvd.SyncBatchNorm(16), torch.nn.ReLU(),
                                torch.nn.Linear(16, 1)).to(gpu)
    plain = torch.optim.Adam(model.parameters(), lr=0.01 * (rank + 1))
    if rank == 0:  # has a state, which the others have not
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        plain.step()
    hvd.broadcast_parameters(model.state_dict(), 0)
    hvd.broadcast_optimizer_state(plain, 0)
    states = [value for state in plain.state.values() for value in state.values()
              if isinstance(value, torch.Tensor) and value.dim()]
    assert states and all(value.device == gpu for value in states)
    optimizer = hvd.DistributedOptimizer(plain, model.named_parameters(), op=op,
                                         compression=compression)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(6, 8, device=gpu)).square().mean().backward()
        optimizer.step()
    for p in model.parameters():
        assert p.device == gpu and p.isfinite().all()
        assert torch.equal(hvd.broadcast(p.detach(), 0), p.detach())


def test_mixed_devices_are_told(several, gpu, rank):
    mine = torch.ones(2, device=gpu)
    with pytest.raises(ValueError, match="tensor 0 of the group lies on GPU .*, tensor 1"):
        hvd.grouped_allreduce_([mine, torch.ones(2)])
    with pytest.raises(hvd.HorovodInternalError, match="different devices"):
        hvd.allreduce(mine if rank == 0 else torch.ones(2))


@pytest.mark.skipif(not hvd.operators_built(), reason="torch.ops.hvd is not built")
def test_operators(gpu, rank, size):
    ops, mine = torch.ops.hvd, ramp(rank, gpu)
    every = [ramp(one, gpu) for one in range(size)]
    assert torch.equal(ops.allreduce(mine, 1), total(size, gpu))
    assert torch.equal(ops.allgather(mine), torch.cat(every))
    assert torch.equal(ops.broadcast(mine, size - 1), every[-1])
    came, received = ops.alltoall(ramp(rank, gpu, shape=(size, 2)))
    assert came.device == gpu and received.is_cpu and received.tolist() == [1] * size
    assert torch.equal(ops.own_rows(torch.cat(every), 4), mine)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(batch):
        return hvd.allreduce(batch.square(), name="step").sum() + hvd.allgather(batch).sum()

    mine.requires_grad_()
    step(mine).backward()
    assert mine.grad.device == gpu and mine.grad.isfinite().all()


def test_backend_of_torch_distributed(gpu, rank, size):
    import torch.distributed as dist

    import hvd.distributed  # noqa: F401

    dist.init_process_group("hvd")
    mine = ramp(rank, gpu)
    dist.all_reduce(mine)
    assert torch.equal(mine, total(size, gpu))
    strided = torch.full((4, 6), float(rank), device=gpu).t()  # a copy lands in it
    dist.all_reduce(strided)
    assert strided.eq(sum(range(size))).all()
    future = dist.all_reduce(torch.ones(1 << 20, device=gpu), async_op=True).get_future()
    assert future.wait()[0].eq(size).all()
    layers = torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).to(gpu))
    for _ in range(3):
        model.zero_grad()
        model(torch.randn(6, 8, device=gpu)).square().mean().backward()
    for p in model.parameters():
        assert torch.equal(hvd.broadcast(p.grad, 0), p.grad)
    dist.barrier()
    dist.destroy_process_group()
