# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, operator"
"""Training on torch.distributed, over backend "hvd": each way gives what one process gives."""
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import hvd as plain  # noqa: E402
import hvd.distributed  # noqa: E402, F401
from hvd.torch import error_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning",
                                        "ignore::DeprecationWarning")
STEPS = 3


@pytest.fixture(scope="module", autouse=True)
def group(job):
    dist.init_process_group("hvd", store=dist.HashStore(), rank=plain.rank(),
                            world_size=plain.size())
    yield
    dist.destroy_process_group()


def small_model():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(),
                         nn.Linear(16, 4))


def batches(size):
    """STEPS batches of equal parts for the ranks."""
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(size * 2, 8, generator=generator) for _ in range(STEPS)]


def train(model, parts, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for part in parts:
        optimizer.zero_grad()
        model(part).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def trained_alone(size):
    return train(small_model(), batches(size))


def shares(rank, size):
    return [batch.chunk(size)[rank] for batch in batches(size)]


def assert_close(left, right):
    for one, other in zip(left, right, strict=True):
        assert torch.allclose(one, other, atol=1e-6), (one - other).abs().max()


@pytest.mark.parametrize("options", [
    {}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.0005}, {"static_graph": True},
    {"find_unused_parameters": True}], ids=lambda options: "-".join(options) or "plain")
def test_ddp(rank, size, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DistributedDataParallel(small_model(), **options)
        assert_close(train(model, shares(rank, size)), trained_alone(size))


def test_ddp_begins_from_rank_0(rank, size):
    model = small_model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(rank)
    parallel = DistributedDataParallel(model)
    assert_close([p.detach() for p in parallel.parameters()],
                 [p.detach() for p in small_model().parameters()])


def test_ddp_without_sync_and_with_uneven_inputs(rank, size):
    model = DistributedDataParallel(small_model())
    part = torch.ones(2, 8) * rank
    with model.no_sync():
        model(part).sum().backward()
    model(part).sum().backward()
    gradient = next(model.parameters()).grad.clone()
    gathered = [torch.zeros_like(gradient) for _ in range(size)]
    dist.all_gather(gathered, gradient)
    assert_close(gathered, [gradient] * size)
    with model.join():
        for _ in range(rank + 1):
            model(part).sum().backward()


def test_an_error_of_a_gradient_comes_out_of_backward(rank, several):
    """DDP waits in C++, where an exception of Python's is a value."""
    model = DistributedDataParallel(small_model())
    gradients = sum(parameter.numel() for parameter in model.parameters())
    if rank == 0:
        with pytest.raises(RuntimeError) as seen:
            model(torch.ones(2, 8)).sum().backward()
        error = error_of(seen.value)
        assert isinstance(error, plain.MismatchError) and "work.py" not in str(error)
        dist.all_reduce(torch.zeros(gradients))
    else:
        with pytest.raises(RuntimeError):
            dist.all_reduce(torch.ones(3))
        model(torch.ones(2, 8)).sum().backward()


@pytest.mark.parametrize("hook", ["fp16", "powersgd", "allreduce"])
def test_ddp_communication_hooks(rank, size, hook):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    model = DistributedDataParallel(small_model())
    if hook == "powersgd":
        model.register_comm_hook(powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2),
                                 powerSGD_hook.powerSGD_hook)
    else:
        model.register_comm_hook(None, {
            "fp16": default_hooks.fp16_compress_hook,
            "allreduce": default_hooks.allreduce_hook}[hook])
    trained = train(model, shares(rank, size))
    if hook != "powersgd":
        for one, other in zip(trained, trained_alone(size), strict=True):
            assert torch.allclose(one, other, atol=1e-6 if hook == "allreduce" else 2e-2)
    gathered = [None] * size
    dist.all_gather_object(gathered, [parameter.sum().item() for parameter in trained])
    assert all(one == gathered[0] for one in gathered)


def test_ddp_of_a_batch_norm(rank, size):
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    parallel = DistributedDataParallel(model)
    for part in shares(rank, size):
        parallel(part).sum().backward()
    parallel(torch.ones(2, 8))  # the buffers of rank 0 come before the forward
    means = [None] * size
    dist.all_gather_object(means, model[1].num_batches_tracked.item())
    assert len(set(means)) == 1


def test_zero_redundancy_optimizer(rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    model = DistributedDataParallel(small_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    alone = small_model()
    wanted = train(alone, batches(size), torch.optim.Adam(alone.parameters(), lr=0.01))
    assert_close(train(model, shares(rank, size), optimizer), wanted)
    optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        assert len(optimizer.state_dict()["state"]) == 6


def test_fsdp1(rank, size):
    from torch.distributed.fsdp import FullyShardedDataParallel
    model = FullyShardedDataParallel(small_model(), device_id=torch.device("cpu"))
    train(model, shares(rank, size))
    with FullyShardedDataParallel.summon_full_params(model):
        assert_close([p.detach().clone() for p in model.parameters()], trained_alone(size))


def test_fsdp2(rank, size):
    from torch.distributed.fsdp import fully_shard
    model = small_model()
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    train(model, shares(rank, size))
    assert_close([parameter.full_tensor().detach() for parameter in model.parameters()],
                 trained_alone(size))


def test_fsdp2_in_mixed_precision(rank, size):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    model = small_model()
    fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                      reduce_dtype=torch.float32))
    train(model, shares(rank, size))
    for parameter, wanted in zip(model.parameters(), trained_alone(size), strict=True):
        assert torch.allclose(parameter.full_tensor(), wanted, atol=5e-2)


def test_device_mesh_and_dtensor(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(size * 6.0).view(size * 2, 3)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    assert sharded.to_local().shape == (2, 3)
    assert torch.equal(sharded.full_tensor(), whole)
    product = sharded @ distribute_tensor(torch.eye(3), mesh, [Replicate()])
    assert torch.equal(product.full_tensor(), whole)
    total = sharded.sum()
    assert total.placements == (Partial(),) or size == 1
    assert total.full_tensor() == whole.sum()
    assert torch.equal(sharded.redistribute(mesh, [Shard(1)]).full_tensor(), whole)


def test_functional_collectives(rank, size):
    from torch.distributed import _functional_collectives as functional
    group = dist.group.WORLD
    total = functional.all_reduce(torch.ones(4), "sum", group)
    assert (total + 0).tolist() == [float(size)] * 4
    gathered = functional.all_gather_tensor(torch.full((2,), float(rank)), 0, group)
    assert (gathered + 0).tolist() == [float(one) for one in range(size) for _ in range(2)]
    part = functional.reduce_scatter_tensor(torch.ones(size * 2), "sum", 0, group)
    assert (part + 0).tolist() == [float(size)] * 2
    swapped = functional.all_to_all_single(torch.full((size,), float(rank)), None, None, group)
    assert (swapped + 0).tolist() == [float(one) for one in range(size)]


def test_compiled(rank, size):
    from torch.distributed import _functional_collectives as functional
    group = dist.group.WORLD

    def work(given):
        return functional.all_reduce(given * 2, "sum", group) + 1

    compiled = torch.compile(work, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0 * size + 1))


def test_checkpoint(rank, size, tmp_path_factory):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.checkpoint.state_dict import get_model_state_dict
    from torch.distributed.fsdp import fully_shard
    if plain.local_size() < size:
        pytest.skip("needs a directory that all ranks see")
    folder = [str(tmp_path_factory.mktemp("checkpoint")) if rank == 0 else None]
    dist.broadcast_object_list(folder)
    model = small_model()
    fully_shard(model)
    train(model, shares(rank, size))
    checkpoint.save({"model": get_model_state_dict(model)}, checkpoint_id=folder[0])
    other = small_model()
    fully_shard(other)
    state = {"model": get_model_state_dict(other)}
    checkpoint.load(state, checkpoint_id=folder[0])
    for one, wanted in zip(state["model"].values(), model.parameters(), strict=True):
        assert torch.equal(one.full_tensor(), wanted.full_tensor())
    dist.barrier()
