# SPDX-License-Identifier: Apache-2.0
"""hvd.keras.elastic where nobody comes or goes."""
import numpy as np
import pytest

keras = pytest.importorskip("keras")

import hvd.keras as hvd  # noqa: E402


def made(seed):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4, "relu"),
                              keras.layers.Dense(1)])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)), loss="mse")
    return model


def values(model):
    return [np.array(keras.ops.convert_to_numpy(one))
            for one in [*model.weights, *model.optimizer.variables]]


def same(left, right):
    for one, other in zip(left, right, strict=True):
        assert np.array_equal(one, other)


def test_a_state_goes_back_and_all_begin_alike(rank):
    model = made(rank)
    state = hvd.elastic.KerasState(model, batch=0, epoch=0)
    state.sync()
    for theirs in hvd.allgather_object(values(model)):
        same(values(model), theirs)
    x = np.random.default_rng(rank).random((8, 3))
    model.fit(x, x.sum(1), batch_size=4, verbose=0)
    state.commit()
    kept = values(model)
    model.fit(x, x.sum(1), batch_size=4, verbose=0)
    state.restore()
    same(values(model), kept)


def test_fit_goes_on_after_a_loss(rank):
    model = made(rank)
    state = hvd.elastic.KerasState(model, batch=0, epoch=0)
    tries = []

    class Breaks(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if state.epoch == 1 and batch == 1 and len(tries) == 1:
                raise hvd.HorovodInternalError("made up")

    x = np.random.default_rng(rank).random((16, 3))

    @hvd.elastic.run
    def train(state):
        tries.append((state.epoch, state.batch))
        model.fit(x, x.sum(1), batch_size=4, epochs=3 - state.epoch, verbose=0, callbacks=[
            Breaks(), hvd.elastic.UpdateBatchStateCallback(state),
            hvd.elastic.UpdateEpochStateCallback(state),
            hvd.elastic.CommitStateCallback(state, batches_per_commit=2)])

    train(state)
    assert tries == [(0, 0), (1, 0)] and (state.epoch, state.batch) == (3, 0)
    for theirs in hvd.allgather_object(values(model)):
        same(values(model), theirs)
