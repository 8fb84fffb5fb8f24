# SPDX-License-Identifier: Apache-2.0
"""Every operation of `import hvd` on arrays on a GPU, against NumPy."""
import ctypes
import gc

import numpy as np
import pytest
from device import GPU, Memory, Named, Nameless, Refusing, Shown, fetch

import hvd
from hvd._core import abi, dlpack, streams

KINDS = [Named, Nameless, Shown, Refusing]


def ramp(rank, dtype="float32", shape=(4, 3)):
    return (np.arange(np.prod(shape)).reshape(shape) + 10 * rank).astype(dtype)


def everyone(size, **how):
    return np.stack([ramp(rank, **how) for rank in range(size)])


def behind(kind, own):
    """The stream that a result of such an array is behind."""
    return own if kind is Named else 0


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture
def own(kind, stream):
    """The stream where the array comes about: the default one, where it cannot say which."""
    return 0 if kind is Nameless else stream


def test_allreduce(kind, own, rank, size):
    mine = kind(ramp(rank), own)
    total = hvd.allreduce(mine, op=hvd.Sum)
    assert total.shape == (4, 3) and total.dtype == np.float32 and total.device == GPU
    assert total.stream == behind(kind, own)
    assert np.array_equal(fetch(total), everyone(size).sum(0))
    again = hvd.allreduce(total, op=hvd.Average)  # a result may be given as it is
    assert np.array_equal(fetch(again), everyone(size).sum(0))
    assert np.array_equal(fetch(mine), ramp(rank))


def test_in_place_and_into_an_output(kind, own, rank, size):
    mine = kind(ramp(rank), own)
    assert hvd.allreduce_(mine, op=hvd.Max) is mine
    assert np.array_equal(fetch(mine, behind(kind, own)), ramp(size - 1))
    source, target = kind(ramp(rank), own), kind(np.zeros((4, 3), "float32"), own)
    assert hvd.allreduce(source, op=hvd.Sum, output=target) is target
    assert np.array_equal(fetch(target, behind(kind, own)), everyone(size).sum(0))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8", "bool", "complex64"])
def test_types(dtype, stream, rank, size):
    mine = Named(ramp(rank, dtype), stream)
    wanted = everyone(size, dtype=dtype)
    wanted = wanted.any(0) if dtype == "bool" else wanted.sum(0, dtype=dtype)
    total = hvd.allreduce(mine, op=hvd.Sum)
    assert total.dtype == dtype and np.array_equal(fetch(total), wanted)


def test_broadcast_and_groups(kind, own, rank, size):
    root = size - 1
    assert np.array_equal(fetch(hvd.broadcast(kind(ramp(rank), own), root)), ramp(root))
    shapes = [(3,), (2, 2), (0, 4)]
    group = [kind(ramp(rank, shape=shape), own) for shape in shapes]
    for result, shape in zip(hvd.grouped_allreduce(group, op=hvd.Sum), shapes, strict=True):
        assert np.array_equal(fetch(result), everyone(size, shape=shape).sum(0))
    hvd.grouped_allreduce_(group, op=hvd.Sum)
    for result, shape in zip(group, shapes, strict=True):
        assert np.array_equal(fetch(result, behind(kind, own)), everyone(size, shape=shape).sum(0))


def test_results_of_unknown_size(kind, own, rank, size):
    rows = hvd.allgather(kind(ramp(rank, shape=(rank, 2)), own))
    assert np.array_equal(fetch(rows), np.concatenate(
        [ramp(one, shape=(one, 2)) for one in range(size)]))
    both = hvd.grouped_allgather([kind(ramp(rank), own), kind(ramp(rank, "int64"), own)])
    assert np.array_equal(fetch(both[0]), everyone(size).reshape(-1, 3))
    assert np.array_equal(fetch(both[1]), everyone(size, dtype="int64").reshape(-1, 3))
    splits = [2 if one == rank else 1 for one in range(size)]
    mine = kind(ramp(rank, shape=(size + 1, 2)), own)
    came, received = hvd.alltoall(mine, splits)
    assert received == [2 if one == rank else 1 for one in range(size)]
    assert fetch(came).shape == (size + 1, 2)
    firsts = [rank + (rank > one) for one in range(size)]
    assert np.array_equal(fetch(came), np.concatenate(
        [ramp(one, shape=(size + 1, 2))[first:first + count]
         for one, (first, count) in enumerate(zip(firsts, received, strict=True))]))


def test_empty_results(stream, rank, size):
    nothing = hvd.allgather(Named(np.zeros((0, 5), "int64"), stream))
    assert nothing.shape == (0, 5) and nothing.nbytes == 0
    assert fetch(nothing).shape == (0, 5)
    assert hvd.allreduce(nothing).shape == (0, 5)


def test_reducescatter(kind, own, rank, size):
    rows = [len(part) for part in np.array_split(np.arange(7), size)]
    first = sum(rows[:rank])
    wanted = everyone(size, shape=(7, 2)).sum(0)[first:first + rows[rank]]
    mine = kind(ramp(rank, shape=(7, 2)), own)
    assert np.array_equal(fetch(hvd.reducescatter(mine, op=hvd.Sum)), wanted)
    for result in hvd.grouped_reducescatter([mine, mine], op=hvd.Sum):
        assert np.array_equal(fetch(result), wanted)


def test_pairs(several, kind, own, rank, size):
    to, source = (rank + 1) % size, (rank - 1) % size
    got = kind(np.zeros(5, "int64"), own)
    receiving = hvd.recv_async(got, source)
    hvd.send(kind(ramp(rank, "int64", (5,)), own), to)
    assert receiving.wait() is got
    assert np.array_equal(fetch(got, behind(kind, own)), ramp(source, "int64", (5,)))


def test_large(stream, rank, size):
    mine = Named(np.full(3_000_000, rank + 1, "float32"), stream)
    hvd.allreduce_(mine, op=hvd.Sum)
    assert np.array_equal(fetch(mine), np.full(3_000_000, size * (size + 1) // 2, "float32"))


def test_many_under_way(stream, rank, size):
    arrays = [Named(ramp(rank + number), stream) for number in range(20)]
    handles = [hvd.allreduce_async(array, name=f"many.{number}", op=hvd.Sum)
               for number, array in enumerate(arrays)]
    for number, handle in reversed(list(enumerate(handles))):
        assert np.array_equal(fetch(handle.wait()),
                              sum(ramp(one + number) for one in range(size)))


def test_another_stream_may_wait(stream, other_stream, rank, size):
    mine = Named(ramp(rank), stream)
    handle = hvd.allreduce_async_(mine, op=hvd.Sum)
    with hvd.on_stream(other_stream):
        handle.wait()
    assert np.array_equal(fetch(mine, other_stream), everyone(size).sum(0))
    assert np.array_equal(fetch(mine), everyone(size).sum(0))


def test_two_streams_may_wait_for_one_handle(stream, other_stream, rank, size):
    mine = Named(ramp(rank), stream)
    handle = hvd.allreduce_async_(mine, op=hvd.Sum)
    handle.wait()
    with hvd.on_stream(other_stream):
        assert handle.wait() is mine
    assert np.array_equal(fetch(mine, other_stream), everyone(size).sum(0))


@pytest.mark.parametrize("nameless", [Nameless, Shown])
def test_on_stream_says_where_nameless_arrays_belong(nameless, stream, rank, size):
    with hvd.on_stream(stream):
        mine = nameless(ramp(rank), stream)
        total = hvd.allreduce(mine, op=hvd.Sum)
    assert total.stream == stream
    assert np.array_equal(fetch(total), everyone(size).sum(0))


def test_streams_of_frameworks():
    class Of:
        def __init__(self, **members):
            self.__dict__.update(members)

    assert [streams.number_of(one) for one in (
        0, 1, None, 7, Of(cuda_stream=7), Of(ptr=7), Of(handle=ctypes.c_void_p(7)),
        Of(handle=ctypes.c_void_p(None)), Of(__cuda_stream__=lambda: (0, 7)))] == [
            0, 0, 0, 7, 7, 7, 7, 0, 7]
    with pytest.raises(TypeError, match="str is no CUDA stream"):
        streams.number_of("0")


@pytest.mark.parametrize("wait", [True, False])
def test_arrays_that_are_dropped_at_once(wait, stream, rank):
    """They stay until the device is through with them; the stand-in looks."""
    for number in range(10):
        handle = hvd.allreduce_async(Named(np.ones(100_000, "float32"), stream), f"gone.{number}")
        if wait:
            handle.wait()
        del handle
    hvd.barrier()


def test_tensors_are_let_go_when_the_device_is_through(stream, rank):
    kept = streams.LINGERING._kept
    for _ in range(50):
        mine = Named(np.ones(10, "float32"), stream)
        hvd.allreduce_(mine)
        fetch(mine)  # so it is through
    assert len(kept) <= 1, len(kept)


def test_results_go_on_to_other_frameworks(stream, other_stream, rank, size):
    """By DLPack, as torch or CuPy would take them, old and new."""
    wanted = everyone(size).sum(0)
    for versions in ({}, {"max_version": (1, 0)}):
        total = hvd.allreduce(Named(ramp(rank), stream), op=hvd.Sum)
        assert total.__dlpack_device__() == (dlpack.CUDA_DEVICE, GPU)
        capsule = total.__dlpack__(stream=other_stream, **versions)
        struct, writable, _ = dlpack.read(Capsule(capsule))
        assert writable and struct.device_type == abi.CUDA and struct.device_id == GPU
        assert struct.data == total.__cuda_array_interface__["data"][0]
        before = len(dlpack._shown)
        assert np.array_equal(fetch(total, other_stream), wanted)
        del total, struct
        gc.collect()
        assert len(dlpack._shown) == before  # the capsule has it
        del capsule, _
        gc.collect()
        assert len(dlpack._shown) == before - 1
    total = hvd.allreduce(Named(ramp(rank), stream))
    with pytest.raises(BufferError, match="no copies"):
        total.__dlpack__(copy=True)


@pytest.mark.parametrize("versions", [{}, {"max_version": (1, 0)}])
def test_who_takes_a_capsule_gives_the_tensor_back(versions, stream, rank, size):
    """As a framework does: it gives the capsule another name, and calls the deleter in the end."""
    total = hvd.allreduce(Named(ramp(rank), stream), op=hvd.Sum)
    before = len(dlpack._shown)
    capsule = total.__dlpack__(stream=1, **versions)
    kind, name = (dlpack._Versioned, b"dltensor_versioned") if versions else (
        dlpack._Managed, b"dltensor")
    address = dlpack._pointer(capsule, name)
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    used = b"used_" + name
    assert rename(capsule, used) == 0
    del capsule
    gc.collect()
    assert len(dlpack._shown) == before + 1  # the taker has it
    taken = kind.from_address(address)
    assert [taken.tensor.shape[i] for i in range(2)] == [4, 3]
    assert [taken.tensor.strides[i] for i in range(2)] == [3, 1]
    assert np.array_equal(fetch(total, 0), everyone(size).sum(0))
    del total
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(taken.deleter)(address)
    assert len(dlpack._shown) == before


class Capsule:
    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule


def test_what_cannot_be_taken(stream):
    class Strange(Named):
        more: dict = {}

        @property
        def __cuda_array_interface__(self):
            return super().__cuda_array_interface__ | self.more

    array = Strange(np.ones((2, 2), "float32"), stream)
    for more, words in (({"strides": (4, 8)}, "this Strange is not contiguous"),
                        ({"typestr": ">f4"}, "Strange: hvd has no elements of type >f4"),
                        ({"mask": array}, "has a mask"),
                        ({"data": (array.address, True)}, "the output, a Strange, is read-only")):
        array.more = more
        with pytest.raises(hvd.InvalidError, match=words):
            hvd.allreduce_(array)
    array.more = {}
    with pytest.raises(hvd.InvalidError, match="input lies on GPU 0, output in the CPU's memory"):
        hvd.allreduce(array, output=np.zeros((2, 2), "float32"))
    with pytest.raises(hvd.InvalidError, match="tensor 0 of the group lies on GPU 0, tensor 1 in"):
        hvd.grouped_allreduce_([array, np.zeros((2, 2), "float32")])  # type: ignore[type-var]
    fetch(array)


def test_ranks_on_different_devices_are_told(several, stream, rank, size):
    mine = Named(ramp(rank), stream) if rank == 0 else ramp(rank)
    with pytest.raises(hvd.MismatchError, match="different devices: rank 0"):
        hvd.allreduce(mine)
    if rank == 0:
        fetch(mine)


def test_bfloat16_by_dlpack(stream, rank, size):
    """NumPy has no name for it, and DLPack has."""
    class Brain(Memory):
        def __dlpack_device__(self):
            return dlpack.CUDA_DEVICE, GPU

        def __dlpack__(self, *, stream=None, max_version=None):
            return dlpack.write(abi.tensor_struct(self.address, self.shape, abi.BFLOAT16,
                                                  abi.DevicePlace(GPU, 0)), None, max_version)

    one = np.full(5, 0x3F80, "uint16")  # 1.0
    total = hvd.allgather(Brain(one, 0))
    assert not hasattr(total, "__cuda_array_interface__") and total.nbytes == 10 * size
    with pytest.raises(hvd.InvalidError, match="NumPy has no type"):
        total.dtype  # noqa: B018
    assert np.array_equal(fetch(total.as_bytes()).view("uint16"), np.full(5 * size, 0x3F80))


def test_a_bucket_on_the_gpu(stream, other_stream, rank, size):
    bucket = hvd.Bucket([3, 0, 4000], op=hvd.Sum, chunk_bytes=1024, device=GPU)
    values = [np.full(count, rank + 1, "float32") for count in (3, 0, 4000)]
    total = sum(range(1, size + 1))
    for step in range(4):
        for i in (0, 1, 2) if rank % 2 else (2, 1, 0):
            view = bucket.view(i)
            assert view.shape == values[i].shape and view.device == GPU
            # Dropped at once: a bucket keeps what the device still reads.
            bucket.put(i, Named(values[i], stream if step % 2 else other_stream))
        if step == 3:
            bucket.wait_tensor(2)
            assert fetch(bucket.view(2), stream).tolist() == [total] * 4000
        with hvd.on_stream(other_stream):
            bucket.wait()
            assert fetch(bucket.view(0)).tolist() == [total] * 3
        assert fetch(bucket.view(2), other_stream)[3999] == total
    bucket.put(0, values[0])  # from the CPU
    double = Named(values[2].astype("float64"), stream)
    with pytest.raises(ValueError, match="on a GPU nothing is converted"):
        bucket.put(2, double)
    assert fetch(double).tolist() == values[2].tolist()
    bucket.put(1, Named(values[1], stream))
    bucket.ready(2, stream)
    bucket.wait()
    view = bucket.view(0)
    del bucket
    assert fetch(view, 0).tolist() == [total] * 3  # a view keeps its bucket
