# SPDX-License-Identifier: Apache-2.0
"""hvd.elastic of tf_keras where nobody comes or goes."""
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("tf_keras", reason="tf_keras is not installed")
import numpy as np  # noqa: E402
from legacy_training import network  # noqa: E402

import hvd.tensorflow.keras as hvd  # noqa: E402


def values(model):
    variables = model.optimizer.variables
    found = [*model.weights, *(variables() if callable(variables) else variables)]
    return [one.numpy() for one in found]


@pytest.mark.parametrize("kind", [tf.keras.optimizers, tf.keras.optimizers.legacy])
def test_a_state_goes_back_before_the_first_step(rank, kind):
    model = network()
    model.compile(hvd.DistributedOptimizer(kind.Adam(0.01)), loss="mse")
    state = hvd.elastic.KerasState(model, batch=0)
    state.sync()
    kept = values(model)
    assert len(kept) == 4 + 1 + 2 * 4
    x = np.random.default_rng(rank).random((8, 8))
    model.fit(x, x[:, :3], batch_size=4, verbose=0)
    moved = values(model)
    assert len(moved) == len(kept)
    assert not all(np.array_equal(one, other) for one, other in zip(moved, kept, strict=True))
    state.restore()
    for one, other in zip(values(model), kept, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("kind", [tf.keras.optimizers, tf.keras.optimizers.legacy])
def test_the_learning_rate_goes_back_and_becomes_that_of_all(rank, kind):
    model = network()
    model.compile(hvd.DistributedOptimizer(kind.SGD(0.25 * (rank + 1))), loss="mse")
    state = hvd.elastic.KerasState(model)
    state.sync()
    assert model.optimizer.learning_rate.numpy() == 0.25
    model.optimizer.learning_rate.assign(0.5)
    state.restore()
    assert model.optimizer.learning_rate.numpy() == 0.25
