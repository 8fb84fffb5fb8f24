# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of hvd's ops in TensorFlow's graphs, beside numpy_function over the same engine, by turns in the same processes.

Started by scripts/bench tensorflow: hvdrun -np 2 python tensorflow_step.py ROUNDS. Rank 0 prints a JSON line a figure: the median
over the rounds, in microseconds, without what the same graph takes when it has no calls.
"""
import json
import statistics
import sys
import time

import tensorflow as tf
from frameworks_shapes import resnet50_counts

import hvd.tensorflow as hvd

CHAIN, STEPS = 100, 5

hvd.init()


def say(case, us, **more):
    if hvd.rank() == 0:
        print(json.dumps({"case": case, "us": round(us, 2), **more}), flush=True)


def by_op(x, name):
    return hvd.allreduce(x, op=hvd.Sum, name=name)


def by_numpy(x, name):
    import hvd as arrays

    found = tf.numpy_function(lambda value: arrays.allreduce(value, name, arrays.Sum), [x], tf.float32, stateful=True)
    found.set_shape(x.shape)
    return found


def alone(x, _):
    return x


def chain(way):
    """A graph in which each call waits for the one before."""
    @tf.function
    def program(x, scale):
        for i in range(CHAIN):
            x = way(x, f"chain {i}") * scale
        return x
    return program


def gradients(way):
    """A graph that makes tensors, as a backward pass does, reduces each, and uses all up at its end: so all have memory of their own."""
    @tf.function
    def program(tensors):
        found = [way(x * 1.5, f"gradient {i}") for i, x in enumerate(tensors)]
        with tf.control_dependencies(found):
            return tf.add_n([x[0] for x in found])
    return program


def time_of(program, arguments):
    hvd.barrier()
    began = time.perf_counter()
    program(*arguments)
    return 1e6 * (time.perf_counter() - began)


def by_turns(programs, arguments, rounds):
    """Medians, in microseconds."""
    times = {name: [] for name in programs}
    for turn in range(rounds + 1):
        for name, program in programs.items():
            for _ in range(STEPS):
                took = time_of(program, arguments)
                if turn:  # the first makes the graphs
                    times[name].append(took)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    rounds = int(sys.argv[1])
    chains = {"op": chain(by_op), "numpy_function": chain(by_numpy), "none": chain(alone)}
    us = by_turns(chains, (tf.ones([1]), tf.constant(1.0 / hvd.size())), 4 * rounds)
    for name in ("op", "numpy_function"):
        say(f"chain: {name}", (us[name] - us["none"]) / CHAIN, us_of_the_rest=round(us["none"] / CHAIN, 2))
    steps = {"op": gradients(by_op), "numpy_function": gradients(by_numpy), "none": gradients(alone)}
    tensors = [tf.ones([count]) for count in resnet50_counts()]
    us = by_turns(steps, (tensors,), 2 * rounds)
    for name in ("op", "numpy_function"):
        say(f"gradients: {name}", us[name] - us["none"], tensors=len(tensors), us_of_the_rest=round(us["none"], 2))


main()
