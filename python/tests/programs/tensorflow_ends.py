# SPDX-License-Identifier: Apache-2.0
"""How programs of hvd.tensorflow end and begin again: tensorflow_ends.py MODE [ROUNDS]."""
import os
import signal
import sys
import threading

import tensorflow as tf

import hvd.tensorflow as hvd

TENSORS = 64


def pending():
    """The process ends while a graph still waits for the others."""
    program = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name=f"rank {hvd.rank()} alone"))
    thread = threading.Thread(target=lambda: program(tf.ones(3)), daemon=True)
    thread.start()
    thread.join(0.2)  # it is waiting by then, or not: the end is the same
    print("done", flush=True)


def sessions():
    """One program in many sessions."""
    program = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))
    for _ in range(int(sys.argv[2])):
        assert float(program(tf.ones(3))[0]) == hvd.size()
        hvd.shutdown()
        hvd.init()
    hvd.shutdown()
    try:
        program(tf.ones(3))
    except tf.errors.OpError as error:
        assert isinstance(hvd.error_of(error), hvd.NotInitializedError), error
        print("done", flush=True)


def one_thread():
    """Opposite orders, where TensorFlow has one thread for all operations."""
    tf.config.threading.set_inter_op_parallelism_threads(1)
    order = list(range(TENSORS))[::1 if hvd.rank() == 0 else -1]

    @tf.function
    def program(x):
        found = {i: hvd.allreduce(x * i, op=hvd.Sum, name=f"opposite {i}") for i in order}
        return [found[i] for i in range(TENSORS)]

    for _ in range(20):
        found = program(tf.ones(50))
        assert all(float(found[i][7]) == i * hvd.size() for i in range(TENSORS))
    print("done", flush=True)


def dies():
    """Rank 1 dies inside a graph: the others are told who."""
    program = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))
    program(tf.ones(3))
    if hvd.rank() == 1:
        sys.stdout.flush()
        os._exit(7)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # hvdrun's, which may come first
    try:
        program(tf.ones(3))
    except tf.errors.OpError as error:
        assert isinstance(hvd.error_of(error), hvd.HorovodInternalError), error
        print("was told", flush=True)


hvd.init()
modes = {"pending": pending, "sessions": sessions, "one-thread": one_thread, "dies": dies}
modes[sys.argv[1]]()
