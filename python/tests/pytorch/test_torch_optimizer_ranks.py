# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined"
"""DistributedOptimizer where ranks are not in the same state: names decide which gradients belong
together, whatever else differs."""
import concurrent.futures

import pytest

torch = pytest.importorskip("torch")
from training import batches, loss_of, made, sgd  # noqa: E402

import hvd.torch as hvd  # noqa: E402

DECAY = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}


def lines(count, shape=(3,)):
    """Parameters of one shape."""
    return {f"line {index}": torch.nn.Parameter(torch.full(shape, float(index + 1)))
            for index in range(count)}


def distributed(params, order=None, make=torch.optim.SGD, options=DECAY, **how):
    names = list(params) if order is None else order
    return hvd.DistributedOptimizer(make([params[name] for name in names], **options),
                                    [(name, params[name]) for name in names], **how)


def test_parameters_in_another_order(rank, size):
    """The first step, and those with buckets."""
    params = lines(5)
    names = list(params)[rank:] + list(params)[:rank]
    optimizer = distributed(params, names, options={"lr": 0.0})
    for step in range(4):
        optimizer.zero_grad()
        sum((index + 1) * (rank + step) * p.sum() for index, p in enumerate(params.values())
            ).backward()
        optimizer.step()
        for index, p in enumerate(params.values()):
            mean = sum((index + 1) * (one + step) for one in range(size)) / size
            assert torch.allclose(p.grad, torch.full((3,), mean)), (step, index)


@pytest.mark.parametrize("groups", [2, "told"])
def test_groups_in_another_order(rank, size, groups):
    params = lines(4)
    names = list(params) if rank % 2 == 0 else list(params)[::-1]
    if groups == "told":
        halves = [names[:2], names[2:]]
        groups = [[params[name] for name in half] for half in halves]
    optimizer = distributed(params, names, options={"lr": 0.0}, groups=groups)
    for step in range(3):
        optimizer.zero_grad()
        sum((index + 1) * (rank + 1) * p.sum() for index, p in enumerate(params.values())
            ).backward()
        optimizer.step()
        for index, p in enumerate(params.values()):
            mean = (index + 1) * (size + 1) / 2
            assert torch.allclose(p.grad, torch.full((3,), mean)), (step, index)


def test_optimizers_that_do_not_go_together(rank, size, several):
    last = rank == size - 1
    cases = [
        ({"a": (2,), "b": (3,)}, {"a": (2,), "c": (3,)}, {}, {},
         r"rank 0 has the parameter 'b' \(float32 \[3\]\), rank \d has none of this name"),
        ({"a": (2,)}, {"a": (2,), "b": (3,)}, {}, {}, "rank 0 has none of this name"),
        ({"a": (2, 3)}, {"a": (3, 2)}, {}, {},
         r"'a' is float32 \[2,3\] on rank 0 and float32 \[3,2\] on rank"),
        ({"a": (2,)}, {"a": (2,)}, {}, {"op": hvd.Sum}, "op is 0 on rank 0 and 1 on rank"),
        ({"a": (2,), "b": (3,)}, {"a": (2,), "b": (3,)}, {"groups": 1}, {"groups": 2},
         "the groups of rank 0 are 1, those of rank . are 2")]
    for theirs, mine, how, last_how, why in cases:
        params = {name: torch.nn.Parameter(torch.ones(shape))
                  for name, shape in (mine if last else theirs).items()}
        optimizer = distributed(params, **(last_how if last else how))
        for _ in range(2):  # the engine is usable, and so says it again
            sum(p.sum() for p in params.values()).backward()
            with pytest.raises(hvd.HorovodInternalError, match=why):
                optimizer.step()
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_a_layer_that_thaws(rank, size):
    """On each rank in another step; and one that was never named."""
    params = lines(2)
    params["line 1"].requires_grad_(False)
    optimizer = distributed(params, options={"lr": 0.0})
    for step in range(size + 3):
        optimizer.zero_grad()
        if step == rank + 1:
            params["line 1"].requires_grad_(True)
        sum((rank + 1) * p.sum() for p in params.values() if p.requires_grad).backward()
        optimizer.step()
        there = [one for one in range(size) if step > one]
        if there:
            mean = sum(one + 1 for one in there) / size
            assert torch.allclose(params["line 1"].grad, torch.full((3,), mean)), step
        else:
            assert params["line 1"].grad is None


@pytest.mark.parametrize("within", [False, True])
def test_a_parameter_that_is_put_into_a_group(rank, size, within):
    """Past add_param_group, and in the middle of a step."""
    params, more = lines(2), torch.nn.Parameter(torch.ones(4))
    optimizer = distributed(params, options={"lr": 0.0})
    for step in range(5):
        optimizer.zero_grad()
        more.grad = None
        if step == 2 and not within:
            optimizer.param_groups[0]["params"].append(more)
        sum((rank + 1) * p.sum() for p in (*params.values(), more)).backward()
        if step == 2 and within:
            optimizer.param_groups[0]["params"].append(more)
        optimizer.step()
        for p in (*params.values(), more):
            wanted = (size + 1) / 2 if step >= 2 or p is not more else rank + 1
            assert torch.allclose(p.grad, torch.full_like(p, wanted)), step


def test_what_nobody_has_a_gradient_for_stays(rank, size):
    """Neither weight decay nor momentum moves it, and it has no state."""
    params = lines(3)
    params["line 2"].requires_grad_(False)
    optimizer = distributed(params)
    for _ in range(3):
        optimizer.zero_grad()
        params["line 0"].sum().backward()
        optimizer.step()
        for index in (1, 2):
            p = params[f"line {index}"]
            assert p.grad is None and p not in optimizer.state
            assert torch.equal(p.detach(), torch.full((3,), index + 1.0))
    optimizer.zero_grad()
    optimizer.step()  # nobody has any
    assert all(p.grad is None for p in params.values())


@pytest.mark.parametrize("there", [0, -1])
def test_sparse_gradients_that_some_have(rank, size, there):
    """No rows of the others. Nobody has any in the first step, one rank in the next."""
    words = torch.nn.Embedding(5, 2, sparse=True)
    torch.nn.init.ones_(words.weight)
    optimizer = distributed({"words": words.weight}, options={"lr": 1.0})
    for step in range(3):
        optimizer.zero_grad()
        if step and rank == there % size:
            words(torch.tensor([1, 3, 3])).sum().backward()
        optimizer.step()
        if step == 0:
            assert words.weight.grad is None
            continue
        assert words.weight.grad.is_sparse
        grad = words.weight.grad.to_dense()[:, 0].tolist()
        assert grad == pytest.approx([0, 1 / size, 0, 2 / size, 0])


def test_sparse_and_dense_together(rank, size, several):
    weight = torch.nn.Parameter(torch.ones(4, 2))
    optimizer = distributed({"words": weight}, options={"lr": 0.0})
    for step in range(4):
        optimizer.zero_grad()
        sparse = (rank + step) % 2 == 0
        torch.nn.functional.embedding(torch.tensor([1, 2]), weight, sparse=sparse).sum().backward()
        optimizer.step()
        assert torch.allclose(weight.grad.to_dense()[:, 0], torch.tensor([0.0, 1.0, 1.0, 0.0]))


@pytest.mark.parametrize("op", [hvd.Min, hvd.Max, hvd.Product])
def test_sparse_gradients_of_other_ops_are_refused(rank, size, several, op):
    words = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = distributed({"words": words.weight}, options={"lr": 1.0}, op=op)
    for _ in range(2):
        if rank == 0:
            words(torch.tensor([1])).sum().backward()
        with pytest.raises(NotImplementedError, match="sparse_as_dense"):
            optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_rank_that_joins_early(rank, size, several, steps):
    """Before its first step, and later. Then all go on together."""
    model = made()
    optimizer = hvd.DistributedOptimizer(sgd(list(model.parameters())), model.named_parameters())
    for step in range(steps if rank == 0 else 4):
        optimizer.zero_grad()
        loss_of(model, *(part[rank] for part in batches(size, step))).backward()
        optimizer.step()
    root = hvd.join()
    hvd.broadcast_parameters(model.state_dict(), root)
    hvd.broadcast_optimizer_state(optimizer, root)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, *(part[rank] for part in batches(size, step))).backward()
        optimizer.step()
    bits = [p.tolist() for p in model.parameters()]
    assert all(one == bits for one in hvd.allgather_object(bits))


def test_one_rank_has_a_new_optimizer(rank, size, several):
    """The others have taken steps with theirs."""
    params = lines(3)
    optimizer = distributed(params, options={"lr": 0.0})
    for step in range(5):
        if step == 3 and rank == 0:
            del optimizer
            optimizer = distributed(params, options={"lr": 0.0})
        optimizer.zero_grad()
        sum((rank + 1) * p.sum() for p in params.values()).backward()
        optimizer.step()
        for p in params.values():
            assert torch.allclose(p.grad, torch.full((3,), (size + 1) / 2)), step


@pytest.mark.parametrize("keep", [
    lambda grad: grad, lambda grad: grad.detach(), lambda grad: grad.view(-1),
    lambda grad: grad.data[1:], lambda grad: torch.from_numpy(grad.numpy())], ids=range(5))
def test_kept_gradients(rank, size, keep):
    """The next steps leave them as they are, as in one process."""
    params = lines(2)
    optimizer = distributed(params, options={"lr": 0.0})
    kept = []
    for step in range(5):
        optimizer.zero_grad()
        sum((rank + step) * p.sum() for p in params.values()).backward()
        optimizer.step()
        mean = (size - 1) / 2 + step
        if step in (1, 2, 4):
            kept.append((mean, keep(params["line 0"].grad)))
        for p in params.values():
            assert torch.allclose(p.grad, torch.full((3,), mean))
    for mean, grad in kept:
        assert torch.allclose(grad, torch.full_like(grad, mean))


def test_gradients_with_a_graph_are_refused(rank, size, several):
    params = lines(1)
    optimizer = distributed(params)
    for _ in range(2):
        with pytest.raises(AssertionError, match="create_graph"):
            params["line 0"].square().sum().backward(create_graph=True)
        params["line 0"].grad = None
        optimizer.step()


@pytest.mark.parametrize("to_none", [False, True])
def test_backward_twice_leaves_ranks_alike(rank, size, several, to_none):
    """The first one counts; the second is refused before it is added to what is on its way."""
    params = lines(4, (1000,))
    optimizer = distributed(params, options={"lr": 0.1})
    for step in range(4):
        optimizer.zero_grad(set_to_none=to_none)
        sum((rank + 1) * p.sum() for p in params.values()).backward()
        if rank == step % size:
            with pytest.raises(AssertionError, match="backward_passes_per_step"):
                sum(p.square().sum() for p in params.values()).backward()
        optimizer.step()
        for p in params.values():
            assert torch.allclose(p.grad, torch.full_like(p, (size + 1) / 2)), step


def test_two_optimizers_of_one_backward(rank, size):
    first, second = lines(2), {f"other {name}": p for name, p in lines(3).items()}
    optimizers = [distributed(params, options={"lr": 0.0}) for params in (first, second)]
    for step in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        sum((rank + step) * p.sum() for p in (*first.values(), *second.values())).backward()
        for optimizer in optimizers:
            optimizer.step()
        for p in (*first.values(), *second.values()):
            assert torch.allclose(p.grad, torch.full((3,), (size - 1) / 2 + step))


def test_optimizers_in_threads(rank, size):
    """Each rank's threads come in their own order."""
    def train(number):
        params = {f"{number}.{name}": p for name, p in lines(3).items()}
        optimizer = distributed(params, options={"lr": 0.0})
        for step in range(20):
            optimizer.zero_grad()
            sum((rank + step) * p.sum() for p in params.values()).backward()
            optimizer.step()
            for p in params.values():
                assert torch.allclose(p.grad, torch.full((3,), (size - 1) / 2 + step))

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        numbers = (0, 1) if rank % 2 == 0 else (1, 0)
        for done in [threads.submit(train, number) for number in numbers]:
            done.result()
