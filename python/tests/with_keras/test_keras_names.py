# SPDX-License-Identifier: Apache-2.0
"""Keras 3: gradients and variables meet by their names, whatever their order is and however many
layers a rank has built before."""
import pytest

keras = pytest.importorskip("keras", reason="keras is not installed")
import numpy as np  # noqa: E402
from training import fit, largest_difference, must_be_alike, network  # noqa: E402

import hvd.keras as hvd  # noqa: E402


def tensors(values):
    return [keras.ops.convert_to_tensor(np.full(2, value, "float32")) for value in values]


def stepped(names, rank, size):
    """The variables of these names after a step, in their order. Rank 0 lists them the other way
    round. The average of the ranks' gradients of variable i is (i + 1) * (size + 1) / 2."""
    variables = [keras.Variable(np.zeros(2, "float32"), name=name) for name in names]
    pairs = list(zip(tensors([(i + 1.0) * (rank + 1) for i in range(len(names))]), variables,
                     strict=True))
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0))
    optimizer.apply_gradients(pairs[::-1] if rank == 0 else pairs)
    return [keras.ops.convert_to_numpy(each) for each in variables]


@pytest.mark.parametrize("first", [0, 9], ids=["alike", "numbered"])
def test_an_optimizer(first, rank, size):
    names = [f"layer_{i + first * rank}" for i in range(4)]
    for i, found in enumerate(stepped(names, rank, size)):
        assert np.allclose(found, -(i + 1) * (size + 1) / 2)


def test_other_names_are_a_mismatch(rank, size, several):
    with pytest.raises(Exception, match="give different tensors, by their names or their order"):
        stepped(["a", "b" if rank == 1 else "c"], rank, size)


def test_a_rank_that_has_built_other_models_before_trains_with_the_others(rank, size):
    """Its layers have other numbers: dense_9 comes before dense_10, as text it does not."""
    for _ in range(9 * rank):
        keras.layers.Dense(1)
    alone = fit(network(), keras.optimizers.Adam(0.01), together=False)
    model = network()
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01))
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
    found = fit(model, optimizer, together=True, callbacks=callbacks)
    assert largest_difference(alone, found) < 1e-5
    must_be_alike(model, optimizer)


def test_variables_that_are_broadcast(rank, size):
    variables = [keras.Variable(np.full(2, 100.0 * rank + i, "float32"), name=f"layer_{i}")
                 for i in range(4)]
    hvd.broadcast_variables(variables[::-1] if rank == 0 else variables, root_rank=size - 1)
    for i, each in enumerate(variables):
        assert np.allclose(keras.ops.convert_to_numpy(each), 100 * (size - 1) + i)
