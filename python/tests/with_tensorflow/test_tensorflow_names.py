# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: gradients meet by the names of their variables, whatever their order is. Rank 0
has its lists in the opposite order of the others'."""
import re

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import hvd.tensorflow as hvd  # noqa: E402

v1 = tf.compat.v1


@pytest.fixture(params=[lambda function: function, tf.function], ids=["eager", "graph"])
def run(request):
    return request.param


@pytest.fixture
def variables():
    return [tf.Variable([0.0, 0.0], name=f"layer_{i}/w") for i in range(4)]


def in_my_order(rank, items):
    return items[::-1] if rank == 0 else items


def loss_of(variables, rank):
    """The average of the ranks' gradients of variable i is (i + 1) * (size + 1) / 2."""
    return sum(tf.reduce_sum(each) * (i + 1.0) * (rank + 1.0) for i, each in enumerate(variables))


def expected(i, size):
    return np.full(2, (i + 1) * (size + 1) / 2)


@pytest.mark.parametrize("how", [{}, {"groups": 2}, {"groups": 1}, {"groups": "listed"},
                                 {"compression": hvd.Compression.fp16}],
                         ids=["plain", "groups", "one", "listed", "fp16"])
def test_a_tape(run, how, variables, rank, size):
    if how.get("groups") == "listed":
        how = {"groups": in_my_order(rank, [variables[:2], variables[3:]])}

    @run
    def gradients():
        with tf.GradientTape() as tape:
            loss = loss_of(variables, rank)
        return hvd.DistributedGradientTape(tape, **how).gradient(
            loss, in_my_order(rank, variables))

    for _ in range(2):
        for i, found in enumerate(in_my_order(rank, gradients())):
            assert np.allclose(found, expected(i, size))


def test_sparse_gradients(run, rank, size):
    tables = [tf.Variable(tf.ones([3, 2]), name=f"table_{i}") for i in range(2)]

    @run
    def gradients():
        with tf.GradientTape() as tape:
            loss = sum(tf.reduce_sum(tf.nn.embedding_lookup(each, [i])) * (i + 1.0)
                       for i, each in enumerate(tables))
        return hvd.DistributedGradientTape(tape).gradient(loss, in_my_order(rank, tables))

    for i, found in enumerate(in_my_order(rank, gradients())):
        rows = np.zeros((3, 2))
        rows[i] = i + 1
        assert np.allclose(tf.convert_to_tensor(found), rows)


def test_accumulated_gradients_of_an_optimizer(run, variables, rank, size):
    optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0),
                                         backward_passes_per_step=2)

    @run
    def step():
        return optimizer.apply_gradients(optimizer.compute_gradients(
            lambda: loss_of(variables, rank), in_my_order(rank, variables)))

    for _ in range(4):
        step()
    for i, each in enumerate(variables):
        assert np.allclose(each, -4 * expected(i, size))


def test_a_session_of_an_optimizer(rank, size):
    with tf.Graph().as_default(), v1.Session() as session:
        variables = [v1.get_variable(f"layer_{i}", [2], initializer=v1.zeros_initializer())
                     for i in range(4)]
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0))
        step = optimizer.minimize(loss_of(variables, rank), var_list=in_my_order(rank, variables))
        session.run(v1.global_variables_initializer())
        session.run(step)
        for i, found in enumerate(session.run(variables)):
            assert np.allclose(found, -expected(i, size))


def test_variables_that_are_broadcast(run, rank, size):
    variables = [tf.Variable([100.0 * rank + i, 0.0], name=f"layer_{i}/w") for i in range(4)]

    @run
    def step():
        hvd.broadcast_variables(in_my_order(rank, variables), root_rank=size - 1)

    step()
    for i, each in enumerate(variables):
        assert np.allclose(each, [100 * (size - 1) + i, 0])


def test_names_that_a_process_numbers_by_what_it_has_built(run, rank, size):
    """As Keras does."""
    variables = [tf.Variable([0.0, 0.0], name=f"dense_{i + 8 + rank}/w") for i in range(4)]

    @run
    def gradients():
        with tf.GradientTape() as tape:
            loss = loss_of(variables, rank)
        return hvd.DistributedGradientTape(tape).gradient(loss, in_my_order(rank, variables))

    for i, found in enumerate(in_my_order(rank, gradients())):
        assert np.allclose(found, expected(i, size))


def test_other_names_are_a_mismatch_and_generic_names_are_not_looked_at(run, rank, size, several):
    variables = [tf.Variable([0.0, 0.0], name=f"{name} of {'rest' if rank else 'root'}")
                 for name in "abcd"]

    def gradients(generic):
        @run
        def found():
            with tf.GradientTape() as tape:
                loss = loss_of(variables, rank)
            return hvd.DistributedGradientTape(tape).gradient(loss, variables,
                                                              use_generic_names=generic)
        return found()

    for i, found in enumerate(gradients(True)):
        assert np.allclose(found, expected(i, size))
    with pytest.raises((hvd.MismatchError, tf.errors.FailedPreconditionError)) as told:
        gradients(False)
    assert "give different tensors, by their names or their order" in str(told.value)
    # The message names some of them: a graph's calls run in no order.
    assert re.search(f"This rank gives: .*[abcd] of {'rest' if rank else 'root'}", str(told.value))


def test_a_gradient_that_one_rank_lacks_is_a_mismatch(run, variables, rank, size, several):
    @run
    def gradients():
        with tf.GradientTape() as tape:
            loss = loss_of(variables[1:] if rank == 1 else variables[:3], rank)
        return hvd.DistributedGradientTape(tape, groups=1).gradient(loss, variables)

    with pytest.raises((hvd.MismatchError, tf.errors.FailedPreconditionError),
                       match="give different tensors"):
        gradients()


def test_variables_without_names_of_their_own_meet_by_their_places(run, rank, size):
    variables = [tf.Variable([0.0, 0.0]) for _ in range(4)]

    @run
    def gradients():
        with tf.GradientTape() as tape:
            loss = loss_of(variables, rank)
        return hvd.DistributedGradientTape(tape).gradient(loss, variables)

    for i, found in enumerate(gradients()):
        assert np.allclose(found, expected(i, size))
