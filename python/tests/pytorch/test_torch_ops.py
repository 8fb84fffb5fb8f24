# SPDX-License-Identifier: Apache-2.0
"""hvd.torch's collectives: types, forms, errors."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import hvd.torch as hvd  # noqa: E402

INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
each_kind = pytest.mark.parametrize("dtype", INTS + FLOATS, ids=str)


def total(size):
    return sum(range(size))


@each_kind
@pytest.mark.parametrize("shape", [(), (17,), (3, 4, 5)], ids=str)
def test_allreduce(rank, size, dtype, shape):
    mine = torch.full(shape, rank, dtype=dtype)
    results = [hvd.allreduce(mine, op=hvd.Sum), hvd.allreduce_async(mine, op=hvd.Sum).wait(),
               hvd.allreduce_(mine.clone(), op=hvd.Sum),
               hvd.synchronize(hvd.allreduce_async_(mine.clone(), op=hvd.Sum))]
    for result in results:
        assert result.dtype == dtype and result.shape == shape
        assert torch.equal(result, torch.full(shape, total(size), dtype=dtype))
    assert torch.equal(mine, torch.full(shape, rank, dtype=dtype))
    mean = total(size) / size
    if dtype in INTS:
        mean = int(mean)
    assert torch.equal(hvd.allreduce(mine), torch.full(shape, mean, dtype=dtype))
    assert torch.equal(hvd.allreduce(mine, op=hvd.Min), torch.zeros(shape, dtype=dtype))
    assert torch.equal(hvd.allreduce(mine, op=hvd.Max), torch.full(shape, size - 1, dtype=dtype))
    assert torch.equal(hvd.allreduce(mine + 1, op=hvd.Product),
                       torch.full(shape, 1, dtype=dtype) * torch.arange(1, size + 1).prod().to(
                           dtype))


def test_in_place_is_the_same_tensor(size):
    mine = torch.ones(3)
    assert hvd.allreduce_(mine, op=hvd.Sum) is mine and hvd.broadcast_(mine, 0) is mine
    group = [torch.ones(2), torch.ones(3)]
    assert hvd.grouped_allreduce_(group, op=hvd.Sum)[1] is group[1]
    handle = hvd.grouped_allreduce_async_(group, op=hvd.Sum)
    assert hvd.synchronize(handle)[0] is group[0] and group[0].tolist() == [size * size] * 2


def test_average_is_older_than_op(size):
    with pytest.warns(DeprecationWarning):
        assert hvd.allreduce(torch.ones(1), average=False).item() == size
    with pytest.warns(DeprecationWarning):
        assert hvd.allreduce_(torch.ones(1), average=True).item() == 1
    with pytest.raises(ValueError, match="supersedes"):
        hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)


def test_scales(size):
    for dtype in (torch.float32, torch.float64, torch.float16):
        result = hvd.allreduce(torch.ones(3, dtype=dtype), op=hvd.Sum, prescale_factor=0.5,
                               postscale_factor=4)
        assert result.tolist() == [2.0 * size] * 3
    result = hvd.allreduce(torch.full((2,), 3), op=hvd.Sum, prescale_factor=0.5)
    assert result.tolist() == [size] * 2  # 1.5 is truncated on each rank


@each_kind
def test_allgather(rank, size, dtype):
    mine = torch.full((rank + 1, 2), rank, dtype=dtype)
    expected = torch.cat([torch.full((r + 1, 2), r, dtype=dtype) for r in range(size)])
    assert torch.equal(hvd.allgather(mine, name="rows"), expected)
    assert torch.equal(hvd.synchronize(hvd.allgather_async(mine)), expected)
    pair = hvd.grouped_allgather([mine, torch.full((1,), rank)])
    assert torch.equal(pair[0], expected) and pair[1].tolist() == list(range(size))
    assert hvd.allgather(torch.ones(0, 3)).shape == (0, 3)


@each_kind
def test_broadcast(rank, size, dtype):
    for root in range(size):
        mine = torch.full((2, 3), rank, dtype=dtype)
        expected = torch.full((2, 3), root, dtype=dtype)
        assert torch.equal(hvd.broadcast(mine, root), expected)
        assert torch.equal(hvd.broadcast_async(mine, root).wait(), expected)
        assert mine.flatten()[0] == rank
        hvd.broadcast_(mine, root)
        assert torch.equal(mine, expected)


@each_kind
def test_alltoall(rank, size, dtype):
    even = torch.arange(2 * size).to(dtype)
    assert hvd.alltoall(even).tolist() == [2 * rank, 2 * rank + 1] * size
    assert hvd.synchronize(hvd.alltoall_async(even)).shape == (2 * size,)
    splits = torch.arange(1, size + 1, dtype=torch.int32)
    mine = torch.full((int(splits.sum()), 2), rank, dtype=dtype)
    output, received = hvd.alltoall(mine, splits)
    assert received.dtype == torch.int32 and received.tolist() == [rank + 1] * size
    assert output[:, 0].tolist() == [r for r in range(size) for _ in range(rank + 1)]
    output, received = hvd.alltoall(torch.ones(0, 4), torch.zeros(size, dtype=torch.int32))
    assert output.shape == (0, 4) and received.tolist() == [0] * size


@each_kind
def test_reducescatter(rank, size, dtype):
    mine = torch.ones((2 * size + 1, 3), dtype=dtype)
    rows = 3 if rank == 0 else 2
    assert torch.equal(hvd.reducescatter(mine, op=hvd.Sum),
                       torch.full((rows, 3), size, dtype=dtype))
    assert torch.equal(hvd.reducescatter(mine), torch.ones((rows, 3), dtype=dtype))
    assert hvd.reducescatter_async(mine).wait().shape == (rows, 3)
    pair = hvd.grouped_reducescatter([mine, torch.ones(size, dtype=dtype)], op=hvd.Sum)
    assert pair[0].shape == (rows, 3) and pair[1].tolist() == [size]
    assert len(hvd.grouped_reducescatter_async([mine]).wait()) == 1


@each_kind
def test_grouped_allreduce(rank, size, dtype):
    group = [torch.full((i + 1,), rank, dtype=dtype) for i in range(5)]
    for result in (hvd.grouped_allreduce(group, op=hvd.Sum),
                   hvd.synchronize(hvd.grouped_allreduce_async(group, op=hvd.Sum))):
        for i, tensor in enumerate(result):
            assert torch.equal(tensor, torch.full((i + 1,), total(size), dtype=dtype))


def test_bool(rank, size):
    mine = torch.tensor([rank == 0, True])
    assert hvd.allreduce(mine, op=hvd.Sum).tolist() == [True, True]
    assert hvd.allreduce(mine, op=hvd.Min).tolist() == [size == 1, True]
    assert hvd.broadcast(mine, 0).tolist() == [True, True]
    assert hvd.allgather(mine[:1]).tolist() == [r == 0 for r in range(size)]


@pytest.mark.parametrize("compression", [hvd.Compression.none, hvd.Compression.fp16,
                                         hvd.Compression.bf16])
def test_compression(rank, size, compression):
    mine = torch.full((1000,), 1.0 + rank / 8)
    expected = torch.full((1000,), 1.0 + total(size) / 8 / size)
    assert torch.allclose(hvd.allreduce(mine, compression=compression), expected, rtol=1e-2)
    pair = hvd.grouped_allreduce([mine, torch.ones(2, dtype=torch.int32)], compression=compression)
    assert torch.allclose(pair[0], expected, rtol=1e-2) and pair[1].tolist() == [1, 1]
    assert torch.allclose(hvd.reducescatter(mine, compression=compression)[:2], expected[:2],
                          rtol=1e-2)
    small, ctx = compression.compress(mine)
    assert compression.decompress(small, ctx).dtype == torch.float32
    assert small.dtype == {"NoneCompressor": torch.float32, "FP16Compressor": torch.float16,
                           "BF16Compressor": torch.bfloat16}[compression.__name__]


class Halved(hvd.Compression.none):
    """A user's own; it counts how often it is asked."""

    asked = 0

    @staticmethod
    def compress(tensor):
        Halved.asked += 1
        return tensor / 2, 2

    @staticmethod
    def decompress(tensor, ctx):
        return tensor * ctx


def test_a_compression_of_the_users(size):
    Halved.asked = 0
    assert hvd.allreduce(torch.ones(2), compression=Halved, op=hvd.Sum).tolist() == [size] * 2
    assert hvd.reducescatter(torch.ones(size), compression=Halved, op=hvd.Sum).item() == size
    assert hvd.grouped_allreduce([torch.ones(1)], compression=Halved)[0].item() == 1
    assert Halved.asked == 3


def test_sparse(rank, size):
    mine = torch.sparse_coo_tensor([[0, rank + 1]], torch.ones(2, 3).double(), (size + 2, 3),
                                   check_invariants=True)
    for op, factor in ((hvd.Sum, 1), (hvd.Average, size)):
        handle = hvd.sparse_allreduce_async(mine, "sparse", op)
        dense = handle().to_dense()
        assert hvd.poll(handle) and torch.equal(hvd.synchronize(handle).to_dense(), dense)
        assert dense[0].tolist() == [size / factor] * 3
        assert dense[1:size + 1].tolist() == [[1 / factor] * 3] * size
        assert dense[size + 1].tolist() == [0] * 3
    with pytest.raises(NotImplementedError):
        hvd.sparse_allreduce_async(mine, "sparse", hvd.Adasum)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_averages_of_integers(dtype, rank, size):
    """Dense, in groups and scattered they are truncated alike, once; sparse ones become floats."""
    def dense_of(rank):
        values = np.array([9 + 2 * rank, 5, 0], "int64")
        return values if dtype == torch.uint8 else values * [1, -1, 1]

    average = np.trunc(sum(dense_of(r) for r in range(size)) / size).tolist()
    mine = torch.tensor(dense_of(rank), dtype=dtype)
    sparse = torch.sparse_coo_tensor([[0, 0, 1]], torch.stack([mine[0] - 1, mine[0] - mine[0] + 1,
                                                               mine[1]]), (3,),
                                     check_invariants=True)
    found = hvd.sparse_allreduce_async(sparse, "sparse integers", hvd.Average).wait()
    exact = sum(dense_of(r) for r in range(size)) / size
    assert found.dtype.is_floating_point and np.allclose(found.to_dense(), exact)
    for each in (hvd.allreduce(mine), *hvd.grouped_allreduce([mine, mine]),
                 hvd.allgather(hvd.reducescatter(mine))):
        assert each.dtype == dtype and each.tolist() == average


def test_adasum(rank, size):
    apart = torch.zeros(size, dtype=torch.float64)
    apart[rank] = 2.0
    assert torch.allclose(hvd.allreduce(apart, op=hvd.Adasum), torch.full_like(apart, 2.0))
    same = torch.tensor([1.0, -3.0])
    assert torch.allclose(hvd.allreduce(same, op=hvd.Adasum), same)
    with pytest.raises(ValueError):
        hvd.allreduce(torch.ones(2, dtype=torch.int32), op=hvd.Adasum)
    with pytest.raises(RuntimeError):
        hvd.reducescatter(torch.ones(4), op=hvd.Adasum)


def test_what_is_refused(rank, size):
    for wrong, why in ((torch.ones(4, 4).t(), "contiguous"),
                       (torch.ones(2).to(torch.float8_e5m2fnuz), "e5m2fnuz is not supported"),
                       (torch.ones(1, dtype=torch.complex64).conj(), "resolve_conj"),
                       (torch.ones(2).to_sparse(), "dense"),
                       (torch.ones(2, device="meta"), "meta")):
        for call in (hvd.allreduce, hvd.allreduce_, hvd.allgather, hvd.reducescatter):
            with pytest.raises(ValueError, match=why):
                call(wrong)
    for splits in ([1] * (size + 1), [9] * size, [-1] * size, torch.ones(size)):
        with pytest.raises(ValueError, match="splits"):
            hvd.alltoall(torch.ones(size), splits)
    if size > 1:
        with pytest.raises(ValueError, match="evenly"):
            hvd.alltoall(torch.ones(size + 1, requires_grad=True))
    for call in (hvd.allgather, hvd.alltoall, hvd.reducescatter):  # type: ignore[assignment]
        with pytest.raises(ValueError, match="scalar"):
            call(torch.tensor(1.0))
    with pytest.raises(RuntimeError, match="root"):
        hvd.broadcast(torch.ones(1), size)


def test_mismatches(rank, size, several):
    odd = rank == 0
    for name, call in {
            "shape": lambda: hvd.allreduce(torch.ones(4 + odd), name="shape"),
            "dims": lambda: hvd.allreduce(torch.ones((2, 2) if odd else (4,)), name="dims"),
            "dtype": lambda: hvd.allreduce(torch.ones(4).to(
                torch.int32 if odd else torch.float32), name="dtype"),
            "columns": lambda: hvd.allgather(torch.ones(1, 2 + odd), name="columns"),
            "gdtype": lambda: hvd.allgather(torch.ones(2).to(
                torch.int64 if odd else torch.float64), name="gdtype"),
            "bshape": lambda: hvd.broadcast(torch.ones(2 + odd), 0, name="bshape"),
            "broot": lambda: hvd.broadcast(torch.ones(2), int(odd), name="broot"),
            "ashape": lambda: hvd.alltoall(torch.ones(size, 1 + odd), name="ashape"),
            "rshape": lambda: hvd.reducescatter(torch.ones(size + odd), name="rshape"),
            "group": lambda: hvd.grouped_allreduce([torch.ones(1)] * (2 + odd), name="group"),
            "op": lambda: hvd.allreduce(torch.ones(2), name="op",
                                        op=hvd.Min if odd else hvd.Max)}.items():
        with pytest.raises(hvd.HorovodInternalError, match=name):
            call()
    handle = hvd.allreduce_async(torch.ones(2 + odd), name="late")
    with pytest.raises(hvd.HorovodInternalError, match="late"):
        hvd.synchronize(handle)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_a_name_twice(rank, size, several):
    if rank == 0:
        first = hvd.allreduce_async(torch.ones(2), name="twice")
        with pytest.raises(ValueError, match="twice"):
            hvd.allreduce_async(torch.ones(2), name="twice")
        other_kind = hvd.allgather_async(torch.ones(2), name="twice")  # has names of its own
        hvd.broadcast(torch.ones(1), 0, name="go")
        first.wait()
        assert other_kind.wait().shape == (2 * size,)
    else:
        hvd.broadcast(torch.ones(1), 0, name="go")
        hvd.allgather(torch.ones(2), name="twice")
        hvd.allreduce(torch.ones(2), name="twice")


def test_any_order(rank, size):
    names = [f"n{i}" for i in range(50)]
    order = names if rank % 2 else names[::-1]
    handles = {name: hvd.allreduce_async(torch.full((3,), float(name[1:])), name=name, op=hvd.Sum)
               for name in order}
    for name, handle in handles.items():
        assert handle.wait().tolist() == [float(name[1:]) * size] * 3


def test_process_sets(rank, size, even_set, several):
    ranks = even_set.ranks
    if rank in ranks:
        mine = torch.full((len(ranks),), float(rank))
        assert hvd.allreduce(mine, op=hvd.Sum, process_set=even_set)[0] == sum(ranks)
        assert hvd.allgather(mine[:1], process_set=even_set).tolist() == ranks
        assert hvd.broadcast(mine, ranks[-1], process_set=even_set)[0] == ranks[-1]
        assert hvd.alltoall(mine, process_set=even_set).tolist() == ranks
        assert hvd.reducescatter(mine, op=hvd.Sum, process_set=even_set).tolist() == [sum(ranks)]
        assert hvd.grouped_allreduce([mine], process_set=even_set)[0][0] == sum(ranks) / len(ranks)
        assert hvd.broadcast_object(rank, ranks[0], process_set=even_set) == ranks[0]
        hvd.barrier(process_set=even_set)
    else:
        with pytest.raises(ValueError):
            hvd.allreduce(torch.ones(1), process_set=even_set)


def test_join(rank, size):
    if rank == 0:
        assert 0 <= hvd.join(device=0) < size
    else:
        result = hvd.allreduce(torch.ones(3), name="without rank 0", op=hvd.Sum)
        assert result.tolist() == [size - 1] * 3
        hvd.join(device=1)


def test_views_of_one_memory(size):
    """Descriptions are remembered by address, shape and type: no other may be mistaken for it."""
    memory = torch.ones(12)
    assert hvd.allreduce(memory.view(3, 4), op=hvd.Sum).shape == (3, 4)
    assert hvd.allreduce(memory.view(4, 3), op=hvd.Sum).shape == (4, 3)
    assert hvd.allreduce(memory.view(torch.int32), op=hvd.Max).dtype == torch.int32
    assert hvd.allreduce(memory[:6], op=hvd.Sum).tolist() == [size] * 6
    for _ in range(50):  # new tensors, old addresses
        assert hvd.allgather(torch.ones(3, 2)).shape == (3 * size, 2)
