# SPDX-License-Identifier: Apache-2.0
"""A DistributedOptimizer from its making to its end: what it is, what it refuses, and what it
survives."""
import copy
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")
from training import STEPS, alone, batches, loss_of, made, same, sgd, train, wrapped  # noqa: E402

import hvd.torch as hvd  # noqa: E402


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
    """synchronize() finishes what was started, and the next step is as if nothing was."""
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


@pytest.mark.parametrize("op", [hvd.Average, hvd.Adasum])
def test_wrapped_twice(size, op):
    optimizer = wrapped(made(), op=op)
    with pytest.raises(ValueError, match="an hvd.DistributedOptimizer already"):
        hvd.DistributedOptimizer(optimizer)


def test_a_deep_copy(rank, size):
    """A copy of model and optimizer together trains on as the first would have, by itself."""
    model = made()
    optimizer = wrapped(model, groups=2)
    train(rank, size, optimizer, model, steps=2)
    twin, other = copy.deepcopy((model, optimizer))
    assert type(other) is type(optimizer)
    assert list(other._parameter_names.values()) == list(optimizer._parameter_names.values())
    assert other.param_groups[0]["params"][0] is twin.first.weight
    expected = [p.detach().clone() for p in model.parameters()]
    for one, net in ((other, twin), (optimizer, model)):
        same(net, expected)
        for step in range(2, STEPS):
            one.zero_grad()
            loss_of(net, *(part[rank] for part in batches(size, step))).backward()
            one.step()
        same(net, alone(size))


def test_handles_are_not_copied(rank, size):
    handle = hvd.allreduce_async(torch.ones(1), name="no copy")
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="synchronize"):
            copying(handle)
    assert hvd.synchronize(handle).item() == 1
    half = object.__new__(type(handle))
    half.__del__()
    assert "half-made" in repr(half)


def test_a_state_that_is_loaded_in_the_middle_of_a_step(rank, size):
    """The step ends before, on all ranks together."""
    model = made()
    optimizer = wrapped(model)
    for step in range(3):
        saved = optimizer.state_dict()
        loss_of(model, *(part[rank] for part in batches(size, step))).backward()
        optimizer.load_state_dict(saved)
        optimizer.zero_grad()
        train(rank, size, optimizer, model, steps=1)
    bits = [p.tolist() for p in model.parameters()]
    assert all(one == bits for one in hvd.allgather_object(bits))
