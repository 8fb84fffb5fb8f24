# SPDX-License-Identifier: Apache-2.0
"""DistributedOptimizer against one process that trains on all ranks' batches together."""
import copy

import pytest

torch = pytest.importorskip("torch")
from training import STEPS, alone, batches, loss_of, made, same, sgd, train, wrapped  # noqa: E402

import hvd.torch as hvd  # noqa: E402


@pytest.mark.parametrize("make", [sgd, torch.optim.Adam, torch.optim.Adadelta])
@pytest.mark.parametrize("to_none", [True, False])
def test_as_one_process(rank, size, make, to_none):
    model = made()
    optimizer = wrapped(model, make)
    train(rank, size, optimizer, model, set_to_none=to_none)
    same(model, alone(size, make))
    if size > 1:  # gradients lie in memory that the host's ranks share
        assert optimizer._gradients.lies_in_bucket(model.first.weight)


@pytest.mark.parametrize("how", [
    {"groups": 2}, {"groups": 100}, {"groups": 0}, {"gradient_predivide_factor": 2.0},
    {"compression": hvd.Compression.none}, {"sparse_as_dense": True}, {"num_groups": 3}], ids=str)
def test_options(rank, size, how):
    model = made()
    if "num_groups" in how:
        with pytest.warns(DeprecationWarning):
            optimizer = wrapped(model, **how)
    else:
        optimizer = wrapped(model, **how)
    train(rank, size, optimizer, model)
    same(model, alone(size))


def test_groups_that_are_told(rank, size):
    model = made()
    groups = [list(model.first.parameters()), [model.second.weight, model.frozen]]
    train(rank, size, wrapped(model, groups=groups), model)
    same(model, alone(size))


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16])
def test_compression(rank, size, compression):
    model = made(torch.float32)
    train(rank, size, wrapped(model, compression=compression), model, dtype=torch.float32)
    same(model, alone(size, dtype=torch.float32), atol=5e-3)
    together = hvd.allgather_object([p.tolist() for p in model.parameters()])
    assert all(one == together[0] for one in together)


class Doubling:
    @staticmethod
    def compress(tensor):
        return tensor * 2, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor / 2


def test_a_compression_of_the_users(rank, size):
    model = made()
    train(rank, size, wrapped(model, compression=Doubling), model)
    same(model, alone(size))


def test_sum(rank, size):
    model, reference = made(), made()
    optimizer = wrapped(model, lambda p: torch.optim.SGD(p, lr=0.05 / size), op=hvd.Sum)
    train(rank, size, optimizer, model)
    same(model, alone(size, lambda p: torch.optim.SGD(p, lr=0.05)))
    del reference


def test_several_passes(rank, size):
    """Two passes of half a batch each: Horovod adds them up, and divides by nothing."""
    model = made()
    optimizer = wrapped(model, lambda p: torch.optim.SGD(p, lr=0.025), backward_passes_per_step=2)
    assert optimizer.backward_passes_per_step == 2
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batches(size, step)
        for half in (slice(0, 2), slice(2, 4)):
            loss_of(model, x[rank, half], y[rank, half]).backward()
        optimizer.step()
    same(model, alone(size, lambda p: torch.optim.SGD(p, lr=0.05)))
    optimizer.set_backward_passes_per_step(1)
    x, y = batches(size, 0)
    loss_of(model, x[rank], y[rank]).backward()
    with pytest.raises(ValueError):
        optimizer.set_backward_passes_per_step(0)
    optimizer.step()


def test_clipping(rank, size):
    model = made()
    optimizer = wrapped(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batches(size, step)
        loss_of(model, x[rank], y[rank]).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
    same(model, alone(size, clip=0.1))


def test_a_closure(rank, size):
    model = made()
    optimizer = wrapped(model)
    for step in range(STEPS):
        x, y = batches(size, step)

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = loss_of(model, x[rank], y[rank])
            loss.backward()
            return loss

        assert optimizer.step(closure).item() >= 0
    same(model, alone(size))


def test_what_is_unused_on_one_rank(rank, size):
    model = torch.nn.ModuleList([torch.nn.Linear(2, 1, bias=False) for _ in range(2)])
    torch.nn.init.ones_(model[0].weight)
    torch.nn.init.ones_(model[1].weight)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                         model.named_parameters())
    for step in range(3):
        optimizer.zero_grad()
        if rank == 0:
            model[1](torch.ones(1, 2)).sum().backward()
        else:
            model[0](torch.ones(1, 2)).sum().backward()
        optimizer.step()
        if size > 1:
            done = (step + 1) / size
            assert torch.allclose(model[1].weight, torch.full((1, 2), 1 - done), atol=1e-5)
            assert torch.allclose(model[0].weight, torch.full((1, 2), 1 - (size - 1) * done),
                                  atol=1e-5)


def step_by_words(mine, whole):
    """Trains on this rank's words, and the other pair of model and optimizer on all ranks'; yields
    behind each step."""
    (model, optimizer), (reference, plain) = mine, whole
    for step in range(4):
        words = (torch.arange(hvd.size() * 3).view(hvd.size(), 3) * (step + 1)) % 9
        optimizer.zero_grad()
        plain.zero_grad()
        model(words[hvd.rank()]).sum().backward()
        optimizer.step()
        reference(words.flatten()).sum().div(hvd.size()).backward()
        plain.step()
        yield step


@pytest.mark.parametrize("as_dense", [False, True])
def test_sparse_gradients(size, as_dense):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(9, 3, sparse=True), torch.nn.Linear(3, 1))
    reference = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                         model.named_parameters(), sparse_as_dense=as_dense)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    for _ in step_by_words((model, optimizer), (reference, plain)):
        assert model[0].weight.grad.is_sparse != (as_dense and size > 1)
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-6)


@pytest.mark.parametrize("as_dense", [False, True])
def test_an_optimizer_that_takes_sparse_gradients_alone(as_dense):
    torch.manual_seed(1)
    model = torch.nn.Embedding(9, 3, sparse=True)
    reference = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SparseAdam(list(model.parameters()), lr=0.1),
                                         model.named_parameters(), sparse_as_dense=as_dense)
    plain = torch.optim.SparseAdam(list(reference.parameters()), lr=0.1)
    for _ in step_by_words((model, optimizer), (reference, plain)):
        pass
    assert torch.allclose(model.weight, reference.weight, atol=1e-5)


def test_types_and_layouts(rank, size):
    """Several types of elements, one of them of 16 bits, and a parameter in channels_last."""
    model = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).bfloat16(),
                                 torch.nn.Conv2d(2, 4, 3).to(memory_format=torch.channels_last)])
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.0),
                                         model.named_parameters())
    for _ in range(3):
        optimizer.zero_grad()
        value = float(rank + 1)
        loss = model[0](torch.ones(1, 2)).sum() * value
        loss = loss + model[1](torch.ones(1, 2).bfloat16()).sum().float() * value
        image = torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last)
        (loss + model[2](image).sum() * value).backward()
        optimizer.step()
        mean = sum(range(1, size + 1)) / size
        for p in model.parameters():
            assert torch.allclose(p.grad, torch.full_like(p.grad, mean))


def test_parameters_that_come_later(rank, size):
    model, more = made(), torch.nn.Linear(2, 1, bias=False)
    optimizer = wrapped(model)
    optimizer.add_param_group({"params": more.parameters()})
    for _ in range(2):
        optimizer.zero_grad()
        (more(torch.ones(1, 2)).sum() * (rank + 1)).backward()
        optimizer.step()
        assert more.weight.grad.tolist() == [[sum(range(1, size + 1)) / size] * 2]


def test_on_a_process_set(rank, size, even_set):
    model = made()
    optimizer = wrapped(model, process_set=even_set)
    for step in range(3):
        optimizer.zero_grad()
        x, y = batches(size, step)
        own, = torch.autograd.grad(loss_of(model, x[rank], y[rank]), model.first.weight)
        loss_of(model, x[rank], y[rank]).backward()
        optimizer.step()
        if rank in even_set.ranks:
            mean = hvd.allreduce(own, process_set=even_set)
            assert torch.allclose(model.first.weight.grad, mean)
        else:
            assert torch.equal(model.first.weight.grad, own)
    with pytest.raises(ValueError, match="not registered"):
        wrapped(model, process_set=hvd.ProcessSet([0]))
