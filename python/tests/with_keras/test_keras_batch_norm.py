# SPDX-License-Identifier: Apache-2.0
"""Keras 3: batch normalisation by the statistics of all ranks' batches."""
import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")
import numpy as np  # noqa: E402
from training import must_be_alike  # noqa: E402

import hvd.keras as hvd  # noqa: E402


def build(layer):
    keras.utils.set_random_seed(11)
    return keras.Sequential([keras.Input((5, 4)), keras.layers.Dense(6), layer(),
                             keras.layers.Activation("relu"), layer(), keras.layers.Flatten(),
                             keras.layers.Dense(2)])


def rows(rank, size):
    """Ranks have batches of different lengths: 2, 4, … rows, and large means."""
    random = np.random.default_rng(2)
    count = size * (size + 1)
    inputs = (random.normal(size=(count, 5, 4)) + 50).astype("float32")
    targets = random.normal(size=(count, 2)).astype("float32")
    first = rank * (rank + 1)
    return inputs, targets, slice(first, first + 2 * (rank + 1))


def loss_of(model, inputs, targets, scale):
    """The loss is a sum, so that unequal batches add up."""
    predicted = model(inputs, training=True)
    return keras.ops.sum(keras.ops.square(predicted - targets)) * scale


def gradients(model, inputs, targets):
    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        @tf.function
        def compute():
            with tf.GradientTape() as tape:
                loss = loss_of(model, inputs, targets, 1.0)
            return tape.gradient(loss, [each.value for each in model.trainable_variables])

        return [each.numpy() for each in compute()]
    if backend == "torch":
        loss_of(model, keras.ops.convert_to_tensor(inputs), keras.ops.convert_to_tensor(targets),
                1.0).backward()
        return [each.value.grad.numpy() for each in model.trainable_variables]
    import jax

    def stateless(trained, others):
        predicted, others = model.stateless_call(trained, others, inputs, training=True)
        return keras.ops.sum(keras.ops.square(predicted - targets)), others

    trained = [each.value for each in model.trainable_variables]
    others = [each.value for each in model.non_trainable_variables]
    found, others = jax.jit(jax.grad(stateless, has_aux=True))(trained, others)
    for variable, value in zip(model.non_trainable_variables, others, strict=True):
        variable.assign(value)
    return [np.asarray(each) for each in found]


def test_unequal_batches(rank, size):
    inputs, targets, own = rows(rank, size)
    alone, together = build(keras.layers.BatchNormalization), build(hvd.SyncBatchNormalization)
    wanted = gradients(alone, inputs, targets)
    found = gradients(together, inputs[own], targets[own])
    for one, other in zip(wanted, found, strict=True):
        total = np.asarray(hvd.allreduce(other, op=hvd.Sum))
        assert np.allclose(one, total, rtol=2e-3, atol=2e-3 * max(1.0, np.abs(one).max()))
    for one, other in zip(alone.non_trainable_variables, together.non_trainable_variables,
                          strict=True):
        assert np.allclose(keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(other),
                           rtol=1e-4, atol=1e-5)
    held = [keras.ops.convert_to_numpy(each).tobytes() for each in together.non_trainable_variables]
    assert all(other == held for other in hvd.allgather_object(held))


def test_masks(rank, size):
    keras.utils.set_random_seed(1)
    inputs, _, own = rows(rank, size)
    mask = np.random.default_rng(3).random(inputs.shape[:2]) < 0.6
    layers = [keras.layers.BatchNormalization(momentum=0.0),
              hvd.SyncBatchNormalization(momentum=0.0)]
    alone = layers[0](inputs, mask=mask, training=True)
    together = layers[1](inputs[own], mask=mask[own], training=True)
    assert np.allclose(keras.ops.convert_to_numpy(alone)[own],
                       keras.ops.convert_to_numpy(together), atol=1e-2)
    for one, other in zip(layers[0].weights, layers[1].weights, strict=True):
        assert np.allclose(keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(other),
                           rtol=1e-3)


def test_in_fit_and_saved(rank, size, tmp_path):
    inputs, targets, _ = rows(rank, size)
    model = build(hvd.SyncBatchNormalization)
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)), "mse")
    model.fit(inputs + rank, targets, batch_size=len(inputs) // 2, epochs=2, verbose=0)
    must_be_alike(model)
    if size == 1:
        return
    path = tmp_path / "model.keras"
    model.save(path)
    again = hvd.load_model(path)
    assert isinstance(again.layers[1], hvd.SyncBatchNormalization)


def test_what_is_refused():
    with pytest.raises(ValueError, match="fused"):
        hvd.SyncBatchNormalization(fused=True)
