# SPDX-License-Identifier: Apache-2.0
"""hvd.jax: the leaves of a tree meet by their paths, whatever their order is."""
from collections import OrderedDict

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
import jax.numpy as jnp  # noqa: E402

import hvd.jax as hvd  # noqa: E402


@pytest.fixture(params=[lambda function: function, jax.jit], ids=["eager", "jit"])
def run(request):
    return request.param


def tree(rank, names):
    """A dict that keeps its order, which is rank 0's own."""
    pairs = [(name, {"w": jnp.full(3, i * (rank + 1.0))}) for i, name in enumerate(names)]
    return OrderedDict(pairs[::-1] if rank == 0 else pairs)


@pytest.mark.parametrize("call", ["allreduce", "broadcast", "allgather"])
def test_a_dict_that_keeps_its_order(run, call, rank, size):
    names = [f"layer_{i}" for i in range(12)]
    calls = {"allreduce": lambda x: hvd.allreduce(x, hvd.Sum),
             "broadcast": lambda x: hvd.broadcast(x, size - 1),
             "allgather": lambda x: hvd.allgather(x)}
    for _ in range(2):
        found = run(calls[call])(tree(rank, names))
        assert list(found) == list(tree(rank, names))
        for i, name in enumerate(names):
            expected = {"allreduce": np.full(3, i * size * (size + 1) / 2),
                        "broadcast": np.full(3, i * size),
                        "allgather": np.repeat(np.arange(1, size + 1) * i, 3)}[call]
            assert np.allclose(found[name]["w"], expected)


def test_other_names_are_a_mismatch(run, rank, size, several):
    names = ["a", "b" if rank == 1 else "c"]
    with pytest.raises(Exception, match="give different tensors, by their names or their order"):
        jax.block_until_ready(run(hvd.allreduce)(tree(rank, names)))


def test_lists_meet_by_their_places(run, rank, size):
    found = run(lambda x: hvd.allreduce(x, hvd.Sum))(
        [jnp.full(2, i * (rank + 1.0)) for i in range(12)])
    for i, each in enumerate(found):
        assert np.allclose(each, i * size * (size + 1) / 2)
