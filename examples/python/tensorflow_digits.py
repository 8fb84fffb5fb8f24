# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits with TensorFlow, on any number of ranks.

    hvdrun -np 2 python examples/python/tensorflow_digits.py --checkpoint digits

What is hvd's is marked. --batch counts the images of all ranks together, so that the losses are the
same on any number of them. The learning rate grows to its whole size in the first epochs. Rank 0
writes the checkpoint, from which a later run goes on. Needs tensorflow or tensorflow-cpu.
"""
import argparse
import pathlib

import numpy as np
import tensorflow as tf
from numpy_digits import TRAIN, load_digits

import hvd.tensorflow as hvd

MOMENTUM = 0.9


class Network(tf.Module):
    """Two layers, and the momentum of their weights."""

    def __init__(self, seed):
        super().__init__()
        first, second = tf.random.Generator.from_seed(seed).split(2)
        self.hidden = [tf.Variable(first.normal([64, 64]) / 8), tf.Variable(tf.zeros([64]))]
        self.out = [tf.Variable(second.normal([64, 10]) / 8), tf.Variable(tf.zeros([10]))]
        self.speeds = [tf.Variable(tf.zeros_like(w)) for w in self.weights()]
        self.epoch = tf.Variable(0)

    def weights(self):
        return [*self.hidden, *self.out]

    def scores(self, pixels):
        hidden = tf.nn.relu(pixels @ self.hidden[0] + self.hidden[1])
        return hidden @ self.out[0] + self.out[1]


@tf.function
def train(network, pixels, digits, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=digits, logits=network.scores(pixels)))
    tape = hvd.DistributedGradientTape(tape)  # hvd
    gradients = tape.gradient(loss, network.weights())
    for weight, speed, gradient in zip(network.weights(), network.speeds, gradients,
                                       strict=True):
        weight.assign_sub(rate * speed.assign(MOMENTUM * speed + gradient))
    return hvd.allreduce(loss)  # hvd


def main():
    parser = argparse.ArgumentParser(description="Trains on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images a step, of all ranks")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--warm-up", type=int, default=2, help="epochs until it has its whole size")
    parser.add_argument("--checkpoint", help="folder to write to, and to go on from")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    hvd.init()  # hvd
    network = Network(arguments.seed)
    kept = tf.train.Checkpoint(network=network)
    if hvd.rank() == 0 and arguments.checkpoint:  # hvd
        kept.restore(tf.train.latest_checkpoint(arguments.checkpoint))
    hvd.broadcast_variables(network.variables, root_rank=0)  # hvd

    pixels, digits = load_digits(arguments.seed)
    for epoch in range(int(network.epoch), arguments.epochs):
        order = np.random.default_rng(epoch).permutation(TRAIN)
        losses = []
        for number, begin in enumerate(range(0, TRAIN, arguments.batch)):
            past = epoch + number * arguments.batch / TRAIN
            rate = arguments.lr * min(1.0, (past + 0.1) / max(arguments.warm_up, 0.1))
            mine = order[begin:begin + arguments.batch][hvd.rank()::hvd.size()]  # hvd
            losses.append(train(network, pixels[mine], digits[mine], tf.constant(rate)))
        network.epoch.assign(epoch + 1)
        right = np.mean(np.argmax(network.scores(pixels[TRAIN:]), 1) == digits[TRAIN:])
        if hvd.rank() == 0:  # hvd
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, "
                  f"{right:.1%} of the test images are right", flush=True)
            if arguments.checkpoint:
                kept.save(str(pathlib.Path(arguments.checkpoint) / "digits"))


if __name__ == "__main__":
    main()
