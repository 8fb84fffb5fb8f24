# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits with MXNet's gluon, on any number of ranks.

    hvdrun -np 2 python examples/python/mxnet_digits.py

What is hvd's is marked. --batch counts the images of all ranks together, so that the losses are the
same on any number of them. Needs mxnet 1.9.1, which needs Python 3.11 or older and NumPy 1.23.
"""
import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from numpy_digits import TRAIN, load_digits

import hvd.mxnet as hvd


def make_network():
    network = gluon.nn.HybridSequential()
    with network.name_scope():
        network.add(gluon.nn.Dense(64, activation="relu"))
        network.add(gluon.nn.Dense(10))
    network.initialize(mx.init.Xavier())
    network.hybridize()
    return network


def main():
    parser = argparse.ArgumentParser(description="Trains on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images a step, of all ranks")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    hvd.init()  # hvd
    np.random.seed(arguments.seed)
    mx.random.seed(arguments.seed)
    network = make_network()
    hvd.broadcast_parameters(network.collect_params())  # hvd
    trainer = hvd.DistributedTrainer(network.collect_params(), "sgd", {  # hvd
        "learning_rate": arguments.lr, "momentum": 0.9})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    pixels, digits = map(nd.array, load_digits(arguments.seed))
    for epoch in range(arguments.epochs):
        order = np.random.default_rng(epoch).permutation(TRAIN)
        total = nd.zeros((1,))
        for begin in range(0, TRAIN, arguments.batch):
            mine = order[begin:begin + arguments.batch][hvd.rank()::hvd.size()]  # hvd
            with autograd.record():
                loss = loss_of(network(pixels[mine]), digits[mine])
            loss.backward()
            trainer.step(len(mine))
            total += loss.sum()
        mean = hvd.allreduce(total, op=hvd.Sum).asscalar() / TRAIN  # hvd
        right = (network(pixels[TRAIN:]).argmax(1) == digits[TRAIN:]).mean().asscalar()
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss {mean:.4f}, {right:.1%} of the test images are right",
                  flush=True)


if __name__ == "__main__":
    main()
