# SPDX-License-Identifier: Apache-2.0
"""tf_keras: a training on all ranks is that of one rank with all data."""
import subprocess
import sys

import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("tf_keras", reason="tf_keras is not installed")
import numpy as np  # noqa: E402
from legacy_training import (  # noqa: E402
    BATCH,
    data,
    fit,
    largest_difference,
    mine,
    must_be_alike,
    network,
)

import hvd.tensorflow as plain  # noqa: E402
import hvd.tensorflow.keras as hvd  # noqa: E402

O = tf.keras.optimizers  # noqa: E741
L = O.legacy

CASES = {
    "sgd": (lambda: O.SGD(0.05, momentum=0.9), {}),
    "clipnorm": (lambda: O.SGD(0.05, clipnorm=0.05), {}),
    "global_clipnorm": (lambda: O.Adam(0.01, global_clipnorm=0.1), {}),
    "ema": (lambda: O.AdamW(0.01, use_ema=True), {}),
    "schedule": (lambda: O.SGD(O.schedules.ExponentialDecay(0.1, 2, 0.5)), {}),
    "predivide": (lambda: O.SGD(0.05), {"gradient_predivide_factor": 2.0}),
    "legacy sgd": (lambda: L.SGD(0.05, momentum=0.9), {}),
    "legacy clipnorm": (lambda: L.Adam(0.01, clipnorm=0.1), {}),
    "legacy global_clipnorm": (lambda: L.Adam(0.01, global_clipnorm=0.1), {"groups": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_training_is_that_of_one_rank_with_all_data(case):
    make, how = CASES[case]
    alone = fit(network(), make(), together=False)
    model = network()
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                 hvd.callbacks.MetricAverageCallback()]
    found = fit(model, hvd.DistributedOptimizer(make(), **how), together=True, callbacks=callbacks)
    assert largest_difference(alone, found) < 1e-5
    must_be_alike(found)


@pytest.mark.parametrize("kind", [O, L])
def test_backward_passes_add_up_and_can_be_averaged(kind):
    make = lambda: kind.SGD(0.02, momentum=0.5, clipnorm=0.1)  # noqa: E731
    passes = {"backward_passes_per_step": 2}
    averaged = fit(network(), make(), together=False, batch=2 * BATCH)
    optimizer = hvd.DistributedOptimizer(make(), average_aggregated_gradients=True, **passes)
    assert largest_difference(averaged, fit(network(), optimizer, together=True)) < 1e-5
    twice = fit(network(), kind.SGD(0.04), together=False, batch=2 * BATCH)
    optimizer = plain.DistributedOptimizer(kind.SGD(0.02), **passes)
    assert largest_difference(twice, fit(network(), optimizer, together=True)) < 1e-5
    assert int(optimizer.iterations) == 8 and int(optimizer._agg_helper.counter) == 0
    assert plain.DistributedOptimizer(kind.SGD(0.02))._agg_helper is None


@pytest.mark.parametrize("kind", [O, L])
@pytest.mark.parametrize("inside", [False, True])
def test_passes_are_counted(kind, inside, rank, size):
    """As Horovod's tests look at them: by `_compute_gradients`, `_agg_helper` and `iterations`."""
    variable = tf.Variable(tf.zeros(3))
    optimizer = hvd.DistributedOptimizer(kind.SGD(1.0), op=hvd.Sum, backward_passes_per_step=4)
    assert optimizer._agg_helper.counter is None

    def a_pass():
        found = optimizer._compute_gradients(
            lambda: (rank + 1.0) * tf.reduce_sum(variable), [variable])
        optimizer.apply_gradients(found, experimental_aggregate_gradients=False)

    call = tf.function(a_pass) if inside else a_pass
    for number in range(1, 11):
        call()
        assert int(optimizer._agg_helper.counter) == number % 4  # type: ignore[call-overload]
        assert int(optimizer.iterations) == number
        np.testing.assert_allclose(variable, [-(number // 4) * 4 * size * (size + 1) / 2] * 3)


@pytest.mark.parametrize("kind", [O, L])
def test_gradients_by_the_optimizer(kind, rank, size):
    """Computed gradients are those of all ranks; applying does not reduce them again."""
    variable = tf.Variable(tf.zeros(3))
    optimizer = hvd.DistributedOptimizer(kind.SGD(1.0), op=hvd.Sum)
    compute = getattr(optimizer, "compute_gradients", None) or optimizer._compute_gradients

    @tf.function
    def step():
        pairs = compute(lambda: tf.reduce_sum(variable) * (rank + 1.0), [variable])
        optimizer.apply_gradients([(gradient / 2, each) for gradient, each in pairs])
        return pairs[0][0]

    total = sum(range(1, size + 1))
    assert step().numpy().tolist() == [total] * 3
    assert variable.numpy().tolist() == [-total / 2] * 3
    optimizer.minimize(lambda: tf.reduce_sum(variable) * (rank + 1.0), [variable])
    assert variable.numpy().tolist() == [-1.5 * total] * 3
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(variable) * (rank + 1.0)
    optimizer.apply_gradients(zip(tape.gradient(loss, [variable]), [variable], strict=True))
    assert variable.numpy().tolist() == [-2.5 * total] * 3


def test_sessions(rank, size):
    with tf.Graph().as_default():
        variable = tf.compat.v1.get_variable("v", initializer=tf.constant([1.0, 2.0]),
                                             use_resource=True)
        optimizer = hvd.DistributedOptimizer(L.SGD(1.0), op=hvd.Sum)
        gradients = tf.compat.v1.gradients(tf.reduce_sum(variable) * (rank + 1.0), [variable])
        update = optimizer.apply_gradients(zip(gradients, [variable], strict=True))
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(update)
            total = sum(range(1, size + 1))
            assert session.run(variable).tolist() == [1.0 - total, 2.0 - total]


def test_embeddings_and_frozen_layers(size):
    def train(optimizer, some, wanted, batch):
        tf.keras.utils.set_random_seed(5)
        frozen = tf.keras.layers.Dense(6, trainable=False)
        model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Embedding(30, 5),
                                     tf.keras.layers.Flatten(), frozen, tf.keras.layers.Dense(2)])
        model.compile(optimizer, "mse")
        model.fit(some, wanted, batch_size=batch, epochs=2, verbose=0, shuffle=False)
        return model.get_weights()

    random = np.random.default_rng(1)
    inputs, targets = random.integers(0, 30, (48, 4)), random.normal(size=(48, 2))
    for kind in (O, L):
        alone = train(kind.SGD(0.1), inputs, targets, 24)
        for dense in (False, True):
            optimizer = hvd.DistributedOptimizer(kind.SGD(0.1), sparse_as_dense=dense)
            found = train(optimizer, mine(inputs), mine(targets), 24 // size)
            assert largest_difference(alone, found) < 1e-5


@pytest.mark.parametrize("kind", [O, L])
def test_local_layers(kind, rank, size):
    model = network()
    optimizer = hvd.PartialDistributedOptimizer(kind.SGD(1.0), local_layers=model.layers[1])
    before = model.get_weights()
    optimizer.apply_gradients([(tf.ones_like(v) * (1.0 + rank), v)
                               for v in model.trainable_variables])
    changes = [float((a - b).flat[0]) for a, b in zip(before, model.get_weights(), strict=True)]
    assert np.allclose(changes, [(1 + size) / 2] * 2 + [(1 + rank) / size] * 2, atol=1e-5)


WAYS = {
    "keras wraps": lambda kind: hvd.DistributedOptimizer(kind.SGD(0.01, momentum=0.9)),
    "user wraps": lambda kind: tf.keras.mixed_precision.LossScaleOptimizer(
        hvd.DistributedOptimizer(kind.SGD(0.01))),
    "hvd wraps": lambda kind: hvd.DistributedOptimizer(
        tf.keras.mixed_precision.LossScaleOptimizer(kind.SGD(0.01))),
}


@pytest.mark.parametrize("kind", [O, L])
@pytest.mark.parametrize("way", WAYS)
def test_an_overflow_on_one_rank(way, kind, rank, size):
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = network("mixed_float16")
        model.compile(WAYS[way](kind), loss="mse")
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    inputs, targets = data()
    inputs, targets = mine(inputs), mine(targets)
    each = BATCH // size
    if rank == size - 1:
        targets[each:2 * each] = 6e4
    scales = []
    watch = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: scales.append(
        float(model.optimizer.loss_scale)))
    model.fit(inputs, targets, batch_size=each, verbose=0, shuffle=False, callbacks=[watch])
    assert all(other == scales for other in hvd.allgather_object(scales))
    assert scales[1] == scales[0] / 2 and len(scales) == 4
    assert all(np.isfinite(weights).all() for weights in model.get_weights())
    must_be_alike(model.get_weights())


LOADS = """
import sys
import numpy, tf_keras
for path in sys.argv[1:]:
    model = tf_keras.models.load_model(path)
    model.fit(numpy.ones((4, 8)), numpy.ones((4, 3)), verbose=0)
    print(type(model.optimizer).__name__)
assert "hvd" not in sys.modules
"""


def test_a_saved_model_loads_where_there_is_no_hvd(rank, size, tmp_path):
    paths = []
    for name, optimizer in (("adam.keras", O.Adam(0.01)), ("sgd.h5", L.SGD(0.01, momentum=0.9)),
                            ("adam.h5", O.Adam(0.01)), ("folder", O.Adam(0.01))):
        model = network()
        fit(model, hvd.DistributedOptimizer(optimizer), together=True)
        paths.append(str(tmp_path / name))
        model.save(paths[-1])
    done = subprocess.run([sys.executable, "-c", LOADS, *paths], capture_output=True,
                          text=True) if rank == 0 else None
    told = hvd.broadcast_object((done.stdout.split(), done.stderr) if done else ([], ""))
    assert told[0] == ["Adam", "SGD", "Adam", "Adam"], told[1]
    for path in paths[:3]:
        loaded = hvd.load_model(path)
        assert int(loaded.optimizer.iterations) == 8
        loaded.fit(mine(data()[0]) + rank, mine(data()[1]), verbose=0, batch_size=BATCH // size)
        must_be_alike(loaded.get_weights())
        with pytest.raises(ValueError, match="already"):
            hvd.DistributedOptimizer(loaded.optimizer)


def test_a_mismatch_says_the_same_on_all_ranks(rank, several):
    variable = tf.Variable(tf.zeros(3))
    optimizer = hvd.DistributedOptimizer(O.SGD(1.0))
    with pytest.raises(Exception, match="rank 1 ") as raised:
        optimizer.apply_gradients([(tf.ones(3 + (rank == 1)), variable)])
    error = hvd.error_of(raised.value)
    assert isinstance(error, hvd.MismatchError)
    assert len(set(hvd.allgather_object(str(error)))) == 1
    optimizer.apply_gradients([(tf.ones(3), variable)])
    assert variable.numpy().tolist() == [-1.0] * 3


def test_what_is_refused():
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(O.SGD(0.1)))
    with pytest.raises(RuntimeError, match="eager"):
        hvd.broadcast_global_variables(0)
    scaled = tf.keras.mixed_precision.LossScaleOptimizer(
        hvd.DistributedOptimizer(O.SGD(0.1), backward_passes_per_step=2))
    with pytest.raises(ValueError, match="LossScaleOptimizer"):
        fit(network(), scaled, together=True)
