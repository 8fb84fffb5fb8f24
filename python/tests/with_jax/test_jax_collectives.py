"""hvd.jax: collectives on pytrees, eager and in compiled programs. Each result is known from the
ranks' inputs."""
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
import jax.numpy as jnp  # noqa: E402

import hvd.jax as hvd  # noqa: E402


def ramp(rank, shape=(4, 3), dtype="float32"):
    return (np.arange(np.prod(shape)).reshape(shape) + 10 * rank).astype(dtype)


def everyone(size, **how):
    return np.stack([ramp(rank, **how) for rank in range(size)])


def same(found, wanted):
    assert np.allclose(np.asarray(found, dtype="float64"), np.asarray(wanted, dtype="float64"))


@pytest.fixture(params=[lambda function: function, jax.jit], ids=["eager", "jit"])
def run(request):
    return request.param


def test_allreduce_of_a_tree(run, rank, size):
    tree = {"a": jnp.asarray(ramp(rank)), "b": [jnp.float32(rank), jnp.asarray(ramp(rank, (7,)))]}
    found = run(lambda tree: hvd.allreduce(tree, hvd.Sum, prescale_factor=0.5))(tree)
    same(found["a"], everyone(size).sum(0) / 2)
    same(found["b"][0], sum(range(size)) / 2)
    same(found["b"][1], everyone(size, shape=(7,)).sum(0) / 2)
    same(run(hvd.allreduce)(tree)["a"], everyone(size).mean(0))
    assert run(lambda: hvd.allreduce({}))() == {}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8", "bool", "complex64"])
def test_types(run, dtype, rank, size):
    mine = jnp.asarray(ramp(rank, (5,))).astype(dtype)
    found = run(lambda x: hvd.allreduce(x, hvd.Sum))(mine)
    assert found.dtype == mine.dtype
    all_of = np.stack([np.asarray(jnp.asarray(ramp(r, (5,))).astype(dtype)) for r in range(size)])
    wanted = all_of.any(0) if dtype == "bool" else all_of.sum(0, dtype=all_of.dtype)
    assert np.array_equal(np.asarray(found), wanted)


def test_min_max_and_product(run, rank, size):
    mine = jnp.asarray(ramp(rank))
    same(run(lambda x: hvd.allreduce(x, hvd.Max))(mine), ramp(size - 1))
    same(run(lambda x: hvd.allreduce(x, hvd.Min))(mine), ramp(0))
    same(run(lambda x: hvd.allreduce(x, hvd.Product))(jnp.full(3, 2.0)), [2.0 ** size] * 3)


def test_allgather_broadcast_and_barrier(run, rank, size):
    mine = jnp.asarray(ramp(rank))
    tree = run(lambda x: hvd.allgather({"x": x, "y": x[:1]}))(mine)
    same(tree["x"], everyone(size).reshape(-1, 3))
    same(tree["y"], everyone(size)[:, 0])
    same(run(lambda x: hvd.broadcast([x, 2 * x], size - 1))(mine)[1], 2 * ramp(size - 1))
    hvd.barrier()


def test_reducescatter_and_alltoall(run, rank, size):
    rows = 2 * size + 1  # the first rank has one more
    mine = jnp.asarray(ramp(rank, (rows, 2)))
    first = 0 if rank == 0 else 2 * rank + 1
    wanted = everyone(size, shape=(rows, 2)).sum(0)[first:first + (3 if rank == 0 else 2)]
    same(run(lambda x: hvd.reducescatter(x, hvd.Sum))(mine), wanted)
    split = jnp.asarray(ramp(rank, (2 * size, 2)))
    wanted = everyone(size, shape=(2 * size, 2))[:, 2 * rank:2 * rank + 2].reshape(-1, 2)
    same(run(hvd.alltoall)(split), wanted)


def test_a_process_set(run, rank, size):
    if size == 1:
        pytest.skip("a job of one rank has no other sets")
    alone = [hvd.add_process_set([r]) for r in range(size)]
    try:
        found = run(lambda x: hvd.allreduce(x, hvd.Sum, process_set=alone[rank]))(
            jnp.asarray(ramp(rank)))
        same(found, ramp(rank))
    finally:
        for one in alone:
            hvd.remove_process_set(one)


def test_gradients(run, rank, size):
    mine = jnp.asarray(ramp(rank))
    weight = jnp.asarray(ramp(2 * rank + 1))
    weights = np.stack([ramp(2 * r + 1) for r in range(size)])
    gradient = lambda function: run(jax.grad(lambda x: (function(x)).sum()))(mine)  # noqa: E731
    same(gradient(lambda x: weight * hvd.allreduce(x, hvd.Average)), weights.mean(0))
    same(gradient(lambda x: weight * hvd.allreduce(x, hvd.Sum)), weights.sum(0))
    root = gradient(lambda x: weight * hvd.broadcast(x, 0))
    same(root, weights.mean(0) if rank == 0 else np.zeros((4, 3)))
    own = np.concatenate([weights] * size, 1).mean(0)[4 * rank:4 * rank + 4]
    same(gradient(lambda x: jnp.tile(weight, (size, 1)) * hvd.allgather(x)), own)
    with pytest.raises(ValueError, match="Average, Sum and Adasum only"):
        gradient(lambda x: hvd.allreduce(x, hvd.Max))


def test_gradients_of_scattered_rows(run, rank, size):
    split = jnp.asarray(ramp(rank, (2 * size, 2)))
    part = jnp.full((2, 2), rank + 1.0)
    found = run(jax.grad(lambda x: (part * hvd.reducescatter(x, hvd.Sum)).sum()))(split)
    same(found, np.repeat(np.arange(1.0, size + 1) * size, 2)[:, None] * np.ones((1, 2)))
    found = run(jax.grad(lambda x: ((rank + 1) * hvd.alltoall(x)).sum()))(split)
    same(found, np.repeat(np.arange(1.0, size + 1), 2)[:, None] * np.ones((1, 2)))


def test_trees_with_integers_have_gradients(rank, size):
    def loss(tree):
        reduced = hvd.allreduce(tree, hvd.Sum)
        return (reduced["x"] * reduced["count"]).sum()

    gradient = jax.grad(loss, allow_int=True)({"x": jnp.ones(3), "count": jnp.int32(rank)})
    same(gradient["x"], np.full(3, size * sum(range(size))))


def test_scan_cond_and_vmap(run, rank, size):
    def step(carry, scale):
        carry = hvd.allreduce(carry * scale, hvd.Average, name="scanned")
        return jax.lax.cond(scale > 1, lambda x: hvd.allreduce(x, hvd.Max), lambda x: x, carry), 0

    found, _ = run(lambda x: jax.lax.scan(step, x, jnp.array([1.0, 2.0, 3.0])))(
        jnp.asarray(ramp(rank)))
    same(found, 6 * everyone(size).mean(0))
    batch = jnp.stack([jnp.asarray(ramp(rank)), 2 * jnp.asarray(ramp(rank))])
    same(run(jax.vmap(lambda x: hvd.allreduce(x, hvd.Sum)))(batch)[1], 2 * everyone(size).sum(0))
    same(run(jax.vmap(hvd.allgather))(batch)[1], 2 * everyone(size).reshape(-1, 3))
