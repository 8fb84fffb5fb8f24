# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits with JAX, on any number of ranks.

    hvdrun -np 2 python examples/python/jax_digits.py

What is hvd's is marked. --batch counts the images of all ranks together, so that the losses are the
same on any number of them. Needs jax and optax.
"""
import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy_digits import TRAIN, load_digits

import hvd.jax as hvd


def make_network(seed):
    first, second = jax.random.split(jax.random.key(seed))
    return {"hidden": {"w": jax.random.normal(first, (64, 64)) / 8, "b": jnp.zeros(64)},
            "out": {"w": jax.random.normal(second, (64, 10)) / 8, "b": jnp.zeros(10)}}


def scores(params, pixels):
    hidden = jax.nn.relu(pixels @ params["hidden"]["w"] + params["hidden"]["b"])
    return hidden @ params["out"]["w"] + params["out"]["b"]


def loss_of(params, pixels, digits):
    losses = optax.softmax_cross_entropy_with_integer_labels(scores(params, pixels), digits)
    return losses.mean()


def main():
    parser = argparse.ArgumentParser(description="Trains on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images a step, of all ranks")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    hvd.init()  # hvd
    optimizer = hvd.DistributedOptimizer(optax.sgd(arguments.lr, momentum=0.9))  # hvd
    params = hvd.broadcast_parameters(make_network(arguments.seed))  # hvd
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, pixels, digits):
        loss, gradients = jax.value_and_grad(loss_of)(params, pixels, digits)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    pixels, digits = load_digits(arguments.seed)
    for epoch in range(arguments.epochs):
        order = np.random.default_rng(epoch).permutation(TRAIN)
        losses = []
        for begin in range(0, TRAIN, arguments.batch):
            mine = order[begin:begin + arguments.batch][hvd.rank()::hvd.size()]  # hvd
            params, state, loss = step(params, state, pixels[mine], digits[mine])
            losses.append(float(loss))
        mean = float(hvd.allreduce(np.mean(losses)))  # hvd
        right = (scores(params, pixels[TRAIN:]).argmax(1) == digits[TRAIN:]).mean()
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss {mean:.4f}, {right:.1%} of the test images are right",
                  flush=True)


if __name__ == "__main__":
    main()
