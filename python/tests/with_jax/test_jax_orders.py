# SPDX-License-Identifier: Apache-2.0
"""hvd.jax: ranks may have the calls of a compiled program in any order, in programs of every size
and shape. Rank 0 has them in the opposite order of the others'."""
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
import jax.numpy as jnp  # noqa: E402

import hvd.jax as hvd  # noqa: E402


def summed(x, name):
    return hvd.allreduce(x, hvd.Sum, name=name)


def each_in_a_list(x, order):
    return [summed(x * i, f"order {i}") for i in order]


def the_sum_of_all(x, order):
    total = sum(summed(x * i, f"order {i}").sum() for i in order)
    return [total / (2 * x.size)] * len(order)


def jit_in_jit(x, order):
    return [jax.jit(lambda x, i=i: summed(x * i, f"order {i}") + 0.0)(x) for i in order]


def within_a_scan(x, order):
    def step(carry, _):
        found = each_in_a_list(x, order)
        return [each * 0 + one for each, one in zip(carry, found, strict=True)], 0
    return jax.lax.scan(step, [jnp.zeros_like(x) for _ in order], length=3)[0]


def branches(x, order):
    yes = x[0] > 0
    return [jax.lax.cond(yes, lambda x, i=i: summed(x * i, f"order {i}"), jnp.zeros_like, x)
            for i in order]


def within_a_branch(x, order):
    return jax.lax.cond(x[0] > 0, lambda x: each_in_a_list(x, order),
                        lambda x: [jnp.zeros_like(x) for _ in order], x)


def branch_in_scan(x, order):
    def step(carry, _):
        return [each * 0 + one for each, one in zip(carry, branches(x, order), strict=True)], 0
    return jax.lax.scan(step, [jnp.zeros_like(x) for _ in order], length=3)[0]


def gradients(x, order):
    def of(i):
        return jax.grad(lambda y: (x * summed(y * i, f"order {i}")).sum())(x)
    return [of(i) for i in order]


def batches(x, order):
    return [jax.vmap(lambda y, i=i: summed(y * i, f"order {i}"))(x) for i in order]


def kinds(x, order):
    """Makes calls of five kinds; each gives what a sum would."""
    def call(i):
        y, name, size = x * i, f"order {i}", hvd.size()
        if i % 5 == 0:
            return hvd.allgather(y, name=name)[:x.size] * size
        if i % 5 == 1:
            return hvd.broadcast(y, size - 1, name=name) * size
        if i % 5 == 2:
            return jnp.tile(hvd.reducescatter(jnp.tile(y, (size, 1)), hvd.Sum, name=name)[0], 1)
        if i % 5 == 3:
            return hvd.alltoall(jnp.tile(y, (size, 1)), name=name).sum(0)
        return summed([y, y], name)[1]
    return [call(i) for i in order]


@pytest.mark.parametrize("calls", [2, 12])
@pytest.mark.parametrize("elements", [2, 1000, 200000])
@pytest.mark.parametrize("form", [
    each_in_a_list, the_sum_of_all, jit_in_jit, within_a_scan, branches,
    within_a_branch, branch_in_scan, gradients, batches, kinds])
def test_opposite_orders(form, elements, calls, rank, size):
    if calls * elements > 1000000:
        pytest.skip("as good as the next")
    order = list(range(calls))[::-1 if rank == 0 else 1]
    program = jax.jit(lambda x: form(x, order))
    for _ in range(2):
        found = program(jnp.ones(elements))
        for i, each in zip(order, found, strict=True):
            if form is the_sum_of_all:
                assert float(each) == pytest.approx(size * calls * (calls - 1) / 4, rel=1e-5)
            else:
                assert np.array_equal(np.unique(each), [i * size])


def test_what_one_rank_does_first_the_other_needs_last(rank, size):
    """Rank 0's first call makes what its second is given; the others have them the other way
    round, and apart."""
    @jax.jit
    def program(x):
        if rank == 0:
            first = summed(x, "needed first")
            return first, summed(first * 0 + x, "needed last")
        last = summed(x, "needed last")
        return summed(x, "needed first"), last

    for elements in (2, 200000):
        for found in program(jnp.ones(elements)):
            assert np.array_equal(np.unique(found), [size])


def test_a_program_without_calls_is_left_as_it_is():
    text = jax.jit(lambda x: x + 1).lower(jnp.ones(3)).as_text()
    assert "hvd" not in text
