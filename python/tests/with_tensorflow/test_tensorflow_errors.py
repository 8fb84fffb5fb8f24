# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: errors are of the classes that TensorFlow's and Horovod's programs catch."""
import pickle

import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import hvd.tensorflow as hvd  # noqa: E402


def eager(function):
    return function()


def graph(function):
    return tf.function(function)()


def session(function):
    with tf.Graph().as_default(), tf.compat.v1.Session() as running:
        return running.run(function())


@pytest.fixture(params=[eager, graph, session])
def run(request):
    return request.param


def test_ranks_that_differ(run, rank, several):
    for differ in (lambda: hvd.allreduce(tf.ones(3 + (rank == 1)), name="differ"),
                   lambda: hvd.allreduce(tf.ones(3, "int32" if rank else "float32"), name="differ"),
                   lambda: hvd.allgather(tf.ones([2, 3 + rank]), name="differ"),
                   lambda: hvd.broadcast(tf.ones(3), 0 if rank else 1, name="differ")):
        with pytest.raises(tf.errors.FailedPreconditionError) as raised:
            run(differ)
        assert isinstance(hvd.error_of(raised.value), hvd.MismatchError)
        assert run is not eager or isinstance(raised.value, hvd.HorovodInternalError)


def test_what_makes_no_sense_by_itself(run, size):
    for wrong in (lambda: hvd.alltoall(tf.ones([size + 1]), [1] * (size + 1)),
                  lambda: hvd.broadcast(tf.ones(3), size),
                  lambda: hvd.allgather(tf.constant(1.0))):
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            run(wrong)
        assert isinstance(hvd.error_of(raised.value), hvd.InvalidError)


def test_one_that_is_no_member(run, rank, even_set):
    if rank % 2 == 0:
        return
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(lambda: hvd.allreduce(tf.ones(3), process_set=even_set))


@pytest.mark.parametrize("in_graph", [False, True])
def test_a_process_set_that_is_not_there(in_graph):
    """Also in a graph where the call is made: a ValueError, as Horovod's."""
    unknown = hvd.ProcessSet([0])
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(tf.ones(3), process_set=unknown)
    unknown.process_set_id = 1000
    with pytest.raises(ValueError, match="process set 1000 does not exist"):
        if in_graph:
            with tf.Graph().as_default():
                hvd.allreduce(tf.ones(3), process_set=unknown)
        else:
            hvd.allreduce(tf.ones(3), process_set=unknown)


def test_eager_ones_are_both(size):
    with pytest.raises(tf.errors.InvalidArgumentError, match="integers"):  # which Python refuses
        hvd.alltoall(tf.ones(3), [1.5] * size)
    with pytest.raises(hvd.InvalidError) as raised:
        hvd.broadcast(tf.ones(3), size)
    error = raised.value
    assert isinstance(error, (ValueError, RuntimeError)) and isinstance(error, tf.errors.OpError)
    assert error.message == str(error) and error.error_code == tf.errors.INVALID_ARGUMENT
    kept = pickle.loads(pickle.dumps(error))
    assert type(kept) is hvd.InvalidError and str(kept) == str(error)
