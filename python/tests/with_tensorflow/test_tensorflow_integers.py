# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: averages and scales of integers, against NumPy: dense, sparse, in groups."""
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import hvd.tensorflow as hvd  # noqa: E402

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
ROWS = 5


def values_of(rank, dtype):
    """One of a row that all have, twice, and one of a row of its own."""
    values = np.array([[3 + rank, 5], [7, 9 + 2 * rank], [2, 1]], dtype)
    return values if dtype.startswith("u") else values * np.array([[1], [-1], [1]], dtype)


def indices_of(rank):
    return [0, 1 + rank, 0]


def dense_of(rank, dtype):
    dense = np.zeros((ROWS, 2), dtype)
    np.add.at(dense, indices_of(rank), values_of(rank, dtype))
    return dense


def slices_of(rank, dtype):
    return tf.IndexedSlices(tf.constant(values_of(rank, dtype)), tf.constant(indices_of(rank)),
                            tf.constant([ROWS, 2]))


def truncated(values, dtype):
    return np.trunc(values).astype(dtype)


def wanted(size, dtype, divisor=1, before=1.0, after=1.0):
    total = sum(truncated(dense_of(r, dtype) * before, dtype).astype("float64")
                for r in range(size))
    return truncated(total / divisor * after, dtype)


@pytest.fixture(params=[lambda function: function, tf.function], ids=["eager", "graph"])
def run(request):
    return request.param


@pytest.fixture(autouse=True)
def few(size):
    if size > ROWS - 1:
        pytest.skip("as many rows as there are")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_averages(run, dtype, rank, size):
    average = wanted(size, dtype, size)
    assert average.any()
    dense = tf.constant(dense_of(rank, dtype))
    for found in (run(hvd.allreduce)(dense), *run(hvd.grouped_allreduce)([dense, dense])):
        assert found.dtype == dense.dtype and np.array_equal(found, average)
    assert np.array_equal(hvd.allgather(run(hvd.reducescatter)(dense)), average)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sparse_ones(run, dtype, rank, size):
    """Averages are of floating-point numbers: what is truncated slice by slice is lost."""
    slices, dense = slices_of(rank, dtype), tf.constant(dense_of(rank, dtype))
    exact = sum(dense_of(r, dtype).astype("float64") for r in range(size)) / size
    for found in (run(hvd.allreduce)(slices), run(hvd.grouped_allreduce)([dense, slices])[1]):
        assert found.dtype.is_floating
        assert np.allclose(tf.convert_to_tensor(found), exact, rtol=1e-6)
    summed = run(lambda x: hvd.allreduce(x, op=hvd.Sum))(slices)
    assert summed.dtype == dtype
    assert np.array_equal(tf.convert_to_tensor(summed), wanted(size, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("before, after", [(0.5, 1.0), (1.0, 0.5), (1.0, 2.0), (0.25, 3.0)])
def test_scales(run, dtype, before, after, rank, size):
    how = {"op": hvd.Sum, "prescale_factor": before, "postscale_factor": after}
    found = run(lambda x: hvd.allreduce(x, **how))(tf.constant(dense_of(rank, dtype)))
    assert np.array_equal(found, wanted(size, dtype, 1, before, after))
    with pytest.raises(NotImplementedError, match="not for IndexedSlices"):
        hvd.allreduce(slices_of(rank, dtype), **how)


def test_large_averages_keep_their_bits(run, rank, size):
    large = 2 ** 60 + 3 * size
    assert run(hvd.allreduce)(tf.constant([large], tf.int64)).numpy().tolist() == [large]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_averages_of_others(run, dtype, rank, size):
    found = tf.convert_to_tensor(run(hvd.allreduce)(slices_of(rank, dtype)))
    exact = sum(dense_of(r, "float64") for r in range(size)) / size
    assert found.dtype == dtype
    assert np.allclose(tf.cast(found, tf.float64), exact, rtol=0.02 if dtype[-2:] == "16" else 1e-6)


def test_a_gradient_that_stays_this_ranks_own(rank, size):
    """As large as if the others' had been zero, of its own type."""
    variable = tf.Variable(tf.ones([ROWS, 2]))
    with tf.GradientTape() as tape:
        picked = tf.gather(variable, indices_of(rank))
        total = tf.reduce_sum(picked * tf.constant(values_of(rank, "float32")))
    tape = hvd.DistributedGradientTape(tape)
    tape.register_local_source(variable)
    found = tape.gradient(total, variable)
    assert isinstance(found, tf.IndexedSlices)
    assert np.allclose(tf.convert_to_tensor(found), dense_of(rank, "float32") / size)
