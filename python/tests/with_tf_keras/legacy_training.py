# SPDX-License-Identifier: Apache-2.0
"""A small training that is the same on any number of ranks: the first has all data."""
import numpy as np
import tensorflow as tf

import hvd.tensorflow.keras as hvd

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


def network(policy=None):
    tf.keras.utils.set_random_seed(3)
    return tf.keras.Sequential([
        tf.keras.Input((8,)), tf.keras.layers.Dense(16, activation="tanh", dtype=policy),
        tf.keras.layers.Dense(3, dtype=policy)])


def fit(model, optimizer, together, batch=BATCH, epochs=2, callbacks=(), **how):
    """The weights after training on this rank's rows, or on all of them."""
    inputs, targets = data()
    if together:
        inputs, targets = mine(inputs), mine(targets)
        batch = BATCH // hvd.size()
    model.compile(optimizer, loss="mse", experimental_run_tf_function=False, **how)
    model.fit(inputs, targets, batch_size=batch, epochs=epochs, verbose=0, shuffle=False,
              callbacks=list(callbacks))
    return model.get_weights()


def largest_difference(some, others):
    assert len(some) == len(others)
    return max(float(np.abs(a - b).max()) for a, b in zip(some, others, strict=True))


def must_be_alike(values):
    """On all ranks."""
    digest = [np.asarray(value).tobytes() for value in values]
    assert all(other == digest for other in hvd.allgather_object(digest))
