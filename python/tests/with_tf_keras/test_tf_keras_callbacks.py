# SPDX-License-Identifier: Apache-2.0
"""tf_keras: what the callbacks and SyncBatchNormalization do."""
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("tf_keras", reason="tf_keras is not installed")
import numpy as np  # noqa: E402
from legacy_training import BATCH, data, mine, must_be_alike, network  # noqa: E402

import hvd.tensorflow.keras as hvd  # noqa: E402

O = tf.keras.optimizers  # noqa: E741
L = O.legacy
C = hvd.callbacks


class Watch(tf.keras.callbacks.Callback):
    """Notes what other callbacks see."""

    def __init__(self):
        super().__init__()
        self.rates, self.logs = [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(tf.keras.backend.get_value(self.model.optimizer.learning_rate)))

    def on_epoch_end(self, epoch, logs=None):
        self.logs.append(dict(logs))


def train(model, *callbacks, epochs=1, **how):
    inputs, targets = data()
    model.fit(mine(inputs), mine(targets), batch_size=BATCH // hvd.size(), epochs=epochs,
              verbose=0, callbacks=list(callbacks), **how)


@pytest.mark.parametrize("kind", [O, L])
@pytest.mark.parametrize("built", [True, False])
def test_broadcast(built, kind, rank, size):
    tf.keras.utils.set_random_seed(rank)
    layers = [tf.keras.layers.Dense(4), tf.keras.layers.Dense(3)]
    model = tf.keras.Sequential([tf.keras.Input((8,)), *layers] if built else layers)
    optimizer = hvd.DistributedOptimizer(kind.Adam(0.01))
    model.compile(optimizer, "mse")
    train(model, C.BroadcastGlobalVariablesCallback(0))
    must_be_alike(model.get_weights())
    found = optimizer.variables
    must_be_alike(tf.keras.backend.batch_get_value(found() if callable(found) else found))


@pytest.mark.parametrize("kind", [O, L])
def test_warm_up_and_metrics(kind, rank, size, capsys):
    model = network()
    model.compile(hvd.DistributedOptimizer(kind.SGD(0.1 * size, momentum=0.9)), "mse",
                  metrics=["mae"])
    watch = Watch()
    warm = C.LearningRateWarmupCallback(initial_lr=0.1 * size, warmup_epochs=2, verbose=1)
    inputs, targets = data()
    how = {"validation_data": (inputs[:8], targets[:8])} if rank == 0 else {}
    train(model, C.MetricAverageCallback(), warm, watch, epochs=3, **how)
    steps = len(data()[0]) // BATCH
    wanted = [0.1 * (1 + (size - 1) * (i + 1) / (2 * steps)) for i in range(2 * steps)]
    assert np.allclose(watch.rates, wanted + [0.1 * size] * steps, rtol=1e-5)
    logs = watch.logs[-1]
    assert {"loss", "mae", "val_loss", "val_mae", "lr"} <= set(logs)
    assert len({tuple(sorted(each.items())) for each in hvd.allgather_object(logs)}) == 1
    assert "Epoch 2: finished gradual learning rate warmup to" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [O, L])
def test_momentum_correction(kind):
    model = network()
    model.compile(hvd.DistributedOptimizer(kind.SGD(0.2, momentum=0.5)), "mse")
    train(model)

    def velocity():
        optimizer = model.optimizer
        found = optimizer.get_slot(model.trainable_variables[0], "momentum") if kind is L else (
            optimizer.momentums[0])
        return found.numpy()

    held, seen = velocity(), []
    watch = tf.keras.callbacks.LambdaCallback(on_batch_begin=lambda batch, logs: seen.append(
        velocity()))
    train(model, C.LearningRateScheduleCallback(0.2, 3.0), watch)
    assert np.allclose(seen[0], 3 * held, rtol=1e-5)


def test_the_best_model(tmp_path):
    model = network()
    model.compile(hvd.DistributedOptimizer(O.SGD(0.01)), "mse")
    best = C.BestModelCheckpoint(monitor="loss")
    best.filepath = str(tmp_path / "best.keras")
    train(model, best)
    assert tf.keras.models.load_model(best.filepath).optimizer is not None


def test_batch_normalisation_of_unequal_batches(rank, size):
    assert issubclass(hvd.SyncBatchNormalization, tf.keras.layers.BatchNormalization)
    random = np.random.default_rng(2)
    count = size * (size + 1)
    inputs = (random.normal(size=(count, 5, 4)) + 50).astype("float32")
    own = slice(rank * (rank + 1), rank * (rank + 1) + 2 * (rank + 1))

    def run(layer, rows):
        weights = tf.constant(random_weights)

        @tf.function
        def step():
            source = tf.constant(rows)
            with tf.GradientTape() as tape:
                tape.watch(source)
                loss = tf.reduce_sum(tf.square(layer(source, training=True)) * weights)
            return tape.gradient(loss, [source, *layer.trainable_variables])

        return step()

    random_weights = np.arange(1, 21, dtype="float32").reshape(5, 4)
    alone, together = tf.keras.layers.BatchNormalization(), hvd.SyncBatchNormalization()
    for layer in (alone, together):
        layer.build((None, 5, 4))
    wanted, found = run(alone, inputs), run(together, inputs[own])
    assert np.allclose(wanted[0].numpy()[own], found[0].numpy(), rtol=1e-2, atol=1e-1)
    for one, other in zip(wanted[1:], found[1:], strict=True):
        assert np.allclose(one, hvd.allreduce(other, op=hvd.Sum), rtol=1e-3, atol=1e-2)
    for one, other in zip(alone.non_trainable_variables, together.non_trainable_variables,
                          strict=True):
        assert np.allclose(one, other, rtol=1e-4)
    must_be_alike([each.numpy() for each in together.non_trainable_variables])
    with pytest.raises(ValueError, match="fused"):
        hvd.SyncBatchNormalization(fused=True)
