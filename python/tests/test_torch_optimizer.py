"""DistributedOptimizer against one process that trains on all ranks' batches together."""
import copy
import warnings

import pytest

torch = pytest.importorskip("torch")
import hvd.torch as hvd  # noqa: E402

STEPS, ROWS = 5, 4


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.second = torch.nn.Linear(8, 3)
        self.idle = torch.nn.Linear(2, 2)  # has no part in forward
        self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) * self.frozen


def made(dtype=torch.float64):
    torch.manual_seed(3)
    return Net().to(dtype)


def batches(size, step, dtype=torch.float64):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(size, ROWS, 6, generator=generator, dtype=torch.float64)
    return x.to(dtype), x.sum(2, keepdim=True).sin().to(dtype)


def loss_of(model, x, y):
    return (model(x) - y).square().mean()


def sgd(params, momentum=0.9):
    return torch.optim.SGD(params, lr=0.05, momentum=momentum)


def alone(size, make=sgd, steps=STEPS, dtype=torch.float64, clip=None):
    """The parameters after training in one process; gradients of unused parameters are zero."""
    model = made(dtype)
    optimizer = make([p for p in model.parameters() if p.requires_grad])
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batches(size, step, dtype)
        loss_of(model, x.flatten(0, 1), y.flatten(0, 1)).backward()
        for p in model.idle.parameters():
            p.grad = torch.zeros_like(p)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def train(rank, size, optimizer, model, steps=STEPS, dtype=torch.float64, **zero):
    for step in range(steps):
        optimizer.zero_grad(**zero)
        x, y = batches(size, step, dtype)
        loss_of(model, x[rank], y[rank]).backward()
        optimizer.step()


def same(model, expected, **tolerance):
    for p, q in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(p.detach(), q, **tolerance), (p, q)


def wrapped(model, make=sgd, **how):
    params = [p for p in model.parameters() if p.requires_grad]
    return hvd.DistributedOptimizer(make(params), named_parameters=model.named_parameters(), **how)


@pytest.mark.parametrize("make", [sgd, torch.optim.Adam, torch.optim.Adadelta])
@pytest.mark.parametrize("to_none", [True, False])
def test_as_one_process(rank, size, make, to_none):
    model = made()
    optimizer = wrapped(model, make)
    train(rank, size, optimizer, model, set_to_none=to_none)
    same(model, alone(size, make))
    if size > 1:  # gradients lie in memory that the host's ranks share
        assert optimizer._gradients._buckets is not None
        assert model.first.weight in optimizer._gradients._buckets


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


def test_step_after_synchronize_warns(rank, size):
    model = made()
    optimizer = wrapped(model)
    loss_of(model, *(part[rank] for part in batches(size, 0))).backward()
    optimizer.synchronize()
    with pytest.warns(UserWarning, match="skip_synchronize"):
        optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()


def test_guards(rank, size, several):
    model = made()
    optimizer = wrapped(model)
    parts = [part[rank] for part in batches(size, 0)]
    for _ in range(2):  # the first step, and one with buckets
        loss_of(model, *parts).backward()
        with pytest.raises(AssertionError, match="zero_grad"):
            optimizer.zero_grad()
        with pytest.raises(AssertionError, match="backward_passes_per_step"):
            loss_of(model, *parts).backward()
        optimizer.step()
        optimizer.zero_grad()


def test_a_backward_that_raised(rank, size):
    """What was started is finished by synchronize(), and the next step is as if nothing was."""
    model = made()
    optimizer = wrapped(model, lambda p: torch.optim.SGD(p, lr=0.05))

    def fail(grad):
        raise ArithmeticError("a backward that fails")

    for attempt in range(2):  # before there are buckets, and with them
        x, y = (part[rank] for part in batches(size, 0))
        hidden = torch.relu(model.first(x))
        hidden.register_hook(fail)
        if rank == size - 1 or attempt:
            with pytest.raises(ArithmeticError):
                (model.second(hidden) * model.frozen - y).square().mean().backward()
        else:
            loss_of(model, x, y).backward()
        optimizer.synchronize()
        optimizer.zero_grad()
        with optimizer.skip_synchronize():
            pass
        optimizer._synchronized = False
    train(rank, size, optimizer, model)
    same(model, alone(size, lambda p: torch.optim.SGD(p, lr=0.05)))


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


@pytest.mark.parametrize("as_dense", [False, True])
def test_sparse_gradients(rank, size, as_dense):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(9, 3, sparse=True), torch.nn.Linear(3, 1))
    reference = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                         model.named_parameters(), sparse_as_dense=as_dense)
    plain = torch.optim.SGD(reference.parameters(), lr=0.1)
    for step in range(4):
        words = (torch.arange(size * 3).view(size, 3) * (step + 1)) % 9
        optimizer.zero_grad()
        plain.zero_grad()
        model(words[rank]).sum().backward()
        optimizer.step()
        reference(words.flatten()).sum().div(size).backward()
        plain.step()
        assert model[0].weight.grad.is_sparse != (as_dense and size > 1)
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(p, q, atol=1e-6)


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


def test_what_it_is(size):
    model = made()
    inner = sgd(list(model.parameters()))
    scheduler = torch.optim.lr_scheduler.StepLR(inner, 1, gamma=0.5)
    inner.zero_grad()
    outer = hvd.DistributedOptimizer(inner, model.named_parameters())
    assert isinstance(outer, torch.optim.SGD) and type(outer).__name__ == "SGD"
    assert outer.param_groups is inner.param_groups and outer.state is inner.state
    assert outer._parameter_names[model.first.weight] == "first.weight"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch cannot know that the outer one has stepped
        check_schedulers(inner, outer, scheduler)


def check_schedulers(inner, outer, scheduler):
    later = torch.optim.lr_scheduler.StepLR(outer, 1, gamma=0.1)
    outer.step()
    scheduler.step()
    assert outer.param_groups[0]["lr"] == 0.025
    later.step()
    steps = []
    outer.register_step_post_hook(lambda *_: steps.append(1))
    outer.load_state_dict(outer.state_dict())
    outer.step()
    assert steps == [1]


def test_one_after_another(rank, size):
    """A model gets a new optimizer; the old one's hooks are gone with it."""
    model = made()
    for steps in (1, 3):
        model.load_state_dict(made().state_dict())
        optimizer = wrapped(model)
        train(rank, size, optimizer, model, steps=steps)
        same(model, alone(size, steps=steps))
        del optimizer


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


def test_adasum(rank, size):
    """Ranks whose steps are the same take that step; orthogonal ones are added."""
    for orthogonal in (False, True):
        model = torch.nn.Linear(size, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                             model.named_parameters(), op=hvd.Adasum)
        x = torch.zeros(1, size)
        x[0, rank if orthogonal else 0] = 1.0
        for step in range(2):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            expected = torch.zeros(1, size)
            expected[0, :size if orthogonal else 1] = -(step + 1.0)
            assert torch.allclose(model.weight, expected, atol=1e-5), model.weight
        if size > 1:
            with pytest.raises(AssertionError, match="Adasum"), optimizer.skip_synchronize():
                pass
            optimizer.synchronize()
            assert optimizer.backward_passes_per_step == 1
            with pytest.raises(ValueError, match="groups"):
                hvd.DistributedOptimizer(sgd(model.parameters()), op=hvd.Adasum, groups=2)
    hvd.barrier()


def test_adasum_counts_passes(rank, size, several):
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0),
                                         op=hvd.Adasum, backward_passes_per_step=2)
    for _ in range(2):
        model(torch.ones(1, 1)).sum().backward()
    with pytest.raises(AssertionError, match="backward_passes_per_step"):
        model(torch.ones(1, 1)).sum().backward()
    optimizer.step()


@pytest.mark.apart
def test_arguments_that_make_no_sense():
    model = made()
    params = list(model.parameters())
    first = params[0]
    cases = [
        ({"named_parameters": params}, "tuples"),
        ({"named_parameters": [("a", p) for p in params]}, "unique"),
        ({"named_parameters": [("a", first)]}, "not named"),
        ({"backward_passes_per_step": 0}, "backward_passes_per_step"),
        ({"gradient_predivide_factor": 2.0, "op": hvd.Sum}, "gradient_predivide_factor"),
        ({"groups": -1}, "non-negative"), ({"groups": "ab"}, "non-negative"),
        ({"groups": [[first], [first]]}, "once"), ({"groups": [["x"]]}, "torch.Tensor"),
        ({"groups": [[torch.ones(1, requires_grad=True)]]}, "none of the optimizer's")]
    for how, why in cases:
        with pytest.raises(ValueError, match=why):
            hvd.DistributedOptimizer(sgd(params), **how)


def test_another_epoch(rank, size):
    """The buckets outlive shutdown() and init()."""
    model = made()
    optimizer = wrapped(model)
    for step in range(STEPS):
        if step == 3:
            hvd.shutdown()
            with pytest.raises(ValueError, match="initialized"):
                wrapped(made())
            hvd.init()
        optimizer.zero_grad()
        x, y = batches(size, step)
        loss_of(model, x[rank], y[rank]).backward()
        optimizer.step()
    same(model, alone(size))


@pytest.mark.parametrize("good_steps", [0, 2])
def test_a_step_that_is_broken_off(rank, size, several, good_steps):
    """One rank leaves in the middle of a step; all begin anew, as an elastic program would."""
    model = made()
    optimizer = wrapped(model, lambda p: torch.optim.SGD(p, lr=0.05))
    # Whatever the others wait for when rank 0 leaves may fail; it knows that they are here.
    here = hvd.allgather_async(torch.ones(1), name="all are in this test")
    if rank == 0:
        here.wait()
        train(rank, size, optimizer, model, steps=good_steps)
        loss_of(model, *(part[rank] for part in batches(size, 0))).backward()
        hvd.shutdown()
        with pytest.raises(AssertionError):
            optimizer.zero_grad()
    else:
        with pytest.raises(hvd.HorovodInternalError, match="rank 0"):
            train(rank, size, optimizer, model, steps=good_steps + 1)
        hvd.shutdown()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    hvd.init()
    model.load_state_dict(made().state_dict())
    train(rank, size, optimizer, model)
    same(model, alone(size, lambda p: torch.optim.SGD(p, lr=0.05)))


def test_gradients_outlive_their_optimizer(rank, size):
    model = made()
    optimizer = wrapped(model)
    train(rank, size, optimizer, model, steps=3)
    gradient = model.first.weight.grad
    expected = gradient.clone()
    del optimizer, model
    assert torch.equal(gradient, expected)
