# SPDX-License-Identifier: Apache-2.0
"""Modules that Horovod's TensorFlow programs and tests import besides the face itself."""
import threading

import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
import numpy as np  # noqa: E402

import hvd.compat  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def installed():
    hvd.compat.install()


def test_names(rank, size):
    import horovod.tensorflow as ht
    from horovod.tensorflow.util import _cache, _executing_eagerly, refs_to_vars, vars_to_refs

    assert ht._executing_eagerly() and ht.util._executing_eagerly is _executing_eagerly
    with tf.Graph().as_default():
        assert not ht._executing_eagerly()
    basics = ht.mpi_ops._basics
    assert basics._get_process_set_ids_and_ranks()[0] == list(range(size))
    assert basics._process_set_rank(0) == rank and basics._process_set_size(0) == size
    with pytest.raises(ValueError, match="does not exist"):
        basics._process_set_size(99)
    some = [tf.Variable(1.0), [tf.Variable(2.0)]]
    hash(vars_to_refs(some))
    assert refs_to_vars(vars_to_refs(some)) == some
    calls = []
    remembered = _cache(lambda *given: calls.append(given) or len(calls))  # type: ignore[func-returns-value]
    assert [remembered(1), remembered(1), remembered(2)] == [1, 1, 2]
    with tf.Graph().as_default():
        assert remembered(1) == 3


def compute(helper, variables, numbers):
    return helper.compute_gradients([number * tf.ones_like(each) for number, each in
                                     zip(numbers, variables, strict=True)], variables)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_gradients_are_added_up(rank, size, inside, average):
    import horovod.tensorflow as ht
    from horovod.tensorflow.gradient_aggregation_eager import LocalGradientAggregationHelperEager

    def all_ranks(gradients, variables):
        assert len(gradients) == len(variables) == 1
        return [ht.allreduce(each, op=ht.Sum, name="added up") for each in gradients]

    helper = LocalGradientAggregationHelperEager(3, all_ranks, True, average)
    optimizer = tf.keras.optimizers.SGD(1.0)
    shared, own = tf.Variable([0.0, 0.0]), tf.Variable(0.0)
    optimizer.build([shared, own])
    helper.register_local_var(own)

    def a_pass(number):
        found = compute(helper, [shared, own], [number, number])

        def step():
            shared.assign_sub(found[0])
            own.assign_sub(found[1])

        helper.apply_gradients(step, optimizer, list(zip(found, [shared, own], strict=True)))

    call = tf.function(a_pass) if inside else a_pass
    for number in range(1, 8):
        call(tf.constant(float(number * (rank + 1))))
        assert helper.counter.numpy() == number % 3
    total = sum(range(1, 7)) / (3 if average else 1)
    np.testing.assert_allclose(shared.numpy(), -total * size * (size + 1) / 2)
    np.testing.assert_allclose(own.numpy(), -total * (rank + 1) / size)
    assert int(optimizer.iterations) == 5  # the steps are not this optimizer's own


def test_gradients_are_added_up_in_sessions(rank, size):
    import horovod.tensorflow as ht
    from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable("v", initializer=tf.zeros(2), use_resource=True)
        steps = tf.compat.v1.train.get_or_create_global_step()
        helper = LocalGradientAggregationHelper(
            2, lambda found, _: [ht.allreduce(each, op=ht.Sum) for each in found], False, False)
        found = compute(helper, [variable], [tf.constant(rank + 1.0)])
        apply = helper.apply_gradients(
            lambda: tf.group(variable.assign_sub(found[0], read_value=False),
                             steps.assign_add(1, read_value=False)),
            None, list(zip(found, [variable], strict=True)), global_step=steps)
        session.run([tf.compat.v1.global_variables_initializer(),
                     tf.compat.v1.local_variables_initializer()])
        for number in range(1, 6):
            session.run(apply)
            assert session.run(steps) == number
        np.testing.assert_allclose(session.run(variable), [-4 * size * (size + 1) / 2] * 2)


def test_sparse_gradients_are_added_up_only_as_dense_ones():
    from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper

    with pytest.raises(ValueError, match="backward_passes_per_step"):
        LocalGradientAggregationHelper(0, lambda found, _: found, False, False)
    rows = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([3, 2]))
    variable = tf.Variable(tf.zeros([3, 2]))
    helper = LocalGradientAggregationHelper(2, lambda found, _: found, False, False)
    with pytest.raises(ValueError, match="IndexedSlices"):
        helper.compute_gradients([rows], [variable])
    helper = LocalGradientAggregationHelper(2, lambda found, _: found, True, False)
    helper.compute_gradients([rows], [variable])
    np.testing.assert_array_equal(helper.compute_gradients([rows], [variable])[0],
                                  [[0, 0], [2, 2], [0, 0]])


@pytest.mark.parametrize("side", ["compute", "training"])
@pytest.mark.parametrize("dispatchers", [1, 2])
def test_the_data_service(rank, size, several, tmp_path, side, dispatchers):
    """One job is both here: it computes in threads."""
    from horovod.tensorflow.data import compute_service, compute_worker

    if size % dispatchers:
        pytest.skip("ranks must share the dispatchers evenly")
    if hvd.local_size() < size:
        pytest.skip("the configuration travels by a file that all ranks see")
    path = hvd.broadcast_object(str(tmp_path / "config"))
    failed = []

    def work():
        try:
            compute_worker.main(dispatchers, side, path, 60)
        except Exception as error:
            failed.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    config = compute_service.TfDataServiceConfig.read(path, wait_for_file_creation=True)
    assert config == compute_service.TfDataServiceConfig.from_dict(config.to_dict())
    numbers = tf.data.Dataset.range(100).batch(10)
    if side == "compute":
        mine = np.concatenate(list(numbers.send_to_data_service(
            config, rank, size, processing_mode="distributed_epoch").as_numpy_iterator()))
    else:
        with pytest.raises(RuntimeError, match="tf_data_service"):
            numbers.send_to_data_service(config, rank)
        with compute_service.tf_data_service(config, rank) as address:
            mine = np.concatenate(list(numbers.apply(tf.data.experimental.service.distribute(
                "distributed_epoch", address)).as_numpy_iterator()))
            hvd.barrier()  # a dispatcher serves the others as well
    assert sorted(mine) == list(range(100))
    hvd.barrier()
    if rank == 0:
        config.compute_client().shutdown()
    worker.join()
    assert not failed
