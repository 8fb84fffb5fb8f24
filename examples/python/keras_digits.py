# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits with Keras 3, on any number of ranks.

    hvdrun -np 2 python examples/python/keras_digits.py                          # on TensorFlow
    KERAS_BACKEND=jax hvdrun -np 2 python examples/python/keras_digits.py        # or torch
    hvdrun -np 2 python examples/python/keras_digits.py --mixed                  # float16 inside

What is hvd's is marked. --batch counts the images of all ranks together, so that the losses are the
same on any number of them (but with --warmup, which begins with one rank's learning rate). Needs
keras, and tensorflow, tensorflow-cpu, jax or torch.
"""
import argparse

import keras
import numpy as np
from numpy_digits import TRAIN, load_digits

import hvd.keras as hvd


def share_of(rows, batch, rank, size):
    """This rank's rows of each batch."""
    each = batch // size
    return np.concatenate([rows[i + rank * each: i + (rank + 1) * each]
                           for i in range(0, len(rows), batch)])


def make_network(seed, mixed):
    keras.utils.set_random_seed(seed)
    if mixed:
        keras.config.set_dtype_policy("mixed_float16")
    return keras.Sequential([
        keras.Input((64,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, dtype="float32"),
    ])


def main():
    parser = argparse.ArgumentParser(description="Trains on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images a step, of all ranks")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--warmup", type=int, default=0, help="epochs until the rate is reached")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mixed", action="store_true", help="float16 inside, with a scaled loss")
    parser.add_argument("--checkpoint", help="where rank 0 saves the best network (.keras)")
    arguments = parser.parse_args()

    hvd.init()  # hvd
    pixels, digits = load_digits(arguments.seed)
    test = pixels[TRAIN:], digits[TRAIN:]
    mine = [share_of(rows, arguments.batch, hvd.rank(), hvd.size())  # hvd: each rank has its rows
            for rows in (pixels[:TRAIN], digits[:TRAIN])]

    network = make_network(arguments.seed, arguments.mixed)
    optimizer = hvd.DistributedOptimizer(  # hvd: gradients are averaged over all ranks
        keras.optimizers.SGD(arguments.lr, momentum=0.9))
    network.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                    metrics=["accuracy"])
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),  # hvd: all begin alike
        hvd.callbacks.MetricAverageCallback(),  # hvd
    ]
    if arguments.warmup:
        callbacks.append(hvd.callbacks.LearningRateWarmupCallback(  # hvd
            arguments.lr, arguments.warmup))
    if hvd.rank() == 0:  # hvd: one rank speaks and saves
        callbacks.append(keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(
            f"epoch {epoch + 1}: loss {logs['loss']:.5f}, accuracy {logs['val_accuracy']:.3f}",
            flush=True)))
        if arguments.checkpoint:
            callbacks.append(keras.callbacks.ModelCheckpoint(
                arguments.checkpoint, monitor="val_accuracy", save_best_only=True))
    network.fit(*mine, batch_size=arguments.batch // hvd.size(), epochs=arguments.epochs, verbose=0,
                shuffle=False, validation_data=test, callbacks=callbacks)
    hvd.shutdown()  # hvd


if __name__ == "__main__":
    main()
