# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: a call runs on all ranks, also on one where TensorFlow could do without what it
gives: in sessions (there where something that is fetched depends on it) and in tf.functions.

In each test one rank has a use for the result that is a constant, or none. If TensorFlow left its
call out, the others would wait for ever.
"""
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import hvd.tensorflow as hvd  # noqa: E402

v1 = tf.compat.v1
RUNS = 2

# Each gives as many rows as there are ranks, or twice as many; all shapes are known.
CALLS = {
    "allreduce": lambda x: hvd.allreduce(x, name="always"),
    "allreduce of slices": lambda x: tf.convert_to_tensor(hvd.allreduce(tf.IndexedSlices(
        x, tf.range(x.shape[0]), tf.constant(x.shape.as_list())), name="always")),
    "group": lambda x: tf.add_n(hvd.grouped_allreduce([x, 2 * x], name="always")),
    "allgather": lambda x: hvd.allgather(x, name="always"),
    "allgather group": lambda x: tf.add_n(hvd.grouped_allgather([x, 2 * x], name="always")),
    "reducescatter": lambda x: hvd.reducescatter(x, name="always"),
    "reducescatter sum": lambda x: hvd.reducescatter(x, op=hvd.Sum, name="always"),
    "broadcast from 0": lambda x: hvd.broadcast(x, 0, name="always"),
    "broadcast from the last": lambda x: hvd.broadcast(x, hvd.size() - 1, name="always"),
    "alltoall": lambda x: hvd.alltoall(x, name="always"),
    "alltoall with splits": lambda x: hvd.alltoall(
        x, [x.shape[0] // hvd.size()] * hvd.size(), name="always")[0],
}
# Uses that a rank may make of a result, of which TensorFlow can tell something before the call has
# run. Uses that Python already makes constants need the call in a tf.function only.
FOLDED = {
    "times zero": lambda found: found * 0.0,
    "no rows": lambda found: found[:0],
    "minus itself": lambda found: found - found,
    "a choice": lambda found: tf.where(False, found, tf.zeros_like(found)),
}
IN_PYTHON = {
    "shape": tf.shape,
    "zeros": tf.zeros_like,
    "none": lambda found: tf.constant(1.0),
}


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


@pytest.fixture
def odd(rank):
    """Whether this is the rank that needs no result."""
    return rank == 0


@pytest.fixture(params=[2, 0], ids=["rows", "no rows"])
def rows(request, size):
    return request.param * size


def in_session(make):
    """Returns what the graph that `make` builds gives, each time it runs."""
    with tf.Graph().as_default(), v1.Session() as session:
        fetched = make()
        return [session.run(fetched) for _ in range(RUNS)]


@pytest.mark.parametrize("use", FOLDED)
def test_a_use_that_is_folded_in_a_session(use, call, odd, rows):
    for found in in_session(lambda: FOLDED[use](call(tf.ones([rows, 3]))) if odd
                            else call(tf.ones([rows, 3]))):
        assert not odd or not found.any()


@pytest.mark.parametrize("use", FOLDED | IN_PYTHON)
def test_a_use_that_is_folded_in_a_function(use, call, odd, rows):
    @tf.function
    def program():
        found = call(tf.ones([rows, 3]))
        return (FOLDED | IN_PYTHON)[use](found) if odd else found

    for _ in range(RUNS):
        program()


def loss_of(call, x, odd):
    """Its gradient by x needs the gradient of the call, which is zero on the odd rank."""
    return tf.reduce_sum(call(x)) * (0.0 if odd else 1.0)


def test_gradients_in_a_session(call, odd, rows, rank, size):
    def make():
        x = tf.constant(1.0, shape=[rows, 3])
        return v1.gradients(loss_of(call, x, odd), x)[0]

    found = in_session(make)
    assert all(np.array_equal(each, found[0]) for each in found)
    assert found[0].shape == (rows, 3)


@pytest.mark.parametrize("outside", [False, True], ids=["tape inside", "tape outside"])
def test_gradients_in_a_function(outside, call, odd, rows):
    graph = tf.function(lambda x: loss_of(call, x, odd))

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = graph(x)
        return tape.gradient(total, x)

    run = gradient if outside else tf.function(gradient)
    for _ in range(RUNS):
        assert run(tf.ones([rows, 3])).shape == (rows, 3)


def test_a_gradient_that_nobody_uses_in_a_function(call, odd):
    @tf.function
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(call(x))
        gradient = tape.gradient(total, x)
        return total if odd else gradient

    for _ in range(RUNS):
        program(tf.ones([2 * hvd.size(), 3]))


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_gradients(name, rank, size):
    """All calls but that of slices are linear: the gradient of (gradient · v) by the weights is
    the call of v."""
    call = CALLS[name]
    shape = [2 * size, 3]
    v = tf.fill(shape, rank + 1.0)

    @tf.function
    def program(v):
        x = tf.ones(shape)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                found = call(x)
                weights = tf.ones_like(found)
                outer.watch(weights)
                total = tf.reduce_sum(weights * found)
            gradient = inner.gradient(total, x)
            product = tf.reduce_sum(gradient * v)
        return outer.gradient(product, weights)

    for _ in range(RUNS):
        assert program(v) is not None


@pytest.mark.parametrize("root", [0, -1])
def test_the_gradient_of_a_broadcast_in_a_session(root, rank, size):
    """Its value, which is zero where it is a constant."""
    def make():
        x = tf.ones([4])
        found = hvd.broadcast(x, root % size)
        return v1.gradients(tf.reduce_sum((rank + 1.0) * found), x)[0]

    wanted = (size + 1) / 2 if rank == root % size else 0.0
    assert all(np.allclose(found, wanted) for found in in_session(make))


def test_in_branches_and_loops_of_sessions(odd, size):
    def make():
        flag = v1.placeholder_with_default(True, [])
        found = tf.cond(flag, lambda: hvd.allreduce(tf.ones([3]), name="branch") * (0.0 if odd
                                                                                    else 1.0),
                        lambda: tf.zeros([3]))
        _, total = tf.while_loop(
            lambda i, _: i < 3,
            lambda i, total: (i + 1, total + hvd.allreduce(tf.ones([3]), op=hvd.Sum, name="loop")
                              * (0.0 if odd else 1.0)),
            [tf.constant(0), tf.zeros([3])])
        return found, total

    for found, total in in_session(make):
        assert found.tolist() == [0.0 if odd else 1.0] * 3
        assert total.tolist() == [0.0 if odd else 3.0 * size] * 3
