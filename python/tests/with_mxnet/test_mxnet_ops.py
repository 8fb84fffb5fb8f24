# SPDX-License-Identifier: Apache-2.0
"""hvd.mxnet's collectives. Each result is known from the ranks' inputs."""
import contextlib
import pickle

import numpy as np
import pytest

mx = pytest.importorskip("mxnet", reason="mxnet is not installed")

import hvd.mxnet as hvd  # noqa: E402

TYPES = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64"]
nd = mx.nd


def ramp(rank, shape=(4, 3), dtype="float32"):
    return (np.arange(np.prod(shape)).reshape(shape) + 10 * rank).astype(dtype)


def array(rank, shape=(4, 3), dtype="float32"):
    return nd.array(ramp(rank, shape), dtype=dtype)


def everyone(size, **how):
    return np.stack([ramp(rank, **how) for rank in range(size)])


def same(found, wanted):
    assert found.shape == np.shape(wanted)
    assert np.allclose(found.asnumpy().astype("float64"), np.asarray(wanted, dtype="float64"))


# ---- each operation ----

@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype, rank, size):
    found = hvd.allreduce(array(rank, (5,), dtype), op=hvd.Sum, name=dtype)
    assert found.dtype == np.dtype(dtype)
    same(found, everyone(size, shape=(5,), dtype=dtype).sum(0, dtype=dtype))
    same(hvd.allgather(array(rank, (2, 2), dtype)),
         everyone(size, shape=(2, 2), dtype=dtype).reshape(-1, 2))
    same(hvd.broadcast(array(rank, (3,), dtype), size - 1), ramp(size - 1, (3,), dtype))
    same(hvd.alltoall(array(rank, (size,), dtype)), [10 * r + rank for r in range(size)])
    rows = everyone(size, shape=(size, 2), dtype=dtype).sum(0, dtype=dtype)
    same(hvd.reducescatter(array(rank, (size, 2), dtype), op=hvd.Sum), rows[rank:rank + 1])


def test_bools(rank, size):
    found = hvd.allreduce(nd.array([rank == 0, False], dtype="bool"), op=hvd.Sum)
    assert found.dtype == np.bool_ and found.asnumpy().tolist() == [True, False]


def test_bfloat16(rank, size):
    bfloat16 = np.dtype([("bfloat16", np.uint16)])  # MXNet's word for it
    mine = nd.amp_cast(nd.array([rank + 1, 256.0]), dtype=bfloat16)
    found = nd.amp_cast(hvd.allreduce(mine, op=hvd.Sum), dtype="float32")
    same(found, [size * (size + 1) / 2, 256.0 * size])


def test_operations_and_scales(rank, size):
    all_of = everyone(size)
    same(hvd.allreduce(array(rank)), all_of.mean(0))
    same(hvd.allreduce(array(rank), op=hvd.Max), all_of.max(0))
    same(hvd.allreduce(array(rank), op=hvd.Min), all_of.min(0))
    same(hvd.allreduce(nd.full((3,), 2), op=hvd.Product), [2.0 ** size] * 3)
    same(hvd.allreduce(nd.ones((4,)), op=hvd.Adasum), [1.0] * 4)  # parallel ones are averaged
    same(hvd.allreduce(array(rank), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4),
         2 * all_of.sum(0))
    same(hvd.reducescatter(nd.ones((size,)), prescale_factor=3), [3.0])


def test_horovods_older_average(rank, size):
    with pytest.warns(DeprecationWarning):
        same(hvd.allreduce(array(rank), average=False), everyone(size).sum(0))
    with pytest.warns(DeprecationWarning):
        same(hvd.allreduce(array(rank), True), everyone(size).mean(0))
    with pytest.raises(ValueError, match="supersedes"):
        hvd.allreduce(array(rank), average=True, op=hvd.Sum)


def test_in_place(rank, size):
    mine = array(rank)
    assert hvd.allreduce_(mine, op=hvd.Sum, name="mine", priority=3) is mine
    same(mine, everyone(size).sum(0))
    mine = array(rank)
    assert hvd.broadcast_(mine, size - 1) is mine
    same(mine, ramp(size - 1))
    pair = [array(rank), array(rank, (2,), "int32")]
    assert hvd.grouped_allreduce_(pair, op=hvd.Sum) is pair
    same(pair[0], everyone(size).sum(0))
    same(pair[1], everyone(size, shape=(2,)).sum(0))


def test_groups(rank, size):
    mine = [array(rank), array(rank, (2,), "int32"), array(rank, (1, 5), "float64")]
    shapes = [(4, 3), (2,), (1, 5)]
    for found, shape in zip(hvd.grouped_allreduce(mine, op=hvd.Sum, name="group"), shapes,
                            strict=True):
        same(found, everyone(size, shape=shape).sum(0))
    for found, shape in zip(hvd.grouped_allgather(mine), shapes, strict=True):
        same(found, np.concatenate(everyone(size, shape=shape)))
    scattered = hvd.grouped_reducescatter([nd.ones((size, 2)), nd.ones((size,))], op=hvd.Sum)
    assert [each.asnumpy().tolist() for each in scattered] == [[[size, size]], [size]]
    for grouped in (hvd.grouped_allreduce, hvd.grouped_allreduce_, hvd.grouped_allgather,
                    hvd.grouped_reducescatter):
        assert grouped([]) == []
    same(hvd.grouped_allreduce(mine[:1], op=hvd.Sum)[0], everyone(size).sum(0))


def test_uneven_rows(rank, size):
    gathered = hvd.allgather(nd.full((rank, 2), rank) if rank else nd.array(
        np.zeros((1, 2))), name="rows")
    wanted = [0] + [r for r in range(1, size) for _ in range(r)]
    assert gathered.asnumpy()[:, 0].tolist() == wanted
    scattered = hvd.reducescatter(nd.ones((size + 1, 2)), op=hvd.Sum)
    assert scattered.shape == (2 if rank == 0 else 1, 2)
    mine = nd.full((sum(range(1, size + 1)),), rank)
    found, received = hvd.alltoall(mine, list(range(1, size + 1)))
    assert found.asnumpy().tolist() == [r for r in range(size) for _ in range(rank + 1)]
    assert received.dtype == np.int32 and received.asnumpy().tolist() == [rank + 1] * size
    again, _ = hvd.alltoall(mine, nd.arange(1, size + 1, dtype="int32"))
    assert again.asnumpy().tolist() == found.asnumpy().tolist()


def test_numpys_arrays(rank, size):
    with mx.util.np_shape(True), mx.util.np_array(True):
        mine = mx.np.array(ramp(rank))
        found = hvd.allreduce(mine, op=hvd.Sum)
        assert isinstance(found, mx.np.ndarray)
        same(found, everyone(size).sum(0))
        assert isinstance(hvd.allgather(mine), mx.np.ndarray)
        assert isinstance(hvd.alltoall(mx.np.ones(size), [1] * size)[1], mx.np.ndarray)
        scalar = hvd.allreduce(mx.np.array(rank + 1.0), op=hvd.Sum)
        assert scalar.shape == () and float(scalar) == size * (size + 1) / 2
        empty = hvd.allreduce(mx.np.zeros((0, 3)))
        assert empty.shape == (0, 3)
        none = hvd.allgather(mx.np.zeros((0 if rank else 2, 3)))
        assert none.shape == (2, 3)
        assert hvd.allgather(mx.np.zeros((0, 3))).shape == (0, 3)
        assert hvd.alltoall(mx.np.zeros((0, 3)), [0] * size)[0].shape == (0, 3)
        chosen = mx.np.array([1.0, 2.0, 3.0])[mx.np.array([True, False, True], dtype=bool)]
        same(hvd.allreduce(chosen, op=hvd.Sum), [size, 3.0 * size])


def test_objects(rank, size):
    assert hvd.broadcast_object({"rank": rank}, size - 1) == {"rank": size - 1}
    assert hvd.allgather_object("x" * rank) == ["x" * r for r in range(size)]


# ---- views, layouts, lives ----

def test_views_of_one_array(rank, size):
    whole = nd.zeros((4, 2)) + rank
    hvd.allreduce_(whole[1:3], op=hvd.Sum)
    total = sum(range(size))
    assert whole.asnumpy()[:, 0].tolist() == [rank, total, total, rank]
    hvd.grouped_allreduce_([whole[0:1], whole[3:4]], op=hvd.Sum)  # one variable of the engine's
    assert whole.asnumpy()[:, 0].tolist() == [total] * 4
    same(hvd.allreduce(whole.reshape((2, 4))[1], op=hvd.Max), [total] * 4)
    twice = hvd.grouped_allreduce([whole, whole], op=hvd.Max)
    same(twice[0], twice[1].asnumpy())


def test_overlapping_views_are_refused(rank):
    whole = nd.ones((4,))
    hvd.grouped_allreduce_([whole[0:3], whole[1:4]])
    with pytest.raises(hvd.InvalidError, match="overlap"):
        whole.wait_to_read()
    same(hvd.allreduce(whole), [1.0] * 4)


def convolved(rank):
    """Returns an array that oneDNN leaves in a layout of its own."""
    made = nd.Convolution(nd.ones((1, 16, 8, 8)) * (rank + 1), nd.ones((16, 16, 3, 3)),
                          kernel=(3, 3), num_filter=16, no_bias=True)
    made.wait_to_read()
    return made


def test_layouts_of_onednn(rank, size):
    wanted = np.full((1, 16, 6, 6), 144.0)
    same(hvd.allreduce(convolved(rank), op=hvd.Sum), wanted * size * (size + 1) / 2)
    mine = convolved(rank)
    hvd.broadcast_(mine, size - 1)
    same(mine * 1, wanted * size)
    same(hvd.allgather(convolved(rank))[rank], wanted[0] * (rank + 1))


def test_results_are_where_the_arrays_are(rank, size):
    """Programs take mx.cpu(local_rank) for MXNet's device of a rank."""
    mine = nd.ones((2,), ctx=mx.cpu(rank))
    for found in (hvd.allreduce(mine), hvd.allgather(mine)[:2], hvd.broadcast(mine, 0),
                  hvd.reducescatter(nd.ones((2 * size,), ctx=mx.cpu(rank)))):
        assert found.context == mine.context
        same(found + mine, [2.0, 2.0])
    found, received = hvd.alltoall(nd.ones((size,), ctx=mx.cpu(rank)), [1] * size)
    assert found.context == received.context == mine.context


def test_an_array_that_is_dropped_under_way(rank, size):
    for _ in range(20):
        found = hvd.allreduce(nd.ones((1000,)) * (rank + 1), op=hvd.Sum)
        hvd.allreduce(nd.ones((1000,)))  # nobody holds its result
    same(found, [size * (size + 1) / 2] * 1000)
    nd.waitall()


# ---- order ----

def test_what_depends_on_a_call_waits_for_it(rank, size):
    x = nd.ones((50,))
    for _ in range(100):
        x = hvd.allreduce(x * 2) - 1  # stays 1
        x += 0
        hvd.allreduce_(x)
    same(x, [1.0] * 50)
    slow = nd.ones((300, 300)) * (1 if rank else 2)
    for _ in range(3):
        slow = nd.dot(slow, nd.ones((300, 300))) / 300
    same(hvd.allreduce(slow, op=hvd.Max)[0, :2], [2.0, 2.0] if size > 1 or rank == 0 else [1, 1])


def test_opposite_orders_of_64(rank, size):
    for round_ in range(3):
        made = {}
        for i in range(64) if rank % 2 == 0 else reversed(range(64)):
            made[i] = hvd.allreduce(nd.full((i + 1,), i + rank), op=hvd.Sum, name=f"{round_}.{i}")
        for i, found in made.items():
            same(found, [size * i + sum(range(size))] * (i + 1))


def test_calls_of_one_name_keep_the_programs_order(rank, size):
    """Although the engine could begin the later ones first."""
    busy = nd.ones((400, 400))
    found = []
    for i in range(20):
        if (i + rank) % 3 == 0:  # ranks are late with different ones
            for _ in range(2):
                busy = nd.dot(busy, nd.ones((400, 400))) / 400
            mine = busy[0, :4] * 0 + i
        else:
            mine = nd.full((4,), i)
        found.append(hvd.allreduce(mine, name="one name"))
        found.append(hvd.allreduce(mine))  # and without a name
    for i, each in enumerate(found):
        same(each, [i // 2] * 4)


def test_unnamed_calls_beyond_the_names_there_are(rank, size):
    found = [hvd.allreduce(nd.full((1,), i)) for i in range(600)]
    assert [float(each.asscalar()) for each in found] == list(range(600))


def test_threads(rank, size):
    import threading

    failed = []

    def work(number):
        try:
            for i in range(20):
                same(hvd.allreduce(nd.full((3,), number + i), name=f"thread.{number}"),
                     [number + i] * 3)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed, failed


# ---- sets ----

def test_process_sets(rank, size, even_set):
    others = hvd.add_process_set(range(1, size, 2))
    mine = even_set if rank % 2 == 0 else others
    inside = range(rank % 2, size, 2)
    for _ in range(3):
        same(hvd.allreduce(array(rank), op=hvd.Sum, process_set=mine),
             sum(ramp(r) for r in inside))
        same(hvd.allreduce(array(rank), op=hvd.Sum), everyone(size).sum(0))
    same(hvd.allgather(nd.full((1,), rank), process_set=mine), list(inside))
    same(hvd.reducescatter(nd.ones((len(inside),)), process_set=mine), [1.0])
    found, received = hvd.alltoall(nd.full((len(inside),), rank), [1] * len(inside),
                                   process_set=mine)
    assert found.asnumpy().tolist() == list(inside)
    assert received.asnumpy().tolist() == [1] * len(inside)
    same(hvd.broadcast(array(rank), inside[-1], process_set=mine), ramp(inside[-1]))
    foreign = hvd.allreduce(array(rank), process_set=others if rank % 2 == 0 else even_set)
    with pytest.raises(hvd.InvalidError):
        foreign.wait_to_read()
    nd.waitall()
    assert hvd.remove_process_set(others)
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(array(rank), process_set=others)


# ---- what goes wrong ----

def test_a_mismatch_names_both_in_the_same_words(rank, size, several):
    texts = []
    for _ in range(3):
        bad = hvd.allreduce(nd.ones((3 + (rank == 1),)), name="bad")
        behind = bad + 1
        with pytest.raises(mx.base.MXNetError) as caught:
            behind.asnumpy()
        error = caught.value
        assert isinstance(error, hvd.MismatchError) and hvd.error_of(error) is error
        assert "rank 1" in str(error) and "allreduce.bad" in str(error)
        assert str(error).count("asked for allreduce") == 1 and str(error).count(" rank ") == 2
        assert type(pickle.loads(pickle.dumps(error))).__mro__[1] is hvd.HorovodInternalError
        texts.append(str(error))
        same(hvd.allreduce(nd.ones((3,)), name="bad"), [1.0] * 3)
    assert hvd.allgather_object(texts) == [texts] * size
    with pytest.raises(hvd.MismatchError, match="allgather"):
        hvd.allgather(nd.ones((2, 3 + (rank == 1))))
    mine = nd.ones((2,), dtype="float32" if rank else "int32")
    hvd.broadcast_(mine, 0)
    with pytest.raises(hvd.MismatchError, match="type"):
        mine.wait_to_read()
    same(hvd.broadcast_(mine.astype("float32") * 0 + rank, 0), [0.0, 0.0])
    nd.waitall()


def test_what_makes_no_sense_by_itself(rank, size):
    with pytest.raises(TypeError, match="NDArrays"):
        hvd.allreduce(np.ones(3))
    with pytest.raises(hvd.Error, match="dense"):
        hvd.allreduce(nd.ones((3, 2)).tostype("row_sparse"))
    with pytest.raises(ValueError, match="whole numbers"):
        hvd.alltoall(nd.ones((size,)), [0.5] * size)
    with pytest.raises(ValueError, match="integers, not float32"):
        hvd.alltoall(nd.ones((size,)), nd.ones((size,)))
    scalar = mx.nd.array(1.0).reshape(()) if mx.nd.array(1.0).ndim else mx.nd.array(1.0)
    for refused in (lambda: hvd.reducescatter(scalar),  # where the call is made
                    lambda: hvd.grouped_reducescatter([nd.ones((size,)), scalar])):
        with pytest.raises(hvd.InvalidError, match="scalar") as raised:
            refused()
        assert isinstance(raised.value, (ValueError, mx.base.MXNetError))
    with pytest.raises(hvd.InvalidError):
        hvd.alltoall(nd.ones((size,)), [1] * (size + 1))
    with pytest.raises(hvd.InvalidError):
        hvd.broadcast(nd.ones((3,)), size).wait_to_read()
    with pytest.raises(hvd.InvalidError):
        hvd.alltoall(nd.ones((size + 1,))) if size > 1 else hvd.alltoall(nd.ones((1,)), [2])
    nd.waitall()


def failing(here):
    """An array at which MXNet fails here, elsewhere a good one."""
    return nd.random.normal(0, -1, shape=(6,)) if here else nd.ones((6,))


CALLS = {
    "allreduce": lambda x: hvd.allreduce(x, name="x"),
    "adasum": lambda x: hvd.allreduce(x, op=hvd.Adasum),
    "allreduce_": lambda x: hvd.allreduce_(x, op=hvd.Max, prescale_factor=0.5),
    "grouped_allreduce": lambda x: hvd.grouped_allreduce([x, nd.ones((2,))])[0],
    "broadcast": lambda x: hvd.broadcast(x, 0),
    "broadcast_": lambda x: hvd.broadcast_(x, hvd.size() - 1),
    "reducescatter": lambda x: hvd.reducescatter(x),
    "allgather": lambda x: hvd.allgather(x),
    "grouped_allgather": lambda x: hvd.grouped_allgather([x, x])[0],
    "alltoall": lambda x: hvd.alltoall(x, [6 // hvd.size()] * hvd.size())[0],
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("where", ["rank 0", "all ranks"])
def test_an_array_that_has_an_error(where, call, rank, size):
    """MXNet leaves out what reads it. The program gets that error; the other ranks are told which
    rank it is, and do not wait for it."""
    here = where == "all ranks" or rank == 0
    for _ in range(2):
        with pytest.raises(mx.base.MXNetError) as caught:
            CALLS[call](failing(here)).wait_to_read()
        if here:
            assert "scale" in str(caught.value) and hvd.error_of(caught.value) is None
        else:
            assert isinstance(caught.value, hvd.MismatchError)
            assert "rank 0" in str(caught.value) and "its error says why" in str(caught.value)
        same(hvd.allreduce(nd.ones((3,)), name="x"), [1.0] * 3)
    with contextlib.suppress(mx.base.MXNetError):
        nd.waitall()  # the engine may tell it once more


def test_calls_behind_a_mismatch(rank, several):
    """The engine leaves them out or not, as it comes; ranks may differ in that."""
    for i in range(60):
        bad = hvd.allreduce(nd.ones((3 + (rank == 1),)), name="bad")
        behind = hvd.allreduce(bad, name=f"behind {i}")
        last = hvd.allreduce(behind * 2)
        for each in (bad, behind, last):
            with contextlib.suppress(hvd.MismatchError):
                each.wait_to_read()
        same(hvd.allreduce(nd.ones((3,)), name="good"), [1.0] * 3)
