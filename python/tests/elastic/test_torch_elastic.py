# SPDX-License-Identifier: Apache-2.0
"""hvd.torch.elastic where nobody comes or goes: what is kept of models, optimizers and samplers."""
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch")

import hvd.torch as hvd  # noqa: E402
from hvd.torch.elastic import (  # noqa: E402
    ElasticSampler,
    OptimizerStateHandler,
    TorchState,
)


class Net(torch.nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.conv = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        self.norm = torch.nn.BatchNorm2d(4)
        self.out = torch.nn.Linear(4, 2)
        self.extra = seed

    def forward(self, x):
        return self.out(self.norm(self.conv(x)).mean((2, 3)))

    def get_extra_state(self):
        return {"extra": self.extra}

    def set_extra_state(self, state):
        self.extra = state["extra"]


def step(model, optimizer, rank):
    optimizer.zero_grad()
    model(torch.randn(4, 3, 5, 5) + rank).square().mean().backward()
    optimizer.step()


def contents(state):
    found = [*state.model.state_dict().values()]
    for values in state.optimizer.state_dict()["state"].values():
        found += values.values()
    return [one.clone() if isinstance(one, torch.Tensor) else one for one in found]


def same(left, right):
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def same_on_all(state):
    for theirs in hvd.allgather_object(contents(state)):
        same(contents(state), theirs)


def made(seed, kind=torch.optim.Adam, **more):
    model = Net(seed)
    optimizer = hvd.DistributedOptimizer(kind(model.parameters(), lr=0.01),
                                         named_parameters=model.named_parameters())
    return TorchState(model, optimizer, epoch=0, **more)


def test_all_begin_alike_and_go_back(rank):
    state = made(rank)
    state.sync()
    same_on_all(state)
    assert state.model.extra == 0
    for _ in range(3):
        step(state.model, state.optimizer, rank)
    state.epoch = 3
    state.commit()
    kept = contents(state)
    places = [p.data_ptr() for p in state.model.parameters()]
    step(state.model, state.optimizer, rank)
    with pytest.raises(AssertionError):
        same(contents(state), kept)
    state.epoch, state.optimizer.param_groups[0]["lr"] = 4, 0.5
    state.restore()
    same(contents(state), kept)
    assert state.epoch == 3 and state.optimizer.param_groups[0]["lr"] == 0.01
    assert [p.data_ptr() for p in state.model.parameters()] == places
    step(state.model, state.optimizer, rank)
    state.sync()
    same_on_all(state)


def test_going_back_before_the_first_step_forgets_the_optimizers_state(rank):
    state = made(rank)
    state.sync()
    step(state.model, state.optimizer, rank)
    state.restore()
    assert not state.optimizer.state
    state.sync()
    same_on_all(state)


def test_run_steps_on_after_a_loss(rank, size):
    state = made(rank)
    rates = []

    def rescale():
        state.optimizer.param_groups[0]["lr"] = 0.01 * size + rank  # sync makes it rank 0's
        rates.append(size)

    state.register_reset_callbacks([rescale])
    tried = []

    @hvd.elastic.run
    def train(state):
        tried.append(state.epoch)
        while state.epoch < 5:
            step(state.model, state.optimizer, rank)
            state.epoch += 1
            state.commit()
            if state.epoch == 3 and len(tried) == 1:
                state.optimizer.zero_grad()
                state.model(torch.randn(4, 3, 5, 5)).square().mean().backward()
                raise hvd.HorovodInternalError("made up")

    train(state)
    assert tried == [0, 3] and rates == [size]
    assert state.optimizer.param_groups[0]["lr"] == 0.01 * size
    parameters = [p.detach().clone() for p in state.model.parameters()]
    for theirs in hvd.allgather_object(parameters):
        same(parameters, theirs)


@pytest.mark.parametrize("shape", [(4, 1, 3, 3), (1, 3, 2, 2), (4, 3, 1, 1), (1, 1, 1, 1),
                                   (4, 3, 2, 2)])
def test_a_new_process_keeps_what_it_has_made_of_an_optimizers_state(shape):
    def handler():
        p = torch.nn.Parameter(torch.zeros(shape).to(memory_format=torch.channels_last))
        return OptimizerStateHandler(torch.optim.Adam([p]))

    there, new = handler(), handler()
    for p in there.value.param_groups[0]["params"]:
        p.grad = torch.ones_like(p)
    there.value.step()
    new.load(there.outline(), {})
    made = list(next(iter(new.value.state.values())).values())
    new.load(there.outline(), {})  # as when it goes back to what another rank has said
    again = list(next(iter(new.value.state.values())).values())
    assert len(made) == 3 and all(one is other for one, other in zip(made, again, strict=True))
    assert new.outline() == there.outline()


def test_several_optimizers_schedulers_and_plain_attributes(rank):
    model = torch.nn.Linear(3, 2)
    first = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    second = torch.optim.AdamW(model.parameters(), lr=0.2, amsgrad=True)
    state = TorchState(model, first, second=second,
                       scheduler=torch.optim.lr_scheduler.StepLR(first, 1), best=[rank])
    state.sync()
    assert state.best == [0]
    for optimizer in (first, second):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    state.scheduler.step()
    state.commit()
    momentum = first.state[model.weight]["momentum_buffer"].clone()
    state.scheduler.step()
    model(torch.ones(1, 3)).sum().backward()
    first.step()
    state.restore()
    assert abs(first.param_groups[0]["lr"] - 0.01) < 1e-9 and state.scheduler.last_epoch == 1
    assert torch.equal(first.state[model.weight]["momentum_buffer"], momentum)
    assert state.scheduler.optimizer is first and len(second.state) == 2


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


def test_named_tuples_in_an_optimizers_state_go_back(rank):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.state[model.weight]["pair"] = Pair(torch.full((2,), 1.0 + rank), torch.ones(3))
    state = TorchState(model, optimizer)
    state.sync()
    optimizer.state[model.weight]["pair"] = None
    state.restore()
    pair = optimizer.state[model.weight]["pair"]
    assert isinstance(pair, Pair) and pair.left.tolist() == [1] * 2 and len(pair.right) == 3


@pytest.mark.parametrize("names", [("attributes", "hvd"), ("a", "a/b"), ("a", "a\\|b"), ("ä", "")])
def test_no_name_of_an_attribute_hides_another(names):
    modules = [torch.nn.Module() for _ in names]
    for at, module in enumerate(modules):
        for name in ("x", "b/x"):
            module.register_parameter(name, torch.nn.Parameter(torch.full((2,), at + 1.0)))
    state = TorchState(**dict(zip(names, modules, strict=True)), epoch=3)
    state.sync()
    with torch.no_grad():
        for module in modules:
            for p in module.parameters():
                p.zero_()
    state.epoch = 4
    state.restore()
    assert state.epoch == 3
    assert [[p.tolist() for p in module.parameters()] for module in modules] == [
        [[1.0] * 2] * 2, [[2.0] * 2] * 2]


class Counter:
    def __init__(self, value):
        self.count = value


class CounterHandler(hvd.elastic.StateHandler):
    def save(self):
        self.saved = self.value.count

    def restore(self):
        self.value.count = self.saved

    def sync(self):
        self.value.count = hvd.broadcast_object(self.value.count)
        self.save()


def test_programs_own_handlers(rank):
    before = hvd.elastic.get_handler_registry()
    hvd.elastic.set_handler_registry([*before, (Counter, CounterHandler)])
    try:
        state = TorchState(counter=Counter(rank + 1))
    finally:
        hvd.elastic.set_handler_registry(before)
    state.sync()
    assert state.counter.count == 1
    state.counter.count = 5
    state.commit()
    state.counter.count = 6
    state.restore()
    assert state.counter.count == 5


def test_each_sample_comes_once(rank, size):
    sampler = ElasticSampler(range(101), seed=3)
    state = TorchState(sampler=sampler)
    state.sync()
    trained = []
    for epoch in range(2):
        done = set()
        for batch, samples in enumerate(torch.utils.data.DataLoader(
                torch.arange(101), sampler=sampler, batch_size=4)):
            sampler.record_batch(batch, len(samples))
            done.update(samples.tolist())
        trained.append(done)
        assert sampler.processed_indices == done
        state.commit()
        assert sampler.processed_indices == set(range(101)) and sampler.processed_num == 101
        sampler.set_epoch(epoch + 1)
        assert len(sampler) == -(-101 // size)
    everybodys = [set().union(*one) for one in zip(*hvd.allgather_object(trained), strict=True)]
    assert everybodys == [set(range(101))] * 2


def test_what_was_not_committed_comes_again(rank, size):
    sampler = ElasticSampler(range(60), shuffle=True)
    state = TorchState(sampler=sampler)
    state.sync()
    committed = set(sampler.indices[:4])
    sampler.record_batch(0, 4)
    state.commit()
    sampler.record_batch(1, 4)
    state.restore()
    known = set().union(*hvd.allgather_object(committed))
    assert sampler.processed_indices == known and len(known) == 4 * size
    left = set().union(*hvd.allgather_object(list(sampler)))
    assert left == set(range(60)) - known
    sampler.record_batch(0, 2)
    state.commit()
    state.restore()  # to what it is already
    again = set().union(*hvd.allgather_object(list(sampler)))
    assert again == set(range(60)) - sampler.processed_indices and len(again) == 60 - 6 * size
    saved = sampler.state_dict()
    other = ElasticSampler(range(60))
    other.load_state_dict(saved)
    assert list(other) == list(sampler)
    other.load_state_dict({"epoch": 0, "processed_num": 10})
    assert other.processed_num == 10
    other.record_indices(list(other)[:3])
    assert other.processed_num == 13


def test_batches_of_an_iteration_in_which_the_state_is_restored(rank, size):
    """They are still those of the iteration, the short last one too."""
    sampler = ElasticSampler(range(10 * size), shuffle=False)
    state = made(0, sampler=sampler)
    state.commit()
    batches = list(torch.utils.data.BatchSampler(sampler, 4, False))
    for number in (0, 1):
        sampler.record_batch(number, len(batches[number]))
        if number == 0:
            state.commit()
    state.restore()
    assert sampler.processed_num == 4 * size
    sampler.record_batch(2, len(batches[2]))
    assert set(batches[2]) <= sampler.processed_indices
    assert not set(batches[1]) & sampler.processed_indices
    sampler.record_batch(1, len(batches[1]))
    state.commit()
    assert sampler.processed_indices == set(range(10 * size))
    sampler.set_epoch(1)
    sampler.record_batch(0, 2)
    assert sampler.processed_num == 2


def test_a_loop_goes_on_behind_a_restore(rank, size):
    """Its batches are those that it began with, though the sampler shares out what is left."""
    sampler = ElasticSampler(range(8 * size), shuffle=True)
    state = TorchState(sampler=sampler)
    state.sync()
    loop = list(sampler)
    for batch in range(4):
        sampler.record_batch(batch, 2)
        if batch == 1:
            state.commit()
    state.restore()
    assert sampler.processed_num == 4 * size
    sampler.record_batch(2, 2)
    sampler.record_batch(3, 1)  # the last one, cut short
    mine = set(loop[:7])
    assert mine <= sampler.processed_indices and sampler.processed_num == 4 * size + 3
    state.commit()
    state.sync()
    assert sampler.processed_num == 7 * size and len(sampler) == 1
    everybodys = set().union(*hvd.allgather_object(mine))
    assert set().union(*hvd.allgather_object(list(sampler))) == set(range(8 * size)) - everybodys
    sampler.record_batch(0, 1)  # of the new iteration
    state.commit()
    assert sampler.processed_num == 8 * size
    sampler.set_epoch(1)
    sampler.record_batch(1, 2)  # without an iteration: as if one had begun
    assert sampler.processed_indices == set(sampler.indices[2:4])


def test_a_data_loaders_workers_survive_a_reset(rank):
    data = torch.arange(40)
    sampler = ElasticSampler(data, shuffle=False)
    state = TorchState(sampler=sampler, epoch=0)
    loader = torch.utils.data.DataLoader(data, sampler=sampler, batch_size=2, num_workers=1,
                                         persistent_workers=True)
    workers, seen = set(), []

    @hvd.elastic.run
    def train(state):
        again = bool(workers)
        for batch, samples in enumerate(loader):
            workers.update(worker.pid for worker in loader._iterator._workers)
            if batch == 3 and not again:
                raise hvd.HorovodInternalError("made up")
            seen.extend(samples.tolist())
            sampler.record_batch(batch, len(samples))
            state.commit()

    train(state)
    everybodys = sum(hvd.allgather_object(seen), [])
    assert set(everybodys) == set(range(40)) and len(workers) == 1


def test_the_default_group_of_torch_distributed_is_made_anew(rank, size):
    import torch.distributed as dist

    from hvd import distributed
    distributed.register()
    dist.init_process_group("hvd", rank=rank, world_size=size)
    first = dist.group.WORLD
    state = TorchState(batch=0)

    @hvd.elastic.run
    def train(state):
        total = torch.ones(3)
        dist.all_reduce(total)
        assert total.tolist() == [size] * 3
        state.batch += 1
        if dist.group.WORLD is first:
            raise hvd.HostsUpdatedInterrupt

    train(state)
    assert state.batch == 2 and dist.get_world_size() == size
    dist.destroy_process_group()


def test_optimizers_that_list_their_parameters_in_another_order(rank, size):
    """A state's tensors are those of the names, whoever of a host's ranks has written them."""
    layers = torch.nn.ModuleDict({name: torch.nn.Linear(8, 8, bias=False) for name in "abcd"})
    hvd.broadcast_parameters(layers.state_dict(), 0)
    names = list("abcd")[rank:] + list("abcd")[:rank]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([layers[name].weight for name in names], lr=0.1, momentum=0.9),
        layers.named_parameters())

    def buffers():
        return [optimizer.state[layers[name].weight]["momentum_buffer"].clone() for name in "abcd"]

    def train():
        optimizer.zero_grad()
        sum((index + 1) * layer.weight.sum() for index, layer in enumerate(layers.values())
            ).backward()
        optimizer.step()

    train()
    state = TorchState(layers, optimizer)
    state.commit()
    kept = buffers()
    train()
    state.restore()
    same(buffers(), kept)
    assert [one[0, 0].item() for one in kept] == [1, 2, 3, 4]
