# SPDX-License-Identifier: Apache-2.0
"""Keras 3: one rank's overflow skips the step on all ranks, whoever made the LossScaleOptimizer."""
import subprocess
import sys

import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")
import numpy as np  # noqa: E402
from training import (  # noqa: E402
    BATCH,
    data,
    largest_difference,
    mine,
    must_be_alike,
    network,
)

import hvd.keras as hvd  # noqa: E402

O = keras.optimizers  # noqa: E741


def half_network():
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((8,)),
                             keras.layers.Dense(16, activation="tanh", dtype="mixed_float16"),
                             keras.layers.Dense(3, dtype="mixed_float16")])


def keras_wraps(**how):
    return hvd.DistributedOptimizer(O.SGD(0.01, momentum=0.9), **how)


def user_wraps(**how):
    return O.LossScaleOptimizer(hvd.DistributedOptimizer(O.SGD(0.01, momentum=0.9), **how))


def hvd_wraps(**how):
    return hvd.DistributedOptimizer(O.LossScaleOptimizer(O.SGD(0.01, momentum=0.9)), **how)


def accumulating():
    return hvd.DistributedOptimizer(O.SGD(0.01, gradient_accumulation_steps=2))


WAYS = [keras_wraps, user_wraps, hvd_wraps, accumulating]


@pytest.mark.parametrize("make", WAYS)
def test_an_overflow_on_one_rank(make, rank, size):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = half_network()
        model.compile(make(), loss="mse")
    finally:
        keras.config.set_dtype_policy("float32")
    assert isinstance(model.optimizer, O.LossScaleOptimizer)
    inputs, targets = data()
    inputs, targets = mine(inputs), mine(targets)
    each = BATCH // size
    if rank == size - 1:
        targets[each:2 * each] = 6e4  # the second step's gradients are too large for 16 bits
    steps = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            steps.append((int(self.model.optimizer.iterations),
                          float(self.model.optimizer.dynamic_scale)))

    model.fit(inputs, targets, batch_size=each, verbose=0, shuffle=False, callbacks=[Watch()])
    assert all(other == steps for other in hvd.allgather_object(steps))
    assert steps[1][1] == steps[0][1] / 2 and len(steps) == 4
    assert steps[-1][0] == (1 if make is accumulating else 3)  # one was skipped
    assert all(np.isfinite(each).all() for each in model.get_weights())
    must_be_alike(model, model.optimizer)


LOADS = """
import sys
import keras, numpy
class SyncBatchNormalization(keras.layers.BatchNormalization):
    pass
for path in sys.argv[1:]:
    model = keras.models.load_model(
        path, custom_objects={"hvd>SyncBatchNormalization": SyncBatchNormalization})
    model.predict(numpy.ones((4, 8)), verbose=0)
    if path.endswith(".keras"):  # Keras 3.15 itself cannot train on what it has loaded from .h5
        model.fit(numpy.ones((4, 8)), numpy.ones((4, 3)), verbose=0)
    inner = getattr(model.optimizer, "inner_optimizer", None)
    print(type(model.optimizer).__name__, type(inner).__name__)
assert "hvd" not in sys.modules
"""


def saved(folder, ending, size):
    """(model, path) of one whose loss is scaled, and of one with a layer of hvd's."""
    model, half = network(), half_network()
    if ending == "keras":
        model.add(hvd.SyncBatchNormalization())
    loss = keras.losses.MeanSquaredError()  # .h5 knows no short names
    model.compile(hvd.DistributedOptimizer(O.AdamW(0.01)), loss)
    half.compile(hvd_wraps(), loss)
    inputs, targets = data()
    for name, each in (("model", model), ("half", half)):
        each.fit(mine(inputs), mine(targets), batch_size=BATCH // size, verbose=0, shuffle=False)
        path = str(folder / f"{name}.{ending}")
        each.save(path)
        yield each, path


def test_a_saved_model_loads_where_there_is_no_hvd(rank, size, tmp_path):
    models = [pair for ending in ("keras", "h5") for pair in saved(tmp_path, ending, size)]
    paths = [path for _, path in models]
    done = subprocess.run([sys.executable, "-c", LOADS, *paths], capture_output=True,
                          text=True) if rank == 0 else None
    told = hvd.broadcast_object((done.stdout.split(), done.stderr) if done else ([], ""))
    assert told[0] == ["AdamW", "NoneType", "LossScaleOptimizer", "SGD"] * 2, told[1]
    for (model, path), name in zip(models, ("AdamW", "LossScaleOptimizer") * 2, strict=True):
        loaded = hvd.load_model(path)
        assert keras.saving.serialize_keras_object(loaded.optimizer)["class_name"] == name
        with pytest.raises(ValueError, match="already"):
            hvd.DistributedOptimizer(loaded.optimizer)
        if path.endswith(".keras"):
            assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)
            assert largest_difference(*(fit_again(each, size) for each in (loaded, model))) < 1e-5
            must_be_alike(loaded)


def fit_again(model, size):
    inputs, targets = data()
    model.fit(mine(inputs), mine(targets), batch_size=BATCH // size, verbose=0, shuffle=False)
    return model.get_weights()


def test_an_optimizer_of_ones_own(size, tmp_path):
    @keras.saving.register_keras_serializable("mine")
    class Mine(O.SGD):
        pass

    model = network()
    model.compile(hvd.DistributedOptimizer(Mine(0.1)), "mse")
    assert keras.saving.serialize_keras_object(model.optimizer)["registered_name"] == "mine>Mine"
    copy = type(model.optimizer).from_config(model.optimizer.get_config())
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedOptimizer(copy)  # it reduces, too
    model.save(tmp_path / "model.keras")
    loaded = hvd.load_model(tmp_path / "model.keras", custom_optimizers=[Mine])
    assert isinstance(loaded.optimizer, Mine)


def test_xla_is_not_chosen_for_tensorflow():
    if keras.config.backend() != "tensorflow":
        pytest.skip("hvd has handlers for JAX's XLA, and torch's compiler is another")
    model = network()
    with pytest.warns(UserWarning, match="jit_compile=False"):
        model.compile(hvd.DistributedOptimizer(O.SGD(0.1)), "mse", jit_compile=True)
    assert not model.jit_compile
    model.compile(O.SGD(0.1), "mse", jit_compile=True)
    assert model.jit_compile
