# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: tapes, optimizers, aggregation, sessions. Training on several ranks is that of
one with all data."""
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

import hvd.tensorflow as hvd  # noqa: E402

v1 = tf.compat.v1


@pytest.fixture(params=[lambda function: function, tf.function], ids=["eager", "graph"])
def run(request):
    return request.param


def dense(gradients):
    return [None if one is None else tf.convert_to_tensor(one).numpy() for one in gradients]


def test_a_tape(run, rank, size):
    w, b, unused, table = (tf.Variable([1.0, 2.0]), tf.Variable(0.5), tf.Variable(1.0),
                           tf.Variable(tf.ones([size + 1, 2])))

    def gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * (rank + 1.0)) + b * rank + tf.reduce_sum(
                tf.nn.embedding_lookup(table, [rank, size]))
        tape = hvd.DistributedGradientTape(tape)
        return tape.gradient(loss, [w, b, unused, table])

    found = run(gradients)()
    assert isinstance(found[3], tf.IndexedSlices)
    found = dense(found)
    mean = (size - 1) / 2
    assert np.allclose(found[0], mean + 1) and np.allclose(found[1], mean) and found[2] is None
    rows = np.full((size + 1, 2), 1 / size)
    rows[size] = 1
    assert np.allclose(found[3], rows)


@pytest.mark.parametrize("how", [
    {"sparse_as_dense": True}, {"gradient_predivide_factor": 2.0}, {"groups": 2},
    {"compression": hvd.Compression.bf16}, {"op": hvd.Sum}, {"groups": "listed"}],
    ids=["dense", "predivide", "groups", "bf16", "sum", "listed"])
def test_how_a_tape_reduces(run, how, rank, size):
    variables = [tf.Variable([1.0, 2.0]), tf.Variable([[3.0]]), tf.Variable(tf.ones([4, 1]))]
    how = dict(how)
    if how.get("groups") == "listed":
        how["groups"] = [variables[:2]]

    def gradients():
        with tf.GradientTape(persistent=True) as tape:
            loss = sum(tf.reduce_sum(one) * (rank + 1.0) for one in variables[:2])
            loss += tf.reduce_sum(tf.gather(variables[2], [1]))
        return hvd.DistributedGradientTape(tape, **how).gradient(
            loss, {"a": variables[0], "rest": variables[1:]})

    found = run(gradients)()
    assert isinstance(found["rest"][1], tf.Tensor) == bool(how.get("sparse_as_dense"))
    times = size if how.get("op") == hvd.Sum else 1
    assert np.allclose(found["a"], times * (size + 1) / 2)
    assert np.allclose(found["rest"][0], times * (size + 1) / 2)
    assert np.allclose(tf.convert_to_tensor(found["rest"][1])[1], times)


def test_sources_that_stay_local(run, rank, size):
    layer = tf.Module()
    layer.trainable_weights = [tf.Variable(2.0)]
    shared, own = tf.Variable(1.0), layer.trainable_weights[0]

    def gradients(scale):
        with tf.GradientTape() as tape:
            loss = (shared + own) * (rank + 1.0)
        tape = hvd.PartialDistributedGradientTape(tape, local_layers=layer,
                                                  scale_local_gradients=scale)
        local, everyones = tape.get_local_and_global_gradients(loss, [shared, own])
        return local[0][1], everyones[0][1]

    for scale in (True, False):
        local, everyones = run(lambda scale=scale: gradients(scale))()
        assert np.allclose(everyones, (size + 1) / 2)
        assert np.allclose(local, (rank + 1) / (size if scale else 1))


def test_two_tapes_in_one_step(rank, size):
    first, second = tf.Variable(tf.ones([3])), tf.Variable(tf.ones([5]))

    @tf.function
    def step():
        with tf.GradientTape() as one, tf.GradientTape() as two:
            losses = [tf.reduce_sum(first) * rank, tf.reduce_sum(second) * 2.0 * rank]
        tapes = [hvd.DistributedGradientTape(one), hvd.DistributedGradientTape(two)]
        return tapes[0].gradient(losses[0], first), tapes[1].gradient(losses[1], second)

    found = step()
    assert np.allclose(found[0], (size - 1) / 2) and np.allclose(found[1], size - 1)


def problem(size, rows=8):
    random = np.random.default_rng(5)
    inputs = random.normal(size=(size * rows, 4)).astype("float32")
    return inputs, random.normal(size=(size * rows, 1)).astype("float32")


def test_training_is_that_of_one_rank_with_all_data(run, rank, size):
    inputs, targets = problem(size)

    def train(inputs, targets, tape_of):
        w, b = tf.Variable(tf.zeros([4, 1])), tf.Variable(tf.zeros([1]))

        @run
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(inputs @ w + b - targets))
            return tape_of(tape).gradient(loss, [w, b])

        for _ in range(10):
            for variable, gradient in zip((w, b), step(), strict=True):
                variable.assign_sub(0.1 * gradient)
        return w.numpy()

    mine = slice(8 * rank, 8 * rank + 8)
    alone = train(inputs, targets, lambda tape: tape)
    together = train(inputs[mine], targets[mine], hvd.DistributedGradientTape)
    assert np.allclose(alone, together, atol=1e-5)


def in_sessions(optimizer, inputs, targets, steps=8, start=0.0):
    """The weights after so many steps, which begin at `start` on rank 0."""
    with tf.Graph().as_default():
        w = v1.get_variable("w", initializer=tf.fill([4, 1], start), use_resource=True)
        loss = tf.reduce_mean(tf.square(inputs @ w - targets))
        count = v1.train.get_or_create_global_step()
        train = optimizer().minimize(loss, global_step=count)
        hooks = [hvd.BroadcastGlobalVariablesHook(0)]
        with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
            for _ in range(steps):
                session.run(train)
            return session.run([w, count])


@pytest.mark.parametrize("kind", ["MomentumOptimizer", "AdamOptimizer"])
def test_an_optimizer_with_sessions(kind, rank, size):
    inputs, targets = problem(size)
    mine = slice(8 * rank, 8 * rank + 8)

    def plain():
        options = {"momentum": 0.9} if kind == "MomentumOptimizer" else {}
        return getattr(v1.train, kind)(0.05, **options)

    alone, steps = in_sessions(plain, inputs, targets)
    together, _ = in_sessions(lambda: hvd.DistributedOptimizer(plain()), inputs[mine],
                              targets[mine], start=float(rank))
    assert np.allclose(alone, together, atol=1e-5) and steps == 8
    assert isinstance(hvd.DistributedOptimizer(plain()), getattr(v1.train, kind))


@pytest.mark.parametrize("average", [False, True])
def test_several_passes_are_one_step(average, rank, size):
    inputs, targets = problem(size)
    mine = slice(8 * rank, 8 * rank + 8)

    def plain():
        return v1.train.MomentumOptimizer(0.02, 0.9)

    def aggregating():
        return hvd.DistributedOptimizer(plain(), backward_passes_per_step=2,
                                        average_aggregated_gradients=average)

    def doubled():
        optimizer = plain()
        inner = optimizer.compute_gradients
        optimizer.compute_gradients = lambda *a, **k: [
            (g if average else 2 * g, v) for g, v in inner(*a, **k)]
        return optimizer

    alone, _ = in_sessions(doubled, inputs, targets, steps=4)
    together, steps = in_sessions(aggregating, inputs[mine], targets[mine], steps=9)
    assert np.allclose(alone, together, atol=1e-5)  # the ninth pass waits for a tenth
    assert steps == 9  # each pass counts, as in Horovod


def test_what_horovods_programs_find_within(rank):
    plain = v1.train.GradientDescentOptimizer(0.1)
    optimizer = hvd.DistributedOptimizer(plain)
    assert optimizer._optimizer._learning_rate == plain._learning_rate


def test_several_passes_without_sessions(rank, size):
    w = tf.Variable([1.0, 2.0])
    optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1),
                                         backward_passes_per_step=2)
    seen = []
    for _ in range(4):
        pairs = optimizer.compute_gradients(lambda: tf.reduce_sum(w) * (rank + 1.0), [w])
        optimizer.apply_gradients(pairs)
        seen.append(float(w[0]))
    step = 0.2 * (size + 1) / 2
    assert np.allclose(seen, [1, 1 - step, 1 - step, 1 - 2 * step])


def test_adasum_combines_steps(rank, size):
    def optimizer():
        return hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1), op=hvd.Adasum)

    inputs, targets = problem(1)
    alone, _ = in_sessions(lambda: v1.train.GradientDescentOptimizer(0.1), inputs, targets)
    together, _ = in_sessions(optimizer, inputs, targets)  # all ranks' steps are one step
    assert np.allclose(alone, together, atol=1e-5)


def test_what_makes_no_sense_is_refused(rank):
    plain = v1.train.GradientDescentOptimizer(0.1)
    for words in ({"gradient_predivide_factor": 2.0, "op": hvd.Sum}, {"groups": -1},
                  {"backward_passes_per_step": 0}, {"op": hvd.Adasum, "groups": 2},
                  {"groups": [tf.Variable(1.0)]}):
        with pytest.raises(ValueError):
            hvd.DistributedOptimizer(plain, **words)
    with pytest.raises(ValueError, match="doesn't inherit"):
        hvd.DistributedOptimizer(object())
    with pytest.raises(RuntimeError, match="eager"):
        hvd.broadcast_global_variables(0)


def test_variables_and_objects(run, rank, size):
    variables = [tf.Variable([rank * 1.0, 2.0]), tf.Variable(rank), tf.Variable([rank == 0])]
    run(lambda: hvd.broadcast_variables(variables, size - 1) and None)()
    assert variables[0].numpy().tolist() == [size - 1.0, 2.0]
    assert variables[1].numpy() == size - 1 and variables[2].numpy() == (size == 1)
    assert hvd.broadcast_object({"lr": rank}, size - 1) == {"lr": size - 1}
    assert hvd.broadcast_object_fn(0)([rank]) == [0]
    assert hvd.allgather_object("x" * rank) == ["x" * r for r in range(size)]


def test_gradients_that_only_members_reduce(rank, size, even_set):
    w = tf.Variable([1.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w) * rank
    found = hvd.DistributedGradientTape(tape, process_set=even_set).gradient(loss, [w])
    members = range(0, size, 2)
    assert np.allclose(found[0], sum(members) / len(members) if rank % 2 == 0 else rank)
