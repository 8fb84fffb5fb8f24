# SPDX-License-Identifier: Apache-2.0
"""Collectives on NumPy arrays, DLPack and buffers."""
import array
import threading
import warnings

import numpy as np
import pytest

import hvd

INTS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
KINDS = INTS + FLOATS


def ramp(rank, dtype, shape=(3, 2)):
    return (np.arange(np.prod(shape)).reshape(shape) + rank).astype(dtype)


@pytest.mark.parametrize("dtype", KINDS)
def test_allreduce(rank, size, dtype):
    mine = ramp(rank, dtype)
    every = np.stack([ramp(r, dtype) for r in range(size)])
    for op, expected in ((hvd.Sum, every.sum(0, dtype=dtype)), (hvd.Min, every.min(0)),
                         (hvd.Max, every.max(0)), (hvd.Product, every.prod(0, dtype=dtype))):
        result = hvd.allreduce(mine, op=op)
        assert result.dtype == mine.dtype and result.tolist() == expected.tolist()
    average = hvd.allreduce(mine, name="average")
    mean = every.astype("float64").mean(0)
    assert average.tolist() == (np.trunc(mean) if dtype in INTS else mean).astype(dtype).tolist()
    assert mine.tolist() == ramp(rank, dtype).tolist()
    assert hvd.allreduce_(mine, op=hvd.Sum) is mine
    assert mine.tolist() == every.sum(0, dtype=dtype).tolist()


def test_bool_and_scales(rank, size):
    assert hvd.allreduce(np.array([rank == 0, False]), op=hvd.Sum).tolist() == [True, False]
    scaled = hvd.allreduce(np.ones(2, "float32"), op=hvd.Sum, prescale_factor=0.5,
                           postscale_factor=4.0)
    assert scaled.tolist() == [2.0 * size] * 2
    with pytest.raises(ValueError):
        hvd.allreduce(np.array([True]))
    scalar = hvd.allreduce(np.float64(rank), op=hvd.Sum)
    assert scalar.shape == () and scalar == sum(range(size))


@pytest.mark.parametrize("dtype", KINDS + ["complex64", "complex128", "bool"])
def test_the_others(rank, size, dtype):
    rows = np.full((rank + 1, 2), rank % 2, dtype)
    gathered = hvd.allgather(rows, name="rows")
    assert gathered.dtype == dtype
    assert gathered.tolist() == [[r % 2] * 2 for r in range(size) for _ in range(r + 1)]
    root = size - 1
    assert hvd.broadcast(rows[:1], root).tolist() == [[root % 2] * 2]
    copy = rows[:1].copy()
    assert hvd.broadcast_(copy, root) is copy and copy.tolist() == [[root % 2] * 2]
    sent = (np.arange(size) % 2).astype(dtype)
    assert hvd.alltoall(sent).tolist() == [rank % 2] * size
    if dtype != "bool":
        mine = hvd.reducescatter(np.ones((2 * size + 1, 2), dtype), op=hvd.Sum)
        assert mine.tolist() == [[size] * 2] * (3 if rank == 0 else 2)


def test_alltoall_with_splits(rank, size):
    splits = [r + 1 for r in range(size)]
    output, received = hvd.alltoall(np.full(sum(splits), rank), splits=splits)
    assert received == [rank + 1] * size
    assert output.tolist() == [r for r in range(size) for _ in range(rank + 1)]
    nothing, none = hvd.alltoall(np.ones((3, 2)), splits=[0] * size)
    assert nothing.shape == (0, 2) and none == [0] * size


def test_groups(rank, size):
    tensors = [np.full(3, rank, "float32"), np.full((2, 2), rank, "int64")]
    summed = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    assert [t.flat[0] for t in summed] == [sum(range(size))] * 2
    assert summed[1].dtype == np.int64 and tensors[0][0] == rank
    assert hvd.grouped_allreduce_(tensors, op=hvd.Max)[0] is tensors[0]
    assert tensors[1].tolist() == [[size - 1] * 2] * 2
    gathered = hvd.grouped_allgather([np.full((rank, 1), rank), np.ones(1, "uint8")], "both")
    assert gathered[0].shape == (sum(range(size)), 1) and gathered[1].shape == (size,)
    pieces = hvd.grouped_reducescatter([np.ones(size), np.ones((size, 2), "float16")], op=hvd.Sum)
    assert pieces[0].tolist() == [size] and pieces[1].tolist() == [[size] * 2]


def test_outputs(rank, size):
    output = np.empty(3, "float32")
    assert hvd.allreduce(np.ones(3, "float32"), op=hvd.Sum, output=output) is output
    assert output.tolist() == [size] * 3
    whole = np.zeros((size, 2), "int64")
    assert hvd.allgather(np.full((1, 2), rank), output=whole) is whole
    assert whole.tolist() == [[r, r] for r in range(size)]
    part = np.empty((1, 2))
    hvd.reducescatter(np.ones((size, 2)), op=hvd.Sum, output=part)
    assert part.tolist() == [[size] * 2]


def test_what_is_refused(rank):
    square = np.ones((4, 4))
    for wrong, why in ((square.T, "contiguous"), (square[:, :2], "contiguous"),
                       (np.ones(2, "longdouble"), "longdouble|float"), (np.ones(2, ">f4"), ">f4")):
        with pytest.raises(ValueError, match=why):
            hvd.allreduce(wrong)
    frozen = np.ones(2)
    frozen.flags.writeable = False
    hvd.allreduce(frozen, name="may be read")
    with pytest.raises(ValueError, match="read-only"):
        hvd.allreduce_(frozen)
    with pytest.raises(ValueError, match="read-only"):
        hvd.allreduce_(b"abc")
    with pytest.raises(TypeError, match="list"):
        hvd.allreduce([1.0])
    with pytest.raises(ValueError, match="scalar"):
        hvd.allgather(np.float32(1))
    with pytest.raises(ValueError, match="splits"):
        hvd.alltoall(np.ones(3), splits=[9] * hvd.size())
    with pytest.raises(ValueError, match="root"):
        hvd.broadcast(np.ones(1), 77)
    with pytest.raises(ValueError):
        hvd.allreduce(np.ones(1), op=17)


def test_buffers_and_dlpack(rank, size):
    assert hvd.allreduce(array.array("d", [rank, 1.0]), op=hvd.Sum).tolist() == [
        sum(range(size)), size]
    text = bytearray([rank] * 3)
    hvd.allreduce_(text, op=hvd.Max)
    assert bytes(text) == bytes([size - 1] * 3)
    torch = pytest.importorskip("torch")
    tensor = torch.full((2,), float(rank))
    result = hvd.allreduce_(tensor, op=hvd.Sum)
    assert result is tensor and tensor.tolist() == [sum(range(size))] * 2
    assert isinstance(hvd.allgather(tensor), np.ndarray)
    with pytest.raises(ValueError, match="contiguous"):
        hvd.allreduce(torch.ones(4, 4).t())
    half = torch.ones(3, dtype=torch.bfloat16)
    hvd.allreduce_(half, op=hvd.Sum)
    assert half.tolist() == [size] * 3
    with pytest.raises(ValueError, match="output="):
        hvd.allgather(half)


class OnlyCapsules:
    """A library's tensor: nothing but DLPack, of the form before versions."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def test_old_capsules(size):
    source = OnlyCapsules(np.ones((2, 3), "float32"))
    assert hvd.allreduce(source, op=hvd.Sum).tolist() == [[size] * 3] * 2


def test_handles(rank, size):
    handles = [hvd.allreduce_async(np.full(5, rank), f"h{i}", hvd.Sum) for i in range(20)]
    assert "pending" in repr(handles[-1]) or handles[-1].done()
    for handle in reversed(handles):
        assert hvd.synchronize(handle).tolist() == [sum(range(size))] * 5
        assert hvd.poll(handle) and hvd.wait(handle) is handle.wait()
    assert "done" in repr(handles[0])


def drain():
    """C's barrier waits for the rank's earlier calls, too."""
    from hvd._core.library import LIBRARY
    LIBRARY.check(LIBRARY.released.hvd_barrier(None))


def test_a_dropped_handle_keeps_its_tensors(rank, size):
    shared = np.zeros(1 << 16, "float32")
    if rank == 0:  # the others are late: rank 0's call is surely under way when its handle goes
        hvd.allreduce_async_(shared + 1, "dropped", hvd.Sum)
        junk = [np.full(1 << 16, 7.0, "float32") for _ in range(8)]
        hvd.broadcast(np.ones(1), 0, "go")
        del junk
    else:
        hvd.broadcast(np.ones(1), 0, "go")
        assert hvd.allreduce(shared + 1, "dropped", hvd.Sum)[0] == size
    drain()
    from hvd._core.runtime import RUNTIME
    hvd.allreduce_async(np.ones(1), "sweeps").wait()
    assert not RUNTIME.orphans


def test_a_barrier_comes_before_what_another_rank_submits_behind_it(rank, size, several):
    gathering = hvd.allgather_async(np.full(1, rank), "behind a barrier") if rank == 0 else None
    hvd.barrier()
    if gathering is None:
        gathering = hvd.allgather_async(np.full(1, rank), "behind a barrier")
    assert list(gathering.wait()) == list(range(size))


def test_a_dropped_failure_is_told(rank, size, several):
    hvd.allreduce_async(np.ones(2 + rank), "dropped and wrong")
    drain()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hvd.allreduce_async(np.ones(1), "sweeps").wait()
    assert any("dropped and wrong" in str(one.message) for one in caught)


def test_mismatches(rank, size, several):
    ones = np.ones(4, "float32")
    odd = rank == size - 1
    cases = {
        "shape": lambda: hvd.allreduce(np.ones(5, "float32") if odd else ones, "shape"),
        "dtype": lambda: hvd.allreduce(np.ones(4, "float64") if odd else ones, "dtype"),
        "op": lambda: hvd.allreduce(ones, "op", hvd.Min if odd else hvd.Max),
        "scale": lambda: hvd.allreduce(ones, "scale", prescale_factor=2.0 if odd else 1.0),
        "root": lambda: hvd.broadcast(ones, 1 if odd else 0, "root"),
        "columns": lambda: hvd.allgather(np.ones((2, 3 if odd else 2)), "columns")}
    for name, call in cases.items():
        with pytest.raises(hvd.MismatchError, match=name) as caught:
            call()
        texts = hvd.allgather_object(str(caught.value))
        assert len(set(texts)) == 1, texts
    assert hvd.allreduce(ones, "fine", hvd.Sum).tolist() == [size] * 4


def test_on_a_process_set(rank, size, even_set, several):
    ranks = even_set.ranks
    if rank not in ranks:
        return
    count = len(ranks)
    assert hvd.allreduce(np.full(2, rank), op=hvd.Sum, process_set=even_set)[0] == sum(ranks)
    assert hvd.allreduce(np.full(2, rank + 0.5), process_set=even_set)[0] == sum(
        r + 0.5 for r in ranks) / count
    assert hvd.allgather(np.array([rank]), process_set=even_set).tolist() == ranks
    assert hvd.broadcast(np.array([rank]), ranks[-1], process_set=even_set)[0] == ranks[-1]
    assert hvd.alltoall(np.arange(count), process_set=even_set).tolist() == [
        even_set.rank()] * count
    assert hvd.reducescatter(np.ones(count), op=hvd.Sum, process_set=even_set)[0] == count
    assert hvd.allgather_object(rank, process_set=even_set) == ranks
    hvd.barrier(process_set=even_set)
    with pytest.raises(ValueError, match="root"):
        hvd.broadcast(np.ones(1), 1, process_set=even_set)


def test_two_threads(rank, size):
    failures = []

    def work(thread):
        try:
            for i in range(30):
                result = hvd.allreduce(np.full(64, rank + thread), f"{thread}.{i}", hvd.Sum)
                assert result[0] == sum(range(size)) + thread * size
        except Exception as error:  # a thread's exceptions go nowhere
            failures.append(error)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_several_wait_for_one_handle(rank, size):
    handle = hvd.allgather_async(np.array([rank]), "waited for")
    results = []
    threads = [threading.Thread(target=lambda: results.append(handle.wait())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3 and all(result is results[0] for result in results)


def test_alloc(rank, size):
    shared = hvd.alloc((100, 3), "float64")
    assert shared.shape == (100, 3) and shared.ctypes.data % 64 == 0
    shared[:] = rank
    assert hvd.allreduce_(shared, op=hvd.Sum).min() == sum(range(size))
    part = shared[10:]
    del shared
    assert part[0, 0] == sum(range(size)) and hvd.alloc(0).shape == (0,)


def test_buckets(rank, size):
    bucket = hvd.Bucket([3, 0, 5], op=hvd.Sum, prescale_factor=2.0)
    views = [bucket.view(i) for i in range(3)]
    for step in range(3):
        order = [0, 1, 2] if rank % 2 else [2, 1, 0]
        for i in order:
            views[i][:] = rank + step
            bucket.ready(i)
        bucket.wait()
        assert views[2].tolist() == [2.0 * (sum(range(size)) + step * size)] * 5
    with pytest.raises(ValueError, match="not ready"):
        bucket.wait()
    bucket.ready(0)
    with pytest.raises(ValueError, match="ready already"):
        bucket.ready(0)
    bucket.ready(1)
    bucket.ready(2)
    bucket.wait()
    with pytest.raises(ValueError):
        bucket.view(9)
    view = bucket.view(2)
    expected = view.tolist()
    del bucket, views
    assert view.tolist() == expected  # a view keeps its bucket
    assert hvd.Bucket([4], dtype=10).counts == [4]
    with pytest.raises(ValueError, match="dtype"):
        hvd.Bucket([4], dtype=17)


def test_a_bucket_tensor_by_tensor(rank, size):
    bucket = hvd.Bucket([4, 3000, 2], op=hvd.Sum, chunk_bytes=1024)
    for _ in range(3):
        bucket.put(1, np.full(3000, rank, np.float64))
        bucket.wait_tensor(1)
        assert bucket.view(1)[2999] == sum(range(size))
        with pytest.raises(ValueError, match="not ready are 2"):
            bucket.wait_tensor(2)
        bucket.put(0, np.full(4, rank, np.float16))
        with pytest.raises(ValueError, match="source has 3 elements, tensor 2"):
            bucket.put(2, np.ones(3))
        with pytest.raises(ValueError, match="source is of int32"):
            bucket.put(2, np.ones(2, np.int32))
        if rank == 0:
            bucket.reset()  # gives it up
        else:
            bucket.put(2, np.ones(2))
            bucket.wait()


def test_objects(rank, size):
    root = size - 1
    assert hvd.broadcast_object({"from": rank}, root) == {"from": root}
    assert hvd.broadcast_object("x" * (rank * 1000), root, name="named") == "x" * (root * 1000)
    assert hvd.allgather_object([rank] * rank) == [[r] * r for r in range(size)]
    assert hvd.broadcast_object(None) is None


def test_join(rank, size):
    for i in range(rank + 1):  # rank 0 has least to do
        expected = sum(r for r in range(size) if r >= i)
        result = hvd.allreduce(np.array([float(rank)]), f"uneven {i}", hvd.Sum)
        assert result[0] == expected
    assert hvd.join() == size - 1 or size == 1


def test_join_async(rank, size, several):
    store = hvd.Store()
    if rank == size - 1:
        store.wait([f"joined {r}" for r in range(size - 1)])
        assert hvd.allreduce(np.ones(3), "alone", hvd.Sum)[0] == 1  # the others take part, idle
        joined = hvd.join_async()
    else:
        joined = hvd.join_async()
        assert not joined.done() and not hvd.poll(joined)
        with pytest.raises(hvd.MismatchError, match="this rank has joined"):
            hvd.allreduce(np.ones(3), "not now")
        with pytest.raises(hvd.MismatchError, match="has joined already"):
            hvd.join_async()
        store.set(f"joined {rank}", b"")
    assert hvd.synchronize(joined) == joined.wait() == size - 1
    assert hvd.allreduce(np.ones(3), "together", hvd.Sum)[0] == size


def test_a_bucket_that_is_dropped_in_a_step(rank, size, several):
    """Its chunk waits for the others; whoever drops it does not."""
    if rank == 0:
        bucket = hvd.Bucket([5], name="dropped")
        bucket.ready(0)
        del bucket  # would wait for ever
    hvd.allgather(np.ones(1), name="rank 0 goes on")
    bucket = hvd.Bucket([4])
    bucket.view(0)[:] = rank
    bucket.ready(0)
    bucket.wait()
    assert bucket.view(0)[0] == sum(range(size)) / size
    here = hvd.allgather_async(np.ones(1), name="nobody waits for what rank 0 will end")
    if rank == 0:
        here.wait()
    else:
        with pytest.raises(hvd.AbortedError, match="rank 0"):
            hvd.barrier()
    hvd.shutdown()
    hvd.init()
    from hvd._core.runtime import RUNTIME
    assert not RUNTIME.buckets
