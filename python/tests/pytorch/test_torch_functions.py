# SPDX-License-Identifier: Apache-2.0
"""Beginning alike: parameters, optimizer states, objects; batch normalisation over all ranks."""
import pytest

torch = pytest.importorskip("torch")
import hvd.torch as hvd  # noqa: E402


def net(rank):
    torch.manual_seed(rank)
    return torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4),
                               torch.nn.Linear(3, 2))


def all_same(values):
    together = hvd.allgather_object(values)
    return all(one == together[0] for one in together)


@pytest.mark.parametrize("form", ["state_dict", "named", "list", "dict"])
def test_broadcast_parameters(rank, size, form):
    model, root = net(rank), size - 1
    expected = [p.tolist() for p in net(root).parameters()]
    if form != "list":
        model[0].to(memory_format=torch.channels_last)
    params = {"state_dict": model.state_dict(), "named": model.named_parameters(),
              "list": list(model.parameters()), "dict": dict(model.named_parameters())}[form]
    hvd.broadcast_parameters(params, root_rank=root)
    assert [p.tolist() for p in model.parameters()] == expected


@pytest.mark.apart
def test_broadcast_parameters_refuses():
    for wrong in (3, torch.ones(2), "state"):
        with pytest.raises(ValueError, match="invalid params"):
            hvd.broadcast_parameters(wrong, 0)
    with pytest.raises(ValueError, match="extra"):
        hvd.broadcast_parameters({"extra": 1}, 0)


def plain(value):
    """Tensors as lists."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop",
                                  "Rprop", "Adamax", "NAdam", "RAdam", "ASGD", "Adafactor"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_broadcast_optimizer_state(rank, size, kind, wrapped):
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2).bfloat16().float())
    how = {"lr": 0.1 * (rank + 1)}
    if kind == "SGD":
        how["momentum"] = 0.5 + rank / 10
    optimizer = getattr(torch.optim, kind)(model.parameters(), **how)
    steps = rank + 1 if rank == 0 else 0  # the others have no state at all
    for _ in range(steps):
        model(torch.randn(5, 3)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    group = optimizer.param_groups[0]
    if wrapped:
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_optimizer_state(optimizer, root_rank=0, model=model)
    assert all_same(plain(optimizer.state_dict()))
    assert optimizer.param_groups[0] is group and group["lr"] == 0.1
    assert len(optimizer.state) == 4
    model(torch.randn(5, 3)).square().sum().backward()
    optimizer.step()


def test_an_empty_state(rank, size):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0 + rank, betas=(0.5, 0.5 + rank / 10))
    hvd.broadcast_optimizer_state(optimizer, size - 1)
    assert optimizer.param_groups[0]["lr"] == size
    assert optimizer.param_groups[0]["betas"] == (0.5, 0.5 + (size - 1) / 10)
    with pytest.raises(ValueError, match="LBFGS"):
        hvd.broadcast_optimizer_state(torch.optim.LBFGS(model.parameters()), 0)
    with pytest.raises(TypeError, match="Module"):
        hvd.broadcast_optimizer_state(optimizer, 0, model=3)


def test_optimizers_that_differ(rank, size, several):
    layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(1 + (rank == 1)))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    if rank == 1:
        with pytest.raises(ValueError, match="groups"):
            hvd.broadcast_optimizer_state(optimizer, 0)
    else:
        hvd.broadcast_optimizer_state(optimizer, 0)


def test_objects(rank, size):
    given = {"rank": rank, "tensor": torch.full((2,), rank)}
    for root in range(size):
        got = hvd.broadcast_object(given, root_rank=root, name="objects")
        assert got["rank"] == root and got["tensor"].tolist() == [root] * 2
        assert (got is given) == (root == rank)
    assert [one["rank"] for one in hvd.allgather_object(given, name="all")] == list(range(size))


def normalised(kind, inputs, affine=True, momentum=0.1):
    torch.manual_seed(0)
    layer = kind(inputs.shape[1], momentum=momentum, affine=affine).to(inputs.dtype)
    if affine:
        torch.nn.init.uniform_(layer.weight)
        torch.nn.init.uniform_(layer.bias)
    return layer


@pytest.mark.parametrize("shape", [(3,), (3, 5), (3, 2, 4), (3, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("how", [{}, {"affine": False}, {"momentum": None}], ids=str)
def test_sync_batch_norm(rank, size, shape, how):
    """As BatchNorm on the concatenated batch; rank r has r + 2 rows."""
    torch.manual_seed(7)
    rows = [r + 2 for r in range(size)]
    whole = torch.randn(sum(rows), *shape, dtype=torch.float64) * 3 + 100
    start = sum(rows[:rank])
    kinds = {1: torch.nn.BatchNorm1d, 2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm2d,
             4: torch.nn.BatchNorm3d}
    reference = normalised(kinds[len(shape)], whole, **how)
    layer = normalised(hvd.SyncBatchNorm, whole, **how)
    for _ in range(2):
        full = whole.clone().requires_grad_()
        mine = whole[start:start + rows[rank]].clone().requires_grad_()
        expected, output = reference(full), layer(mine)
        assert torch.allclose(output, expected[start:start + rows[rank]])
        weights = torch.linspace(0, 1, expected.numel(), dtype=torch.float64).view_as(expected)
        (expected * weights).sum().backward()
        (output * weights[start:start + rows[rank]]).sum().backward()
        assert torch.allclose(mine.grad, full.grad[start:start + rows[rank]])
    assert torch.allclose(layer.running_mean, reference.running_mean)
    assert torch.allclose(layer.running_var, reference.running_var)
    assert layer.num_batches_tracked == reference.num_batches_tracked == 2
    if layer.affine:  # each rank has its share of the parameters' gradients
        assert torch.allclose(hvd.allreduce(layer.weight.grad, op=hvd.Sum), reference.weight.grad)
        assert torch.allclose(hvd.allreduce(layer.bias.grad, op=hvd.Sum), reference.bias.grad)
    layer.eval()
    reference.eval()
    assert torch.allclose(layer(whole), reference(whole))


def test_sync_batch_norm_in_16_bits(rank, size):
    layer = hvd.SyncBatchNorm(3)
    inputs = torch.randn(4, 3, dtype=torch.bfloat16, requires_grad=True)
    output = layer(inputs)
    output.float().square().sum().backward()
    assert output.dtype == torch.bfloat16 and inputs.grad.dtype == torch.bfloat16
    assert layer.weight.grad.dtype == torch.float32
    with pytest.raises(ValueError, match="2D"):
        layer(torch.ones(3))
    untracked = hvd.SyncBatchNorm(3, track_running_stats=False)
    rows = torch.full((2, 3), float(rank))
    assert torch.allclose(untracked(rows).mean(), untracked(rows).mean())
    assert hvd.allreduce(untracked(rows), op=hvd.Sum).abs().max() < 1e-5


@pytest.mark.parametrize("how", ["wrapped", "model", "order"])
def test_an_optimizers_state_in_another_order(rank, size, how):
    """Names decide; without any the order does, and the shapes are compared."""
    model = torch.nn.ModuleDict({name: torch.nn.Linear(2, 2, bias=False) for name in "abc"})
    names = list("abc") if rank == 0 or how == "order" else list("cab")
    params = [model[name].weight for name in names]
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9)
    for index, name in enumerate("abc"):
        if rank == 0 or how == "order":
            optimizer.state[model[name].weight] = {"momentum_buffer": torch.full((2, 2), index)}
    if how == "wrapped":
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_optimizer_state(optimizer, 0, model if how == "model" else None)
    for index, name in enumerate("abc"):
        there = optimizer.state[model[name].weight]["momentum_buffer"]
        assert torch.equal(there, torch.full((2, 2), index)), name


def test_optimizers_of_other_shapes(rank, size, several):
    shape = (3,) if rank == 0 else (2,)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(shape))], lr=0.1)
    if rank == 0:
        hvd.broadcast_optimizer_state(optimizer, 0)
    else:
        with pytest.raises(ValueError, match=r"shape \[2\]; rank 0's has it as \[3\]"):
            hvd.broadcast_optimizer_state(optimizer, 0)
