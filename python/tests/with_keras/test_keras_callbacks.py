# SPDX-License-Identifier: Apache-2.0
"""Keras 3: what the callbacks do."""
import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")
import numpy as np  # noqa: E402
from training import BATCH, data, mine, must_be_alike, network  # noqa: E402

import hvd.keras as hvd  # noqa: E402

O = keras.optimizers  # noqa: E741
C = hvd.callbacks


class Watch(keras.callbacks.Callback):
    """Notes what other callbacks see."""

    def __init__(self):
        super().__init__()
        self.rates, self.logs, self.velocity = [], [], []

    def on_train_batch_begin(self, batch, logs=None):
        optimizer = self.model.optimizer
        self.rates.append(float(keras.ops.convert_to_numpy(optimizer.learning_rate)))
        if getattr(optimizer, "momentums", None):
            self.velocity.append(keras.ops.convert_to_numpy(optimizer.momentums[0]).copy())

    def on_epoch_end(self, epoch, logs=None):
        self.logs.append(dict(logs))


def train(model, *callbacks, epochs=1, size=1, **how):
    inputs, targets = data()
    model.fit(mine(inputs), mine(targets), batch_size=BATCH // size, epochs=epochs, verbose=0,
              callbacks=list(callbacks), **how)


@pytest.mark.parametrize("built", [True, False])
def test_broadcast(built, rank, size):
    keras.utils.set_random_seed(rank)  # all begin with weights of their own
    layers = [keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((8,)), *layers] if built else layers)
    optimizer = O.Adam(0.01 * (rank + 1))
    model.compile(hvd.DistributedOptimizer(optimizer), "mse")
    root = C.BroadcastGlobalVariablesCallback(size - 1)
    train(model, root, size=size)
    assert root.broadcast_done
    assert float(keras.ops.convert_to_numpy(optimizer.learning_rate)) == pytest.approx(0.01 * size)
    trained = [keras.ops.convert_to_numpy(each).tobytes() for each in
               model.trainable_variables + optimizer.variables]
    assert all(other == trained for other in hvd.allgather_object(trained))
    # Again: what one rank has changed since reaches the others.
    if rank == size - 1:
        model.layers[0].set_weights([each * 0 for each in model.layers[0].get_weights()])
    seen = []
    watch = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: seen.append(
        np.abs(model.layers[0].get_weights()[0]).max()))
    train(model, root, watch, size=size)
    assert seen == [0.0]


def test_broadcast_leaves_local_variables(rank, size):
    model = network()
    model.layers[0].set_weights([each * 0 + rank for each in model.layers[0].get_weights()])
    model.compile(hvd.DistributedOptimizer(O.SGD(0.0)), "mse")
    root = C.BroadcastGlobalVariablesCallback(0, local_variables=[model.layers[0].kernel])
    root.register_local_var(model.layers[0].bias)
    train(model, root, size=size)
    assert all((each == rank).all() for each in model.layers[0].get_weights())


def test_metrics_are_averaged_also_where_ranks_have_others(rank, size):
    model = network()
    model.compile(hvd.DistributedOptimizer(O.SGD(0.0)), "mse", metrics=["mae"])
    watch = Watch()

    class Own(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["word"] = "kept"
            if rank == 0:
                logs["of_one"] = 3.0
            mixed = dict(reversed(logs.items())) if rank else dict(logs)
            logs.clear()
            logs.update(mixed)
            logs["rank"] = float(rank)

    inputs, targets = data()
    how = {"validation_data": (inputs[:8], targets[:8])} if rank == 0 else {}
    train(model, Own(), C.MetricAverageCallback(), watch, size=size, **how)
    logs = watch.logs[0]
    assert logs["rank"] == (size - 1) / 2 and logs["of_one"] == 3.0 and logs["word"] == "kept"
    assert {"loss", "mae", "val_loss", "val_mae"} <= set(logs)
    assert len({tuple(sorted(each.items())) for each in hvd.allgather_object(logs)}) == 1
    assert logs["loss"] == pytest.approx(network_loss(), rel=1e-4)


def network_loss():
    model = network()
    model.compile(O.SGD(0.0), "mse")
    return model.evaluate(*data(), verbose=0)


def test_warm_up(rank, size, capsys):
    model = network()
    model.compile(hvd.DistributedOptimizer(O.SGD(0.1 * size, momentum=0.9)), "mse")
    watch = Watch()
    warm = C.LearningRateWarmupCallback(initial_lr=0.1 * size, warmup_epochs=2, verbose=1)
    train(model, warm, watch, epochs=3, size=size)
    steps = len(data()[0]) // BATCH
    assert warm.steps_per_epoch == steps
    wanted = [0.1 * (1 + (size - 1) * (i + 1) / (2 * steps)) for i in range(2 * steps)]
    assert np.allclose(watch.rates, wanted + [0.1 * size] * steps, rtol=1e-5)
    assert watch.logs[-1]["lr"] == pytest.approx(0.1 * size)
    assert f"Epoch 2: finished gradual learning rate warmup to {0.1 * size:g}." in (
        capsys.readouterr().out)


def test_schedules(size):
    model = network()
    model.compile(hvd.DistributedOptimizer(O.SGD(0.2, momentum=0.5)), "mse")
    watch = Watch()
    train(model, C.LearningRateScheduleCallback(0.2, 0.5, start_epoch=1, end_epoch=2),
          C.LearningRateScheduleCallback(0.2, lambda epoch: 1 / epoch, start_epoch=2,
                                         staircase=False), watch, epochs=3, size=size)
    steps = len(data()[0]) // BATCH
    wanted = [0.2] * steps + [0.1] * steps + [0.2 / (2 + i / steps) for i in range(steps)]
    assert np.allclose(watch.rates, wanted, rtol=1e-5)
    # Momentum correction: the velocity that was gathered with one rate fits the other.
    before = Watch()
    train(model, before, size=size)
    held = keras.ops.convert_to_numpy(model.optimizer.momentums[0]).copy()
    rate = float(keras.ops.convert_to_numpy(model.optimizer.learning_rate))
    after = Watch()
    train(model, C.LearningRateScheduleCallback(rate, 3.0), after, size=size)
    assert np.allclose(after.velocity[0], 3 * held, rtol=1e-4, atol=1e-7)
    kept = Watch()
    held = keras.ops.convert_to_numpy(model.optimizer.momentums[0]).copy()
    train(model, C.LearningRateScheduleCallback(rate, 1.0, momentum_correction=False), kept,
          size=size)
    assert np.allclose(kept.velocity[0], held)
    with pytest.raises(ValueError, match="initial_lr"):
        C.LearningRateScheduleCallback(None, 1.0)


def test_steps_that_are_not_known(size):
    model = network()
    model.compile(hvd.DistributedOptimizer(O.SGD(0.2)), "mse")
    inputs, targets = data(24)

    def endless():
        while True:
            yield inputs, targets

    with pytest.raises(ValueError, match="steps_per_epoch parameter to the LearningRateWarmup"):
        model.fit(endless(), verbose=0, shuffle=False,
                  callbacks=[C.LearningRateWarmupCallback(0.2)])


def test_the_best_model(rank, size, tmp_path):
    model = network()
    model.compile(hvd.DistributedOptimizer(O.SGD(0.01)), "mse")
    best = C.BestModelCheckpoint(monitor="loss")
    with pytest.raises(ValueError, match="filepath"):
        train(model, best, size=size)
    best.filepath = str(tmp_path / "best.keras")
    train(model, best, size=size)
    assert keras.models.load_model(best.filepath).optimizer.built
    weights = C.BestModelCheckpoint(monitor="loss", save_weights_only=True,
                                    filepath=str(tmp_path / "best.weights.h5"))
    train(model, weights, size=size)
    assert (tmp_path / "best.weights.h5").exists()
    must_be_alike(model)
