# SPDX-License-Identifier: Apache-2.0
"""A small training that is the same on any number of ranks: the first has all data."""
import keras
import numpy as np

import hvd.keras as hvd

BATCH = 24  # of all ranks together


def data(rows=96):
    random = np.random.default_rng(7)
    return (random.normal(size=(rows, 8)).astype("float32"),
            random.normal(size=(rows, 3)).astype("float32"))


def mine(array, batch=BATCH):
    """This rank's rows of each batch."""
    each = batch // hvd.size()
    first = hvd.rank() * each
    return np.concatenate([array[i + first: i + first + each]
                           for i in range(0, len(array), batch)])


def network():
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="tanh"),
                             keras.layers.Dense(3)])


def fit(model, optimizer, together, epochs=2, callbacks=(), **how):
    """The weights after training on this rank's rows, or on all of them."""
    inputs, targets = data()
    if together:
        inputs, targets = mine(inputs), mine(targets)
    model.compile(optimizer, loss="mse", **how)
    model.fit(inputs, targets, batch_size=BATCH // (hvd.size() if together else 1), epochs=epochs,
              verbose=0, shuffle=False, callbacks=list(callbacks))
    return model.get_weights()


def largest_difference(some, others):
    assert len(some) == len(others)
    return max(float(np.abs(a - b).max()) for a, b in zip(some, others, strict=True))


def must_be_alike(model, optimizer=None):
    """On all ranks, but for what an optimizer adds up by itself."""
    held = [*model.weights, *(optimizer.variables if optimizer else ())]
    digest = [keras.ops.convert_to_numpy(each).tobytes() for each in held
              if "gradient_accumulator" not in each.path]
    assert all(other == digest for other in hvd.allgather_object(digest))
