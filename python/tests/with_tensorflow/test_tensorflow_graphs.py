# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: what TensorFlow's graphs do with calls."""
import threading

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import hvd.tensorflow as hvd  # noqa: E402

TENSORS = 64


def late(x, which):
    """`x`, which is there a little later."""
    def wait(value):
        threading.Event().wait(0.05)
        return value
    found = tf.py_function(wait, [x], x.dtype) if which else x
    found.set_shape(x.shape)
    return found


def test_opposite_orders(rank, size):
    order = list(range(TENSORS))[::1 if rank == 0 else -1]

    @tf.function
    def program(x):
        found = {i: hvd.allreduce(x * i, op=hvd.Sum, name=f"opposite {i}") for i in order}
        return [found[i] for i in range(TENSORS)]

    for _ in range(3):
        found = program(tf.ones(50))
        assert all(float(found[i][7]) == i * size for i in range(TENSORS))


def test_a_result_that_one_rank_does_not_use(rank, size):
    @tf.function
    def program(x):
        total = hvd.allreduce(x, op=hvd.Sum, name="unused")
        return x + 1 if rank == 0 else total

    for _ in range(3):
        assert program(tf.fill([3], 2.0)).numpy().tolist() == [3.0 if rank == 0 else 2.0 * size] * 3


def test_a_constant_travels_each_time(rank, size):
    def call():
        return hvd.allreduce(tf.fill([2], 1.0 + rank), op=hvd.Sum, name="constant")

    # The others wait for each run of rank 0's program.
    program = tf.function(call) if rank == 0 else call
    for _ in range(3):
        assert program().numpy().tolist() == [sum(range(1, size + 1))] * 2


def test_calls_without_a_name_in_one_graph(rank, size):
    @tf.function
    def inner(x):
        return hvd.allreduce(x, op=hvd.Sum)

    @tf.function
    def program(x):
        first = inner(late(x, rank == 0))
        second = inner(2 * x)
        third = hvd.allreduce(3 * x, op=hvd.Sum)
        fourth = hvd.allreduce(late(4 * x, rank == 0), op=hvd.Sum)
        return first, second, third, fourth

    for _ in range(3):
        assert [each.numpy().tolist() for each in program(tf.ones(2))] == [
            [size * times] * 2 for times in (1.0, 2.0, 3.0, 4.0)]


def test_loops_and_branches(rank, size):
    @tf.function
    def program(x):
        for i in tf.range(4):
            scaled = hvd.allreduce(late(x, rank == 0), op=hvd.Average)
            x = scaled + 1.0 if i % 2 == 0 else hvd.allreduce(scaled, op=hvd.Max) * 2.0
        return x

    average = (size - 1) / 2
    assert np.allclose(program(tf.fill([3], float(rank))), ((average + 1) * 2 + 1) * 2)


def test_gradients_on_ranks_that_have_done_more_before(rank, size):
    """TensorFlow numbers the functions of gradients, branches and loops by what the process has
    made before."""
    def gradient(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.reduce_sum(function(x))
        return tape.gradient(total, x)

    @tf.function
    def straight(x):
        return (rank + 1.0) * hvd.allreduce(x)

    @tf.function
    def branches(x):
        return (rank + 1.0) * (hvd.allreduce(x) if x[0] > 0 else hvd.allreduce(2.0 * x))

    @tf.function
    def loop(x):
        for _ in tf.range(3):
            x = hvd.allreduce(x)
        return (rank + 1.0) * x

    for number in range(3 if rank == 0 else 1):
        gradient(tf.function(lambda x: x * number), tf.ones(2))  # noqa: B023
    for program in (straight, branches, loop):
        inside = tf.function(lambda x: gradient(program, x))  # noqa: B023
        for found in (gradient(program, tf.ones(3)), inside(tf.ones(3))):
            assert np.allclose(found, (size + 1) / 2)


def test_a_map_whose_steps_may_overlap(rank, size):
    @tf.function
    def program(rows):
        def step(row):
            return hvd.allreduce(late(row, rank == 0 and row[0] < 2), op=hvd.Sum)
        return tf.map_fn(step, rows, parallel_iterations=10)

    rows = tf.reshape(tf.range(30.0), [10, 3])
    assert np.array_equal(program(rows), size * rows.numpy())


def test_functions_at_once_in_threads(rank, size):
    functions = [tf.function(lambda x, i=i: hvd.allreduce(x, op=hvd.Sum, name=f"thread {i}"))
                 for i in range(4)]
    found = {}

    def work(i):
        for _ in range(20):
            found[i] = functions[i](tf.fill([3], float(i)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads[::1 if rank == 0 else -1]:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[i].numpy().tolist() == [i * size] * 3 for i in range(4))


def test_xla_refuses_in_words():
    program = tf.function(lambda x: hvd.allreduce(x * 2), jit_compile=True)
    with pytest.raises(Exception, match="jit_compile=False") as raised:
        program(tf.ones(3))
    assert isinstance(hvd.error_of(raised.value), hvd.Error)


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_a_mismatch_says_the_same_on_all_ranks(graph, rank, size, several):
    def program(x):
        return hvd.allreduce(x, name="differs")

    with pytest.raises(Exception, match="ranks ask for different shapes") as raised:
        (tf.function(program) if graph else program)(tf.ones(3 + (rank == 1)))
    error = hvd.error_of(raised.value)
    assert isinstance(error, hvd.MismatchError)
    # Rank 1, and one of the others.
    text = str(error).partition(" under one name")[0]
    assert all(words in text for words in ("rank 1 ", "float32 [4] average", "float32 [3] average"))
    assert len(set(hvd.allgather_object(text))) == 1
    assert program(tf.ones(5)).numpy().tolist() == [1.0] * 5  # and goes on


def test_saved_graphs_go_on(rank, size, tmp_path):
    module = tf.Module()
    module.call = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum),
                              input_signature=[tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.call(tf.ones(2)).numpy().tolist() == [size] * 2


def test_join_is_not_for_graphs(rank, size):
    with pytest.raises(Exception, match="outside of tf.function"):
        tf.function(lambda: hvd.join())()
    if rank == 0:
        found = [hvd.allreduce(tf.ones(2), op=hvd.Sum, name=f"joined {i}") for i in range(3)]
        if size > 1:
            assert found[2].numpy().tolist() == [1.0] * 2
    last = hvd.join()
    assert 0 <= last < size
