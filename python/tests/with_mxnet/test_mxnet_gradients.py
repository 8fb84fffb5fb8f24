# SPDX-License-Identifier: Apache-2.0
"""Gradients of hvd.mxnet's collectives, through MXNet's autograd. Each rank's loss is its results
by weights that tell ranks apart."""
import numpy as np
import pytest

mx = pytest.importorskip("mxnet", reason="mxnet is not installed")

from mxnet import autograd, nd  # noqa: E402

import hvd.mxnet as hvd  # noqa: E402


def gradients(call, *values):
    """Returns the gradients of the sum of what `call` makes of the values, weighted by 1, 2, 3, …
    times this rank's number from 1."""
    mine = [nd.array(value) for value in values]
    for each in mine:
        each.attach_grad()
    with autograd.record():
        found = call(*[each * 1 for each in mine])
        found = found if isinstance(found, list) else [found]
        loss = sum((each * weights(each.shape)).sum() for each in found)
    loss.backward()
    return [each.grad.asnumpy() for each in mine]


def weights(shape):
    return nd.arange(1, np.prod(shape) + 1).reshape(shape) * (hvd.rank() + 1)


def ramp(count, times=1.0):
    return times * np.arange(1, count + 1)


def test_allreduce(rank, size):
    mean, total = (size + 1) / 2, size * (size + 1) / 2
    assert np.allclose(gradients(hvd.allreduce, np.ones(4))[0], ramp(4, mean))
    assert np.allclose(gradients(lambda x: hvd.allreduce(x, op=hvd.Sum, name="summed"),
                                 np.ones(4))[0], ramp(4, total))
    assert np.allclose(gradients(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=2,
                                                         postscale_factor=3), np.ones(4))[0],
                       ramp(4, 6 * total))
    first, second = gradients(lambda *x: hvd.grouped_allreduce(x), np.ones(4), np.ones(2))
    assert np.allclose(first, ramp(4, mean)) and np.allclose(second, ramp(2, mean))


def test_broadcast(rank, size):
    found = gradients(lambda x: hvd.broadcast(x, size - 1), np.ones(3))[0]
    assert np.allclose(found, ramp(3, (size + 1) / 2) if rank == size - 1 else 0)


def test_gathering(rank, size):
    """Each rank has one row more than the one before."""
    def rows(times):
        before, own = rank * (rank + 1) // 2, rank + 1
        return ramp(size * (size + 1) // 2, times)[before:before + own]

    mean = (size + 1) / 2
    assert np.allclose(gradients(hvd.allgather, np.ones(rank + 1))[0], rows(mean))
    first, second = gradients(lambda *x: hvd.grouped_allgather(x), np.ones(rank + 1), np.ones(1))
    assert np.allclose(first, rows(mean)) and np.allclose(second, mean * (rank + 1))


def test_scattering(rank, size):
    wanted = np.concatenate([ramp(2, r + 1) for r in range(size)])
    found = gradients(hvd.reducescatter, np.ones(2 * size))[0]
    assert np.allclose(found, wanted)
    found = gradients(lambda x: hvd.grouped_reducescatter([x], op=hvd.Sum)[0],
                      np.ones(2 * size))[0]
    assert np.allclose(found, size * wanted)


def test_reducescatter_of_integers(rank, size):
    """Its scale is a fraction, which MXNet would make an integer."""
    x = nd.ones(2 * size, dtype="int32")
    x.attach_grad()
    with autograd.record():
        found = hvd.reducescatter(x, op=hvd.Sum, prescale_factor=0.5, name="integers")
        loss = (found * 6).sum()
    loss.backward()
    assert x.grad.dtype == np.int32 and x.grad.asnumpy().tolist() == [3 * size] * (2 * size)


def test_alltoall(rank, size):
    """Row i goes to rank i, which has it at the sender's place."""
    wanted = [(rank + 1) * (r + 1) for r in range(size)]
    assert np.allclose(gradients(hvd.alltoall, np.ones(size))[0], wanted)
    found = gradients(lambda x: hvd.alltoall(x, [1] * size)[0], np.ones(size))[0]
    assert np.allclose(found, wanted)


def test_a_set(rank, size, even_set):
    if rank % 2 == 0:
        found = gradients(lambda x: hvd.allreduce(x, process_set=even_set), np.ones(2))[0]
        assert np.allclose(found, ramp(2, np.mean([r + 1 for r in even_set.ranks])))


def test_many_without_names(rank, size):
    """MXNet asks for their gradients in any order; more of them than there are names."""
    leaves = [nd.full((1,), i) for i in range(300)]
    for each in leaves:
        each.attach_grad()
    with autograd.record():
        loss = sum(hvd.allreduce(each, op=hvd.Sum).sum() * i * (rank + 1)
                   for i, each in enumerate(leaves))
    loss.backward()
    for i, each in enumerate(leaves):
        assert float(each.grad.asscalar()) == i * size * (size + 1) / 2


def test_outside_of_a_record_nothing_is_recorded(rank):
    x = nd.ones((2,))
    x.attach_grad()
    y = hvd.allreduce(x)
    with pytest.raises(mx.base.MXNetError):
        y.backward()


def test_an_error_leaves_the_record_as_it_was(rank, several):
    x = nd.ones((2, 2 + (rank == 1)))
    x.attach_grad()
    with autograd.record():
        with pytest.raises(hvd.MismatchError):
            hvd.allgather(x)
        assert autograd.is_recording()
        loss = (x * 2).sum()
    loss.backward()
    assert x.grad.asnumpy().min() == 2


def test_an_op_without_a_gradient(rank):
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        most = hvd.allreduce(x, op=hvd.Max).sum()
    with pytest.raises(mx.base.MXNetError):
        most.backward()
        x.grad.wait_to_read()
