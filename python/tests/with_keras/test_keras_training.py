# SPDX-License-Identifier: Apache-2.0
"""Keras 3: a training on all ranks is that of one rank with all data."""
import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")
import numpy as np  # noqa: E402
from training import (  # noqa: E402
    BATCH,
    data,
    fit,
    largest_difference,
    mine,
    must_be_alike,
    network,
)

import hvd.keras as hvd  # noqa: E402

O = keras.optimizers  # noqa: E741
BACKEND = keras.config.backend()

CASES = {
    "sgd": (lambda: O.SGD(0.05, momentum=0.9), {}),
    "clipnorm": (lambda: O.SGD(0.05, clipnorm=0.05), {}),
    "global_clipnorm": (lambda: O.Adam(0.01, global_clipnorm=0.1), {}),
    "clipvalue_ema": (lambda: O.AdamW(0.01, clipvalue=0.01, use_ema=True), {}),
    "accumulation": (lambda: O.Adam(0.01, gradient_accumulation_steps=2, clipnorm=0.1), {}),
    "schedule": (lambda: O.SGD(O.schedules.ExponentialDecay(0.1, 2, 0.5)), {}),
    "predivide": (lambda: O.SGD(0.05), {"gradient_predivide_factor": 2.0}),
}


@pytest.mark.parametrize("case", CASES)
def test_training_is_that_of_one_rank_with_all_data(case, size):
    make, how = CASES[case]
    alone = fit(network(), make(), together=False)
    model = network()
    optimizer = hvd.DistributedOptimizer(make(), **how)
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0),
                 hvd.callbacks.MetricAverageCallback()]
    found = fit(model, optimizer, together=True, callbacks=callbacks)
    assert largest_difference(alone, found) < 1e-5
    must_be_alike(model, optimizer)


def test_backward_passes_add_up_and_can_be_averaged(size, tmp_path):
    make = lambda: O.SGD(0.02, momentum=0.5, global_clipnorm=1.0)  # noqa: E731
    averaged = fit(network(), O.SGD(0.02, momentum=0.5, global_clipnorm=1.0,
                                    gradient_accumulation_steps=2), together=False)
    optimizer = hvd.DistributedOptimizer(make(), backward_passes_per_step=2,
                                         average_aggregated_gradients=True)
    model = network()
    assert largest_difference(averaged, fit(model, optimizer, together=True)) < 1e-5
    # A sum of two passes is a step twice as long, without clipping and momentum.
    twice = fit(network(), O.SGD(0.04, gradient_accumulation_steps=2), together=False)
    summed = fit(network(), hvd.DistributedOptimizer(O.SGD(0.02), backward_passes_per_step=2),
                 together=True)
    assert largest_difference(twice, summed) < 1e-5
    # Saved, it is an optimizer that does not accumulate, with its own variables.
    path = str(tmp_path / "model.keras")
    model.save(path)
    loaded = keras.models.load_model(path)
    assert loaded.optimizer.gradient_accumulation_steps is None
    assert [v.shape for v in loaded.optimizer.variables] == [
        v.shape for v in model.optimizer.variables
        if "gradient_accumulator" not in v.path]
    assert largest_difference([np.asarray(m) for m in map(keras.ops.convert_to_numpy,
                                                          loaded.optimizer.momentums)],
                              [keras.ops.convert_to_numpy(m) for m in optimizer.momentums]) == 0
    with pytest.raises(ValueError, match="not both"):
        hvd.DistributedOptimizer(O.SGD(0.1, gradient_accumulation_steps=2),
                                 backward_passes_per_step=2)
    built = O.SGD(0.1)
    built.build(model.trainable_variables)
    with pytest.raises(ValueError, match="not built yet"):
        hvd.DistributedOptimizer(built, backward_passes_per_step=2)


@pytest.mark.parametrize("compression", ["fp16", "bf16"])
def test_compression(compression, size):
    alone = fit(network(), O.SGD(0.05), together=False)
    asked = getattr(hvd.Compression, compression)
    found = fit(network(), hvd.DistributedOptimizer(O.SGD(0.05), compression=asked),
                together=True)
    assert largest_difference(alone, found) < (2e-3 if compression == "bf16" else 3e-4)


def test_embeddings_frozen_layers_and_nested_models(size):
    def build():
        keras.utils.set_random_seed(5)
        inner = keras.Sequential([keras.Input((4, 5)), keras.layers.Flatten(),
                                  keras.layers.Dense(6, activation="relu")])
        frozen = keras.layers.Dense(6)
        frozen.trainable = False
        return keras.Sequential([keras.Input((4,)), keras.layers.Embedding(30, 5), inner, frozen,
                                 keras.layers.Dense(2)])

    random = np.random.default_rng(1)
    inputs, targets = random.integers(0, 30, (48, 4)), random.normal(size=(48, 2))

    def train(optimizer, some, wanted, batch):
        model = build()
        model.compile(optimizer, "mse")
        model.fit(some, wanted, batch_size=batch, epochs=2, verbose=0, shuffle=False)
        return model.get_weights()

    alone = train(O.SGD(0.1, momentum=0.5), inputs, targets, 24)
    for dense in (False, True):
        optimizer = hvd.DistributedOptimizer(O.SGD(0.1, momentum=0.5), sparse_as_dense=dense)
        found = train(optimizer, mine(inputs), mine(targets), 24 // size)
        assert largest_difference(alone, found) < 1e-5


def test_local_layers(rank, size):
    def grads(layers, scale):
        model = network()
        optimizer = hvd.PartialDistributedOptimizer(O.SGD(1.0), local_layers=layers(model),
                                                    scale_local_gradients=scale)
        before = model.get_weights()
        optimizer.apply([keras.ops.ones(v.shape) * (1.0 + rank) for v in
                         model.trainable_variables], model.trainable_variables)
        return [float((a - b).flat[0]) for a, b in zip(before, model.get_weights(), strict=True)]

    mean = (1 + size) / 2
    assert np.allclose(grads(lambda m: None, True), [mean] * 4, atol=1e-5)
    assert np.allclose(grads(lambda m: m.layers[1], False), [mean] * 2 + [1 + rank] * 2, atol=1e-5)
    assert np.allclose(grads(lambda m: [m.layers[0]], True),
                       [(1 + rank) / size] * 2 + [mean] * 2, atol=1e-5)


def test_process_sets(rank, size, even_set):
    """Ranks outside of the set train for themselves."""
    model = network()
    optimizer = hvd.DistributedOptimizer(O.SGD(1.0), process_set=even_set)
    before = model.get_weights()
    optimizer.apply([keras.ops.ones(v.shape) * rank for v in model.trainable_variables],
                    model.trainable_variables)
    members = range(0, size, 2)
    wanted = sum(members) / len(members) if rank % 2 == 0 else rank
    assert np.allclose((before[0] - model.get_weights()[0]), wanted, atol=1e-5)
    # and so do the callbacks
    inputs, targets = data(24)
    model.compile(optimizer, "mse")
    root = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    model.fit(inputs, targets + rank, verbose=0, batch_size=24,
              callbacks=[root, hvd.callbacks.MetricAverageCallback()])
    values = hvd.allgather_object(float(model.get_weights()[0].flat[0]))
    assert len({values[i] for i in members}) == 1


def test_two_optimizers_in_one_step(size):
    """As in a GAN: their gradients have names of their own."""
    def train(wrap, inputs, targets):
        one, other = network(), network()
        optimizers = [wrap(O.SGD(0.1)), wrap(O.SGD(0.2))]
        for optimizer, part in zip(optimizers, (one, other), strict=True):
            optimizer.build(part.trainable_variables)
        for _ in range(3):
            step(optimizers, (one, other), inputs, targets)
        return one.get_weights() + other.get_weights()

    inputs, targets = data(BATCH)
    alone = train(lambda optimizer: optimizer, inputs, targets)
    together = train(hvd.DistributedOptimizer, mine(inputs), mine(targets))
    assert largest_difference(alone, together) < 1e-5


def loss_of(predicted, targets):
    return keras.ops.mean(keras.ops.square(predicted - targets))


def step(*of):
    """One step of both, compiled as one program where the backend compiles."""
    {"tensorflow": tensorflow_step, "torch": torch_step, "jax": jax_step}[BACKEND](*of)


def tensorflow_step(optimizers, parts, inputs, targets):
    import tensorflow as tf

    @tf.function
    def compiled():
        for optimizer, part in zip(optimizers, parts, strict=True):
            with tf.GradientTape() as tape:
                value = loss_of(part(inputs), targets)
            optimizer.apply(tape.gradient(value, part.trainable_variables))

    compiled()


def torch_step(optimizers, parts, inputs, targets):
    for optimizer, part in zip(optimizers, parts, strict=True):
        part.zero_grad()
        loss_of(part(inputs), keras.ops.convert_to_tensor(targets)).backward()
        optimizer.apply([each.value.grad for each in part.trainable_variables])


def jax_step(optimizers, parts, inputs, targets):
    import jax

    @jax.jit
    def compiled(states):
        results = []
        for (trained, held), optimizer, part in zip(states, optimizers, parts, strict=True):
            found = jax.grad(lambda values, part=part: loss_of(
                part.stateless_call(values, [], inputs)[0], targets))(trained)
            results.append(optimizer.stateless_apply(held, found, trained))
        return results

    variables = [(part.trainable_variables, optimizer.variables)
                 for optimizer, part in zip(optimizers, parts, strict=True)]
    states = [tuple([each.value for each in kind] for kind in both) for both in variables]
    for both, values in zip(variables, compiled(states), strict=True):
        for kind, found in zip(both, values, strict=True):
            for variable, value in zip(kind, found, strict=True):
                variable.assign(value)


def test_twice_and_recompiled(size):
    model = network()
    optimizer = hvd.DistributedOptimizer(O.Adam(0.01))
    fit(model, optimizer, together=True)
    first = model.evaluate(*data(), verbose=0)
    fit(model, optimizer, together=True)
    model.compile(optimizer, "mae")
    fit(model, hvd.DistributedOptimizer(O.SGD(0.01)), together=True)
    assert model.evaluate(*data(), verbose=0) < first
    assert model.predict(data()[0], verbose=0).shape == (96, 3)
    must_be_alike(model)


def test_a_mismatch_says_the_same_on_all_ranks(rank, size, several):
    model = network()
    optimizer = hvd.DistributedOptimizer(O.SGD(0.1))
    variables = model.trainable_variables
    wrong = [keras.ops.ones((2 + (rank == 1),)) for _ in variables]
    with pytest.raises(Exception, match="rank 1 ") as raised:
        optimizer.apply(wrong, variables)
    error = hvd.error_of(raised.value)
    assert isinstance(error, hvd.MismatchError)
    assert len(set(hvd.allgather_object(str(error)))) == 1
    # and goes on
    fit(model, hvd.DistributedOptimizer(O.SGD(0.1)), together=True, epochs=1)
    must_be_alike(model)


def test_what_is_refused():
    with pytest.raises(ValueError, match="already"):
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(O.SGD(0.1)))
    with pytest.raises(ValueError, match="Adasum"):
        hvd.DistributedOptimizer(O.SGD(0.1), op=hvd.Adasum)
    with pytest.raises(ValueError, match="predivide"):
        hvd.DistributedOptimizer(O.SGD(0.1), op=hvd.Sum, gradient_predivide_factor=2.0)
    with pytest.raises(ValueError, match="Keras"):
        hvd.DistributedOptimizer(object())
    with pytest.raises(RuntimeError, match="BroadcastGlobalVariablesCallback"):
        hvd.broadcast_global_variables(0)


def test_values(rank, size):
    total = hvd.allreduce(np.full(3, rank + 1.0, "float32"), name="v", op=hvd.Sum)
    assert keras.ops.convert_to_numpy(total).tolist() == [sum(range(1, size + 1))] * 3
    mean = hvd.allreduce(float(rank), average=True)
    assert float(mean) == pytest.approx((size - 1) / 2)
    rows = hvd.allgather(np.full((rank + 1, 2), rank, "float32"))
    assert tuple(rows.shape) == (sum(range(1, size + 1)), 2)
    assert float(hvd.broadcast(np.float32(rank), size - 1)) == size - 1
    part = hvd.reducescatter(np.ones((size, 2), "float32"), op=hvd.Sum)
    assert keras.ops.convert_to_numpy(part).tolist() == [[size, size]]
    variable = keras.Variable(np.full(4, rank, "float32"))
    hvd.broadcast_variables([variable], size - 1)
    assert keras.ops.convert_to_numpy(variable).tolist() == [size - 1] * 4
