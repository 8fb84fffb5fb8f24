# SPDX-License-Identifier: Apache-2.0
"""hvd.jax: what compiled programs do with calls, and training with optax."""
import os
import threading

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
import jax.numpy as jnp  # noqa: E402
from jax.experimental import io_callback  # noqa: E402

import hvd as hvd_of_numpy  # noqa: E402
import hvd.jax as hvd  # noqa: E402

TENSORS = 64


def test_opposite_orders(rank, size):
    order = list(range(TENSORS))[::1 if rank == 0 else -1]

    @jax.jit
    def program(x):
        return {i: hvd.allreduce(x * i, hvd.Sum, name=f"opposite {i}") for i in order}

    for _ in range(3):
        found = program(jnp.ones(50))
        assert all(float(found[i][7]) == i * size for i in order)


def test_a_result_that_one_rank_does_not_use(rank, size):
    def program(x):
        total = hvd.allreduce(x, hvd.Sum, name="unused")
        return x + 1 if rank == 0 else total

    found = jax.jit(program)(jnp.full(3, 2.0))
    assert found.tolist() == [3.0 if rank == 0 else 2.0 * size] * 3


def test_a_constant_travels_each_time(rank, size):
    call = lambda: hvd.allreduce(jnp.full(2, 1.0 + rank), hvd.Sum, name="constant")  # noqa: E731
    # The others wait for each run of rank 0's program.
    program = jax.jit(call) if rank == 0 else call
    for _ in range(3):
        assert program().tolist() == [sum(range(1, size + 1))] * 2


def test_runs_of_one_program_that_overlap(rank, size):
    program = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum, name="overlapping"))
    running = [program(jnp.full(1000, float(i))) for i in range(20)]
    for i, each in enumerate(running):
        assert each[999] == i * size


def test_one_name_on_two_sets(rank, size):
    if size < 3:
        pytest.skip("it takes two sets that differ")
    pair = hvd.add_process_set([0, 1])
    of_all = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum, name="one name"))
    of_pair = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum, name="one name", process_set=pair))
    found = []
    waiting = threading.Thread(target=lambda: found.append(of_all(jnp.ones(3)).tolist()))
    try:
        if rank == 0:
            waiting.start()  # the others come when the pair is through
        for _ in range(200 if rank < 2 else 0):
            assert of_pair(jnp.ones(3)).tolist() == [2.0] * 3
        hvd.allgather_object(None)
        if rank != 0:
            waiting.start()
        waiting.join()
        assert found == [[float(size)] * 3]
    finally:
        hvd.remove_process_set(pair)


def test_a_mismatch_says_the_same_on_all_ranks(rank, size):
    if size == 1:
        pytest.skip("one rank cannot differ")
    program = jax.jit(lambda x: hvd.allreduce(x, name="differs"))
    with pytest.raises(Exception, match="HVD_ERR_MISMATCH") as raised:
        program(jnp.ones(3 + (rank == 1))).block_until_ready()
    error = hvd.error_of(raised.value)
    assert isinstance(error, hvd.MismatchError)
    # Rank 1, and one of the others.
    assert all(words in str(error) for words in ("rank 1 ", "float32 [4] average",
                                                 "float32 [3] average"))
    assert len(set(hvd.allgather_object(str(error)))) == 1
    assert program(jnp.ones(5)).tolist() == [1.0] * 5  # and goes on


@pytest.mark.parametrize("elements", [4, 1000000])
def test_a_function_of_python_may_wait_for_hvd(elements, rank, size):
    """XLA calls it where the call has ended: that is no thread that other calls need."""
    def gather(mine):
        return hvd_of_numpy.allgather(np.asarray(mine), "within").sum()

    @jax.jit
    def program(x):
        total = hvd.allreduce(x, hvd.Sum, name="before")
        return io_callback(gather, jax.ShapeDtypeStruct((), jnp.float32), total[:1] * (rank + 1))

    for _ in range(20):
        assert float(program(jnp.ones(elements))) == size * sum(range(1, size + 1))


@pytest.mark.parametrize("elements", [3, 1000000])
def test_the_rest_of_a_program_holds_up_no_other_call(elements, rank, size):
    """Rank 0's program waits, behind its first call, for what the others do with it meanwhile."""
    def wait(number):
        hvd_of_numpy.Store().get(f"held up {elements}")
        return np.asarray(number)

    @jax.jit
    def program(x):
        total = hvd.allreduce(x, hvd.Sum, name="first")
        return io_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), total[0]) if rank == 0 \
            else total[0]

    found = []
    running = threading.Thread(target=lambda: found.append(float(program(jnp.ones(elements)))))
    running.start()
    others = hvd_of_numpy.allreduce_async(np.ones(200000), f"beside {elements}", hvd.Sum)
    assert others.wait()[0] == size  # rank 0's too
    if rank == size - 1:
        hvd_of_numpy.Store().set(f"held up {elements}", b"")
    running.join()
    assert found == [size]


def test_types_that_hvd_has_not(rank):
    fp4 = getattr(jnp, "int4", None)
    if fp4 is None:
        pytest.skip("this jax has no int4")
    for run in (lambda function: function, jax.jit):
        with pytest.raises(hvd.InvalidError, match="no collectives for elements of type int4"):
            run(lambda x: hvd.allreduce(x, name="int4"))(jnp.ones(3, fp4))


@pytest.mark.parametrize("predivide", [1.0, 2.0])
def test_training_is_that_of_one_rank_with_all_data(predivide, rank, size):
    optax = pytest.importorskip("optax")

    def train(optimizer, inputs, targets):
        @jax.jit
        def step(params, state):
            loss = lambda p: ((inputs @ p["w"] + p["b"] - targets) ** 2).mean()  # noqa: E731
            updates, state = optimizer.update(jax.grad(loss)(params), state, params)
            return optax.apply_updates(params, updates), state

        params = {"w": jnp.zeros(4), "b": jnp.float32(0)}
        state = optimizer.init(params)
        for _ in range(10):
            params, state = step(params, state)
        return params

    random = np.random.default_rng(5)
    inputs, targets = random.normal(size=(size * 8, 4)), random.normal(size=size * 8)
    inputs, targets = inputs.astype("float32"), targets.astype("float32")
    mine = slice(8 * rank, 8 * rank + 8)
    chain = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.05))
    alone = train(chain, inputs, targets)
    together = train(hvd.DistributedOptimizer(chain, gradient_predivide_factor=predivide),
                     inputs[mine], targets[mine])
    assert np.allclose(alone["w"], together["w"], atol=1e-5)
    assert np.allclose(alone["b"], together["b"], atol=1e-5)
    with pytest.raises(ValueError, match="op=Average"):
        hvd.DistributedOptimizer(chain, op=hvd.Sum, gradient_predivide_factor=2.0)


def test_a_step_of_keras_written_out(rank, size):
    """Keras's model and optimizer as functions, and the gradients' tree reduced between them."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    keras = pytest.importorskip("keras", reason="keras is not installed")
    if keras.backend.backend() != "jax":
        pytest.skip(f"keras is on {keras.backend.backend()}")
    random = np.random.default_rng(7)
    inputs = random.normal(size=(4 * size, 3)).astype("float32")
    targets = inputs.sum(1, keepdims=True)

    def train(reduce, inputs, targets):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
        model.build((None, 3))
        optimizer = keras.optimizers.Adam(0.05)
        optimizer.build(model.trainable_variables)

        def loss(trained, fixed):
            found, fixed = model.stateless_call(trained, fixed, inputs)
            return ((found - targets) ** 2).mean(), fixed

        @jax.jit
        def step(trained, fixed, state):
            (_, fixed), gradients = jax.value_and_grad(loss, has_aux=True)(trained, fixed)
            trained, state = optimizer.stateless_apply(state, reduce(gradients), trained)
            return trained, fixed, state

        values = [[each.value for each in variables] for variables in (
            model.trainable_variables, model.non_trainable_variables, optimizer.variables)]
        for _ in range(5):
            values = step(*values)
        return [np.asarray(each) for each in values[0]]

    mine = slice(4 * rank, 4 * rank + 4)
    together = train(hvd.allreduce, inputs[mine], targets[mine])
    alone = train(lambda tree: tree, inputs, targets)
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(together, alone, strict=True))


def test_broadcast_parameters(rank, size):
    tree = {"w": jnp.full((2, 2), float(rank)), "step": rank}
    found = hvd.broadcast_parameters(tree, size - 1)
    assert found["w"].tolist() == [[size - 1.0] * 2] * 2 and int(found["step"]) == size - 1
    assert hvd.broadcast_object({"lr": rank}, 0) == {"lr": 0}
