# SPDX-License-Identifier: Apache-2.0
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


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8", "bool", "complex64",
                                   "float8_e4m3fn", "float8_e5m2"])
def test_types(run, dtype, rank, size):
    mine = jnp.asarray(ramp(rank, (5,))).astype(dtype)
    found = run(lambda x: hvd.allreduce(x, hvd.Sum))(mine)
    assert found.dtype == mine.dtype
    all_of = np.stack([np.asarray(jnp.asarray(ramp(r, (5,))).astype(dtype)) for r in range(size)])
    if dtype == "bool":
        wanted = all_of.any(0)
    else:
        wide = all_of.astype("float64") if "float8" in dtype else all_of
        wanted = wide.sum(0, dtype=wide.dtype).astype(all_of.dtype)
    assert np.array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int32"])
def test_averages_of_integers(run, dtype, rank, size):
    """Truncated once, also in trees and scattered; scaled ones at each end."""
    def of(rank):
        return (np.array([9 + 2 * rank, 5, 0]) * (1 if dtype[0] == "u" else -1)).astype(dtype)

    mine, total = jnp.asarray(of(rank)), sum(of(r).astype("int64") for r in range(size))
    average = np.trunc(total / size).tolist()
    for each in (run(hvd.allreduce)(mine), *run(hvd.allreduce)([mine, mine]),
                 run(lambda x: hvd.allreduce(x, hvd.Sum, postscale_factor=1 / size))(mine)):
        assert each.dtype == dtype and each.tolist() == average
    rows = jnp.tile(mine, (size, 1))
    assert run(hvd.reducescatter)(rows).tolist() == [average]


def test_what_trees_may_have(run, rank, size):
    tree = {"none": None, "empty": jnp.ones((0, 3)), "scalar": 1.5, "count": rank,
            "list": [None, np.ones(2, "float32")]}
    found = run(lambda tree: hvd.allreduce(tree, hvd.Sum))(tree)
    assert found["none"] is None and found["list"][0] is None
    assert found["empty"].shape == (0, 3) and found["list"][1].tolist() == [size] * 2
    assert float(found["scalar"]) == 1.5 * size and int(found["count"]) == sum(range(size))
    for call in (hvd.allgather, hvd.reducescatter, hvd.alltoall):
        assert run(call)(jnp.ones((0, 3))).shape == (0, 3)
    assert run(hvd.broadcast)([jnp.ones((0,)), jnp.ones(1)])[0].shape == (0,)


def test_what_makes_no_sense_is_refused_where_it_is_written(run, size):
    for call in (hvd.allgather, hvd.reducescatter, hvd.alltoall):
        with pytest.raises(hvd.InvalidError, match="scalar, which has none; give it the shape"):
            run(call)(jnp.float32(1))
    if size > 1:
        with pytest.raises(hvd.InvalidError, match="rows cannot be divided evenly"):
            run(hvd.alltoall)(jnp.ones(2 * size + 1))
    with pytest.raises(hvd.InvalidError, match="keys of jax.random cannot be reduced"):
        run(hvd.allreduce)(jax.random.key(0))


def test_keys_of_random_numbers(run, rank, size):
    found = run(lambda keys: hvd.broadcast(keys, size - 1))({"a": jax.random.key(rank)})["a"]
    same(jax.random.key_data(found), jax.random.key_data(jax.random.key(size - 1)))
    assert jax.random.uniform(found) == jax.random.uniform(jax.random.key(size - 1))
    keys = run(hvd.allgather)(jax.random.split(jax.random.key(rank)))
    assert keys.shape == (2 * size,)


def test_donated_arguments(rank, size):
    total = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum), donate_argnums=0)
    given = jnp.full(1000, rank + 1.0)
    found = total(given)
    assert given.is_deleted()
    same(total(found), np.full(1000, size * sum(range(1, size + 1))))


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


@pytest.mark.parametrize("root", [0, -1])
def test_gradients_of_a_broadcasts_gradient(run, root, rank, size):
    """The root's second gradients need all ranks'."""
    def product(weights, v):
        found = jax.grad(lambda x: (weights * hvd.broadcast(x, root % size)).sum())(jnp.ones(3))
        return (found * v).sum()

    v = jnp.full(3, rank + 1.0)
    same(run(jax.grad(product))(jnp.ones(3), v), [(root % size + 1) / size] * 3)


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


def test_vmap_of_each_is_that_of_the_elements(run, rank, size):
    batch = jnp.stack([jnp.asarray(ramp(rank, (2 * size, 2))) * i for i in (1.0, 3.0, -2.0)])
    for call in (lambda x: hvd.broadcast(x, 0), lambda x: hvd.reducescatter(x, hvd.Sum),
                 hvd.alltoall, lambda x: hvd.allreduce(x, hvd.Adasum)):
        one_by_one = [call(each) for each in batch]
        assert np.allclose(run(jax.vmap(call))(batch), jnp.stack(one_by_one))
        gradient = jax.grad(lambda x: (rank + 1.0) * call(x).sum())  # noqa: B023
        one_by_one = [gradient(each) for each in batch]
        assert np.allclose(run(jax.vmap(gradient))(batch), jnp.stack(one_by_one))
    found = run(jax.vmap(lambda x, y: hvd.allreduce([x, y], hvd.Sum), in_axes=(0, None)))(
        batch, jnp.ones(3))
    assert found[0].shape == batch.shape and found[1].tolist() == [[size] * 3] * 3


def test_what_there_is_no_way_for_says_so(rank):
    with pytest.raises(NotImplementedError, match="Effects not supported"):
        jax.grad(jax.checkpoint(lambda x: hvd.allreduce(x).sum()))(jnp.ones(2))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(hvd.allreduce, (jnp.ones(2),), (jnp.ones(2),))
