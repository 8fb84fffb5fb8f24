# SPDX-License-Identifier: Apache-2.0
"""hvd.mxnet's trainer and optimizer: training on all ranks is training on one with all their
batches."""
import contextlib
import copy
import pickle

import numpy as np
import pytest

mx = pytest.importorskip("mxnet", reason="mxnet is not installed")

from mxnet import autograd, gluon, nd  # noqa: E402

import hvd.mxnet as hvd  # noqa: E402

ROWS = 6  # of each rank


def network(seed, outputs=3, **how):
    """The same on all ranks, if the seed is."""
    mx.random.seed(seed)
    np.random.seed(seed)  # MXNet's initializers ask it as well
    net = gluon.nn.HybridSequential(prefix=f"net{seed}_")
    with net.name_scope():
        net.add(gluon.nn.Dense(5, in_units=4, activation="tanh"))
        net.add(gluon.nn.Dense(outputs, in_units=5))
    net.initialize(mx.init.Xavier(), **how)
    return net


def batch(step, size):
    """Returns (inputs, targets) of all ranks."""
    values = np.random.RandomState(step)
    return (values.randn(ROWS * size, 4).astype("float32"),
            values.randn(ROWS * size, 3).astype("float32"))


def train(net, trainer, rows, count, size, steps=4):
    """`rows` of each batch, which has `count` of them for this trainer."""
    loss_of = gluon.loss.L2Loss()
    for step in range(steps):
        inputs, targets = (nd.array(each[rows]) for each in batch(step, size))
        with autograd.record():
            loss = loss_of(net(inputs), targets)
        loss.backward()
        trainer.step(count)
    return weights(net)


def weights(net):
    return [p.data().asnumpy() for _, p in sorted(net.collect_params().items())]


def alone(seed, size, *how):
    net = network(seed)
    return train(net, gluon.Trainer(net.collect_params(), *how), slice(None), ROWS * size, size)


def close(found, wanted, within=1e-5):
    for mine, theirs in zip(found, wanted, strict=True):
        assert np.abs(mine - theirs).max() <= within


def own_rows(rank):
    return slice(ROWS * rank, ROWS * (rank + 1))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("how", [{}, {"num_groups": 2}, {"num_groups": 9},
                                 {"gradient_predivide_factor": 2.0}, {"prefix": "mine."}],
                         ids=str)
def test_a_trainer_equals_the_whole_batch(optimizer, how, rank, size):
    words = {"learning_rate": 0.1, "wd": 0.01}
    net = network(1)
    trainer = hvd.DistributedTrainer(net.collect_params(), optimizer, words, **how)
    assert isinstance(trainer, gluon.Trainer)
    found = train(net, trainer, own_rows(rank), ROWS, size)
    close(found, alone(1, size, optimizer, words))
    assert not np.allclose(found[-1], weights(network(1))[-1])


def test_hybridized_with_static_memory(rank, size):
    net = network(2)
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = hvd.DistributedTrainer(net.collect_params(), mx.optimizer.SGD(learning_rate=0.1))
    close(train(net, trainer, own_rows(rank), ROWS, size),
          alone(2, size, "sgd", {"learning_rate": 0.1}))


class Halved(hvd.Compression.none):
    """A user's: what travels is half as large."""

    used = 0

    @staticmethod
    def compress(tensor):
        Halved.used += 1
        return tensor / 2, 2

    @staticmethod
    def decompress(tensor, ctx):
        return tensor * ctx


@pytest.mark.parametrize("how", [{}, {"num_groups": 2}], ids=str)
def test_compressions(how, rank, size):
    words = "sgd", {"learning_rate": 0.1}
    net = network(3)
    trainer = hvd.DistributedTrainer(net.collect_params(), *words, Halved, **how)
    close(train(net, trainer, own_rows(rank), ROWS, size), alone(3, size, *words))
    assert (Halved.used > 0) == (size > 1)
    net = network(3)
    trainer = hvd.DistributedTrainer(net.collect_params(), *words, hvd.Compression.fp16, **how)
    close(train(net, trainer, own_rows(rank), ROWS, size), alone(3, size, *words), 1e-3)
    small, context = hvd.Compression.fp16.compress(nd.ones((2,)))
    assert small.dtype == np.float16 and context == np.float32
    assert hvd.Compression.fp16.decompress(small, context).dtype == np.float32
    assert hvd.Compression.fp16.compress(nd.ones((2,), dtype="int32"))[0].dtype == np.int32
    assert hvd.Compression.none.compress(small)[0] is small


def test_gradients_between_reduction_and_update(rank, size):
    """As in Horovod they are sums, which programs clip."""
    net = network(4)
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
    before = weights(net)
    with autograd.record():
        loss = sum((p.data() * (rank + 1)).sum() for p in net.collect_params().values())
    loss.backward()
    trainer.allreduce_grads()
    for p in net.collect_params().values():
        assert np.allclose(p.grad().asnumpy(), size * (size + 1) / 2)
    trainer.update(2)
    close(weights(net), [each - (size + 1) / 4 for each in before])


def test_a_trainer_of_a_set(rank, size, even_set):
    words = "sgd", {"learning_rate": 0.1}
    net = network(5)
    trainer = hvd.DistributedTrainer(net.collect_params(), *words, process_set=even_set)
    members = len(even_set.ranks)
    if rank % 2 == 0:
        found = train(net, trainer, own_rows(rank // 2), ROWS, members)
        close(found, alone(5, members, *words))


def test_frozen_parameters_stay(rank, size):
    net = network(6)
    net[0].weight.grad_req = "null"
    before = net[0].weight.data().asnumpy()
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    train(net, trainer, own_rows(rank), ROWS, size)
    assert np.array_equal(net[0].weight.data().asnumpy(), before)


def test_what_a_trainer_refuses():
    net = network(7, ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(ValueError, match="one context"):
        hvd.DistributedTrainer(net.collect_params(), "sgd")
    sparse = gluon.nn.Embedding(4, 2, sparse_grad=True)
    sparse.initialize()
    with pytest.raises(ValueError, match="dense"):
        hvd.DistributedTrainer(sparse.collect_params(), "sgd")
    with pytest.warns(UserWarning, match="plain optimizer"):
        plain = mx.optimizer.SGD()
        trainer = hvd.DistributedTrainer(network(7).collect_params(),
                                         hvd.DistributedOptimizer(plain))
    assert trainer._optimizer is plain


# ---- the optimizer ----

def update_by(optimizer, gradients, dtype="float32"):
    """The weights after an update for each of the gradients."""
    updater = mx.optimizer.get_updater(optimizer)
    weight = [nd.ones((3,), dtype=dtype), nd.ones((2,), dtype=dtype)]
    for gradient in gradients:
        updater([0, 1], [nd.full((3,), gradient, dtype=dtype),
                         nd.full((2,), -gradient, dtype=dtype)], weight)
    updater(0, nd.full((3,), gradient, dtype=dtype), weight[0])
    return [each.asnumpy() for each in weight]


@pytest.mark.parametrize("how", [{}, {"gradient_predivide_factor": 2.0}, {"num_groups": 1}],
                         ids=str)
@pytest.mark.parametrize("kind", ["sgd", "adam", "nag", "lamb"])
def test_an_optimizer_averages(kind, how, rank, size):
    words = {"learning_rate": 0.1, "wd": 0.01}
    found = update_by(hvd.DistributedOptimizer(mx.optimizer.create(kind, **words), **how),
                      [rank + 1, rank + 3])
    wanted = update_by(mx.optimizer.create(kind, **words), [(size + 1) / 2, (size + 1) / 2 + 2])
    close(found, wanted)


def test_an_optimizer_of_float16(rank, size):
    words = {"learning_rate": 0.5, "momentum": 0.5, "multi_precision": True}
    found = update_by(hvd.DistributedOptimizer(mx.optimizer.SGD(**words)), [rank + 1], "float16")
    close(found, update_by(mx.optimizer.SGD(**words), [(size + 1) / 2], "float16"), 1e-2)


def test_an_optimizer_is_of_its_class(rank, size):
    plain = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)
    made = hvd.DistributedOptimizer(plain)
    assert isinstance(made, mx.optimizer.SGD) and isinstance(made, hvd.DistributedOptimizer)
    made.set_learning_rate(0.3)
    assert plain.learning_rate == 0.3
    plain.rescale_grad = 0.25
    assert made.rescale_grad == 0.25 and made.momentum == 0.9
    made.lr_mult = {0: 2.0}
    assert plain.lr_mult == {0: 2.0}
    loaded = pickle.loads(pickle.dumps(made))
    assert type(loaded) is mx.optimizer.SGD and loaded.momentum == 0.9
    assert type(copy.deepcopy(made)) is mx.optimizer.SGD
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedOptimizer(made)


def test_a_module(rank, size):
    """MXNet's older interface: the module has the optimizer make the updates."""
    def fit(optimizer, rows, count):
        data, target = mx.sym.Variable("data"), mx.sym.Variable("target")
        out = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(data, num_hidden=3), target)
        module = mx.mod.Module(out, ["data"], ["target"])
        inputs, targets = (each[rows] for each in batch(0, size))
        source = mx.io.NDArrayIter(inputs, targets, count, label_name="target")
        module.bind(source.provide_data, source.provide_label)
        module.init_params(mx.init.Constant(0.1))
        module.init_optimizer(kvstore=None, optimizer=optimizer)
        for _ in range(3):
            source.reset()
            for each in source:
                module.forward_backward(each)
                module.update()
        return [value.asnumpy() for _, value in sorted(module.get_params()[0].items())]

    found = fit(hvd.DistributedOptimizer(mx.optimizer.SGD(rescale_grad=1 / ROWS)),
                own_rows(rank), ROWS)
    wanted = fit(mx.optimizer.SGD(rescale_grad=1 / ROWS / size), slice(None), ROWS * size)
    close(found, wanted)


# ---- beginning alike ----

def test_broadcast_parameters(rank, size):
    net = network(10 + rank)
    names = {name.replace(f"net{10 + rank}_", ""): p for name, p in net.collect_params().items()}
    hvd.broadcast_parameters(names, root_rank=size - 1, prefix="first.")
    close(weights(net), weights(network(10 + size - 1)), 0)
    values = {"b": nd.full((2,), rank), "a": nd.full((3,), rank)}
    hvd.broadcast_parameters(values)
    assert values["a"].asnumpy().tolist() == [0] * 3 and values["b"].asnumpy().tolist() == [0] * 2
    with pytest.raises(ValueError, match="invalid params"):
        hvd.broadcast_parameters([nd.ones((2,))])


def test_parameters_of_unknown_shape_are_broadcast_when_they_are_known(rank, size):
    net = gluon.nn.HybridSequential(prefix="deferred_")
    with net.name_scope():
        net.add(gluon.nn.Dense(4), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
    net.initialize(mx.init.Uniform(1.0 + rank))
    mx.random.seed(rank)
    np.random.seed(rank)
    params = net.collect_params()
    hvd.broadcast_parameters(params, root_rank=0)
    net(nd.ones((2, 3)))
    mine = weights(net)
    for theirs in hvd.allgather_object(mine):
        close(mine, theirs, 0)
    for p in params.values():
        assert "_init_impl" not in vars(p)
    # From then on it is a parameter as any other.
    net.initialize(mx.init.Constant(rank), force_reinit=True)
    assert params["deferred_dense0_weight"].data().asnumpy()[0, 0] == rank


def test_weights_that_onednn_has_laid_out(rank, size):
    """As they lie behind an inference."""
    net = gluon.nn.HybridSequential(prefix="conv_")
    with net.name_scope():
        net.add(gluon.nn.Conv2D(16, 3, in_channels=16))
    net.initialize(mx.init.Constant(rank + 1))
    net.hybridize()
    image = nd.ones((1, 16, 5, 5))
    assert net(image).asnumpy().max() == 144 * (rank + 1)
    hvd.broadcast_parameters(net.collect_params(), root_rank=size - 1)
    assert np.array_equal(net(image).asnumpy(), np.full((1, 16, 3, 3), 144.0 * size))


def test_names_that_a_process_numbers_by_what_it_has_built(rank, size):
    """As text dense10 comes before dense9: gluon's list has another order on rank 1."""
    layers = [gluon.nn.Dense(4, in_units=4, prefix=f"dense{8 + i + min(rank, 1)}_")
              for i in range(2)]
    params = gluon.ParameterDict()
    for layer in layers:
        layer.initialize(mx.init.Zero())
        params.update(layer.collect_params())
    trainer = hvd.DistributedTrainer(params, "sgd", {"learning_rate": 1.0})
    with autograd.record():
        loss = sum(layer(nd.ones((1, 4))).sum() * (i + 1.0) * (rank + 1)
                   for i, layer in enumerate(layers))
    loss.backward()
    trainer.step(1)
    for i, layer in enumerate(layers):
        assert np.allclose(layer.bias.data().asnumpy(), -(i + 1) * (size + 1) / 2)


def test_other_names_are_a_mismatch(rank, size, several):
    layer = gluon.nn.Dense(1, in_units=1, prefix="a_" if rank == 1 else "b_")
    layer.initialize()
    trainer = hvd.DistributedTrainer(layer.collect_params(), "sgd")
    with autograd.record():
        loss = layer(nd.ones((1, 1))).sum()
    loss.backward()
    with pytest.raises(hvd.MismatchError, match="give different tensors, by their names"):
        trainer.step(1)
        layer.weight.data().asnumpy()
    for _ in range(3):  # of each parameter; the engine may tell it once more
        with contextlib.suppress(hvd.MismatchError):
            nd.waitall()
