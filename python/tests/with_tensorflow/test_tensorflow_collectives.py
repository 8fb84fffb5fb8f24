# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: collectives, eager and in graphs. Each result is known from the ranks' inputs."""
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import hvd.tensorflow as hvd  # noqa: E402


def ramp(rank, shape=(4, 3), dtype="float32"):
    return tf.cast((np.arange(np.prod(shape)).reshape(shape) + 10 * rank), dtype)


def everyone(size, **how):
    return np.stack([ramp(rank, **how).numpy() for rank in range(size)])


def same(found, wanted):
    assert np.allclose(np.asarray(found, dtype="float64"), np.asarray(wanted, dtype="float64"))


@pytest.fixture(params=[lambda function: function, tf.function], ids=["eager", "graph"])
def run(request):
    return request.param


@pytest.mark.parametrize("dtype", [
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "bool", "complex64", "complex128"])
def test_types(run, dtype, rank, size):
    mine = ramp(rank, (5,), dtype)
    found = run(lambda x: hvd.allreduce(x, op=hvd.Sum))(mine)
    assert found.dtype == mine.dtype and found.shape == mine.shape
    all_of = np.stack([ramp(r, (5,), dtype).numpy() for r in range(size)])
    wanted = all_of.any(0) if dtype == "bool" else all_of.sum(0, dtype=all_of.dtype)
    assert np.array_equal(found.numpy(), wanted)
    assert np.array_equal(run(hvd.allgather)(mine).numpy(), all_of.reshape(-1))
    assert np.array_equal(run(lambda x: hvd.broadcast(x, size - 1))(mine).numpy(), all_of[-1])


def test_types_that_hvd_has_not(run, rank):
    with pytest.raises((hvd.Error, tf.errors.OpError), match="no elements of TensorFlow's type"):
        run(lambda x: hvd.allreduce(x, op=hvd.Sum))(tf.constant(["text"]))


def test_reductions(run, rank, size):
    mine = ramp(rank)
    same(run(lambda x: hvd.allreduce(x))(mine), everyone(size).mean(0))
    same(run(lambda x: hvd.allreduce(x, op=hvd.Max))(mine), ramp(size - 1))
    same(run(lambda x: hvd.allreduce(x, op=hvd.Min))(mine), ramp(0))
    same(run(lambda x: hvd.allreduce(x, op=hvd.Product))(tf.fill([3], 2.0)), [2.0 ** size] * 3)
    same(run(lambda x: hvd.allreduce(x, op=hvd.Adasum))(tf.ones(3)), np.ones(3))
    same(run(lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0))(
        mine), 1.5 * everyone(size).sum(0))
    # A scalar, and nothing.
    same(run(lambda x: hvd.allreduce(x, op=hvd.Sum))(tf.constant(1.0)), size)
    assert run(lambda x: hvd.allreduce(x))(tf.zeros([0, 3])).shape == (0, 3)


def test_the_older_word_for_averages(rank, size):
    with pytest.warns(DeprecationWarning, match="has been replaced"):
        same(hvd.allreduce(ramp(rank), average=False), everyone(size).sum(0))
    with pytest.raises(ValueError, match="supersedes average"):
        hvd.allreduce(ramp(rank), average=True, op=hvd.Sum)


@pytest.mark.parametrize("compression", ["fp16", "bf16"])
def test_compression(run, compression, rank, size):
    how = getattr(hvd.Compression, compression)
    found = run(lambda x: hvd.allreduce(x, op=hvd.Sum, compression=how))(ramp(rank))
    assert found.dtype == tf.float32
    same(found, everyone(size).sum(0))  # small whole numbers


def test_a_compression_of_ones_own(run, rank, size):
    class Halved(hvd.Compression.none):
        @staticmethod
        def compress(tensor):
            return tensor / 2, None

        @staticmethod
        def decompress(tensor, ctx):
            return tensor * 2

    same(run(lambda x: hvd.allreduce(x, op=hvd.Max, compression=Halved))(ramp(rank)),
         ramp(size - 1))


def test_groups(run, rank, size):
    first, second = run(lambda x: hvd.grouped_allreduce([x, tf.cast(x, tf.float64)[:1]],
                                                        op=hvd.Sum))(ramp(rank))
    same(first, everyone(size).sum(0))
    same(second, everyone(size).sum(0)[:1])
    assert second.dtype == tf.float64
    first, second = run(lambda x: hvd.grouped_allgather([x[:rank + 1], x]))(ramp(rank))
    same(first, np.concatenate([ramp(r)[:r + 1] for r in range(size)]))
    same(second, everyone(size).reshape(-1, 3))
    rows = run(lambda x: hvd.grouped_reducescatter([x, 2 * x], op=hvd.Sum))(ramp(rank, (size, 2)))
    same(rows[1], 2 * everyone(size, shape=(size, 2)).sum(0)[rank:rank + 1])


def test_gathered_rows_may_differ(run, rank, size):
    found = run(lambda x: hvd.allgather(x))(ramp(rank, (4, 3))[:rank])
    same(found, np.concatenate([ramp(r)[:r] for r in range(size)]))
    traced = tf.function(lambda x: hvd.allgather(x)).get_concrete_function(
        tf.TensorSpec([2, 3], tf.float32))
    assert traced.structured_outputs.shape.as_list() == [None, 3]


def test_reducescatter(run, rank, size):
    rows = 2 * size + 1  # the first rank has one more
    first = 0 if rank == 0 else 2 * rank + 1
    found = run(lambda x: hvd.reducescatter(x, op=hvd.Sum))(ramp(rank, (rows, 2)))
    same(found, everyone(size, shape=(rows, 2)).sum(0)[first:first + (3 if rank == 0 else 2)])


def test_alltoall(run, rank, size):
    found = run(lambda x: hvd.alltoall(x))(ramp(rank, (2 * size, 2)))
    same(found, everyone(size, shape=(2 * size, 2))[:, 2 * rank:2 * rank + 2].reshape(-1, 2))
    splits = tf.range(1, size + 1)  # rank r gets r + 1 rows from each
    rows = size * (size + 1) // 2
    found, received = run(lambda x, s: hvd.alltoall(x, s))(ramp(rank, (rows, 2)), splits)
    start = rank * (rank + 1) // 2
    same(found, everyone(size, shape=(rows, 2))[:, start:start + rank + 1].reshape(-1, 2))
    assert received.dtype == splits.dtype and received.numpy().tolist() == [rank + 1] * size


def test_indexed_slices(run, rank, size):
    slices = tf.IndexedSlices(tf.fill([2, 3], rank + 1.0), tf.constant([rank, size]),
                              tf.constant([size + 1, 3]))
    wanted = np.zeros((size + 1, 3))
    for r in range(size):
        wanted[[r, size]] += r + 1
    same(tf.convert_to_tensor(run(lambda s: hvd.allreduce(s, op=hvd.Sum))(slices)), wanted)
    same(tf.convert_to_tensor(run(lambda s: hvd.allreduce(s))(slices)), wanted / size)
    with pytest.raises(NotImplementedError):
        hvd.allreduce(slices, op=hvd.Max)


def test_places_are_asked_when_the_graph_runs(run, rank, size):
    found = run(lambda: (hvd.size_op(), hvd.rank_op(), hvd.local_size_op(), hvd.local_rank_op(),
                         hvd.process_set_included_op()))()
    assert [int(each) for each in found] == [size, rank, hvd.local_size(), hvd.local_rank(), 1]


def test_a_process_set(run, rank, size, even_set):
    if rank % 2:
        with pytest.raises(ValueError):
            hvd.allreduce(ramp(rank), process_set=even_set)
        assert int(hvd.process_set_included_op(even_set.process_set_id)) == 0
        return
    members = range(0, size, 2)
    found = run(lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=even_set))(ramp(rank))
    same(found, sum(ramp(r).numpy() for r in members))
    assert int(hvd.size_op(even_set.process_set_id)) == len(members)
    found = run(lambda x: hvd.allgather(x, process_set=even_set))(ramp(rank))
    same(found, np.concatenate([ramp(r) for r in members]))


def test_gradients(run, rank, size):
    weight = ramp(2 * rank + 1)
    weights = np.stack([ramp(2 * r + 1).numpy() for r in range(size)])

    def gradient(function, x=None):
        x = ramp(rank) if x is None else x

        def compute(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                total = tf.reduce_sum(function(x))
            return tape.gradient(total, x)
        return run(compute)(x)

    same(gradient(lambda x: weight * hvd.allreduce(x)), weights.mean(0))
    same(gradient(lambda x: weight * hvd.allreduce(x, op=hvd.Sum)), weights.sum(0))
    same(gradient(lambda x: weight * hvd.grouped_allreduce([x, 2 * x], op=hvd.Sum)[1]),
         2 * weights.sum(0))
    root = gradient(lambda x: weight * hvd.broadcast(x, 0))
    same(root, weights.mean(0) if rank == 0 else np.zeros((4, 3)))
    own = np.concatenate([weights] * size, 1).mean(0)[4 * rank:4 * rank + 4]
    same(gradient(lambda x: tf.tile(weight, [size, 1]) * hvd.allgather(x)), own)
    split = ramp(rank, (2 * size, 2))
    same(gradient(lambda x: (rank + 1.0) * hvd.reducescatter(x, op=hvd.Sum), split),
         np.repeat(np.arange(1.0, size + 1) * size, 2)[:, None] * np.ones((1, 2)))
    same(gradient(lambda x: (rank + 1.0) * hvd.alltoall(x), split),
         np.repeat(np.arange(1.0, size + 1), 2)[:, None] * np.ones((1, 2)))
    with pytest.raises(Exception, match="Average, Sum and Adasum only"):
        gradient(lambda x: hvd.allreduce(x, op=hvd.Max))


def test_what_makes_no_sense_is_refused_in_hvds_words(rank, size):
    x = ramp(rank)
    for wrong, words in ((lambda: hvd.broadcast(x, size), "is not one of the"),
                         (lambda: hvd.broadcast(x, 2 ** 40), "too large a number"),
                         (lambda: hvd.allgather(tf.constant(1.0)), "is a scalar"),
                         (lambda: hvd.alltoall(x, [[1] * size]), "one dimension"),
                         (lambda: hvd.alltoall(x, [1] * (size + 1)), "one for each"),
                         (lambda: hvd.alltoall(x, [1.5] * size), "integers"),
                         (lambda: hvd.allreduce(x, prescale_factor=float("nan")), "finite")):
        with pytest.raises(hvd.InvalidError, match=words) as raised:
            wrong()
        assert "Op:Hvd" not in str(raised.value)
    assert hvd.grouped_allreduce([]) == []
