# SPDX-License-Identifier: Apache-2.0
"""Backend "hvd" of torch.distributed: the collectives, futures and errors of a group."""
import datetime

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import hvd as plain  # noqa: E402
import hvd.distributed  # noqa: E402, F401

MOVED = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.complex64, torch.uint16,
         torch.float8_e4m3fn, torch.float8_e5m2, torch.complex128, torch.uint32, torch.uint64,
         torch.float8_e4m3fnuz]  # hvd cannot add the last; it moves its bytes
SUMMED = [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.float64, torch.complex64, torch.complex128, torch.uint16,
          torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
each_moved = pytest.mark.parametrize("dtype", MOVED, ids=str)
each_summed = pytest.mark.parametrize("dtype", SUMMED, ids=str)


@pytest.fixture(scope="module", autouse=True)
def group(job):
    dist.init_process_group("hvd", store=dist.HashStore(), rank=plain.rank(),
                            world_size=plain.size())
    yield dist.group.WORLD
    dist.destroy_process_group()
    assert plain.is_initialized()  # who was in the job before stays


def filled(value, dtype, shape=(3, 2)):
    return torch.full(shape, value).to(dtype)


def same(left, right):
    """Also for types that torch cannot compare."""
    return left.dtype == right.dtype and left.shape == right.shape and torch.equal(
        left.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8))


@each_summed
def test_all_reduce(rank, size, dtype):
    tensor = filled(rank + 1, dtype)
    dist.all_reduce(tensor)
    assert same(tensor, filled(size * (size + 1) // 2, dtype))


@pytest.mark.parametrize("op", ["SUM", "AVG", "PRODUCT", "MIN", "MAX"])
def test_reductions(rank, size, op):
    numbers = torch.arange(1.0, size + 1)
    wanted = {"SUM": numbers.sum(), "AVG": numbers.mean(), "PRODUCT": numbers.prod(),
              "MIN": numbers.min(), "MAX": numbers.max()}[op]
    tensor = filled(float(rank + 1), torch.float32)
    dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
    assert torch.allclose(tensor, wanted.expand(3, 2))


@pytest.mark.parametrize("op", ["BAND", "BOR", "BXOR"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool], ids=str)
def test_reductions_of_bits(rank, size, op, dtype):
    def mine(one):
        return torch.tensor([one % 2, one, one + 1, 5], dtype=torch.int64).to(dtype)

    combine = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[op]
    wanted = mine(0)
    for one in range(1, size):
        wanted = combine(wanted, mine(one))
    tensor = mine(rank)
    dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
    assert same(tensor, wanted)


def test_products_of_complex_numbers(rank, size):
    group = dist.group.WORLD  # dist.all_reduce itself refuses them
    tensor = torch.full((3,), 1 + 1j, dtype=torch.complex64)
    group.allreduce([tensor], dist.ReduceOp.PRODUCT).wait()
    assert torch.allclose(tensor, torch.full((3,), (1 + 1j) ** size))
    group.allreduce([tensor.fill_(1 + 2j).conj()]).wait()
    assert torch.equal(tensor, torch.full((3,), size * (1 + 2j)))
    with pytest.raises(ValueError, match="complex64 tensors have no max"):
        group.allreduce([tensor], dist.ReduceOp.MAX)


def test_a_sum_of_scaled_inputs(size):
    tensor = torch.ones(4)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.25))
    assert tensor.tolist() == [0.25 * size] * 4


def test_what_is_not_contiguous(rank, size):
    whole = torch.zeros(4, 6)
    part = whole[:, 1::2]
    part.fill_(rank + 1)
    dist.all_reduce(part)
    total = size * (size + 1) / 2
    assert torch.equal(whole[:, 1::2], torch.full((4, 3), total)) and not whole[:, ::2].any()
    image = torch.full((2, 3, 4, 4), float(rank)).to(memory_format=torch.channels_last)
    dist.broadcast(image, size - 1)
    assert torch.equal(image, torch.full((2, 3, 4, 4), size - 1.0))
    assert image.is_contiguous(memory_format=torch.channels_last)


@each_moved
def test_broadcast(rank, size, dtype):
    tensor = filled(rank, dtype)
    dist.broadcast(tensor, size - 1)
    assert same(tensor, filled(size - 1, dtype))


def test_reduce_changes_the_root_alone(rank, size):
    tensor = filled(rank + 1, torch.float32)
    dist.reduce(tensor, size - 1)
    assert same(tensor, filled(size * (size + 1) // 2 if rank == size - 1 else rank + 1,
                               torch.float32))


@each_moved
def test_all_gather(rank, size, dtype):
    parts = [filled(0, dtype) for _ in range(size)]
    dist.all_gather(parts, filled(rank, dtype))
    assert all(same(part, filled(one, dtype)) for one, part in enumerate(parts))
    whole = filled(0, dtype, (size * 3, 2))
    dist.all_gather_into_tensor(whole, filled(rank, dtype))
    assert same(whole, torch.cat(parts))


def test_all_gather_inside_its_output(rank, size):
    whole = torch.zeros(size, 5)
    whole[rank] = rank
    dist.all_gather_into_tensor(whole, whole[rank])
    assert torch.equal(whole, torch.arange(float(size)).unsqueeze(1).expand(size, 5))


def test_all_gather_of_views(rank, size):
    whole = torch.zeros(size * 4)
    dist.all_gather(list(whole.chunk(size)), torch.full((4,), float(rank)))
    assert whole.tolist() == [float(one) for one in range(size) for _ in range(4)]


@each_summed
def test_reduce_scatter(rank, size, dtype):
    output = filled(0, dtype)
    dist.reduce_scatter(output, [filled(rank + one, dtype) for one in range(size)])
    wanted = filled(sum(range(size)) + size * rank, dtype)
    assert same(output, wanted)
    rows = torch.cat([filled(rank + one, dtype) for one in range(size)])
    dist.reduce_scatter_tensor(output.zero_(), rows)
    assert same(output, wanted)


@each_moved
def test_gather_and_scatter(rank, size, dtype):
    root = size - 1
    parts = [filled(0, dtype) for _ in range(size)] if rank == root else None
    dist.gather(filled(rank, dtype), parts, dst=root)
    if parts is not None:
        assert all(same(part, filled(one, dtype)) for one, part in enumerate(parts))
    mine = filled(0, dtype)
    dist.scatter(mine, parts, src=root)
    assert same(mine, filled(rank, dtype))


@each_moved
def test_all_to_all(rank, size, dtype):
    received = [filled(0, dtype) for _ in range(size)]
    dist.all_to_all(received, [filled(10 * rank + one, dtype) for one in range(size)])
    assert all(same(part, filled(10 * one + rank, dtype)) for one, part in enumerate(received))
    whole = filled(0, dtype, (size, 2))
    dist.all_to_all_single(whole, filled(rank, dtype, (size, 2)))
    assert same(whole, torch.cat([filled(one, dtype, (1, 2)) for one in range(size)]))


def test_all_to_all_with_splits(rank, size):
    # rank r sends r + 1 rows to each
    sent = torch.full((size * (rank + 1), 3), float(rank))
    received = torch.zeros(sum(range(1, size + 1)), 3)
    dist.all_to_all_single(received, sent, [one + 1 for one in range(size)], [rank + 1] * size)
    wanted = [float(one) for one in range(size) for _ in range(one + 1)]
    assert received[:, 2].tolist() == wanted
    lists = [torch.zeros(one + 1) for one in range(size)]
    dist.all_to_all(lists, [torch.full((rank + 1,), float(rank)) for _ in range(size)])
    assert torch.cat(lists).tolist() == wanted


def test_objects(rank, size):
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    assert gathered == [{"rank": one, "text": "x" * one} for one in range(size)]
    told = [{"from": rank}, rank]
    dist.broadcast_object_list(told, src=size - 1)
    assert told == [{"from": size - 1}, size - 1]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {one}" for one in range(size)] if rank == 0 else None)
    assert mine == [f"for {rank}"]
    everything = [None] * size if rank == 0 else None
    dist.gather_object(rank, everything)
    assert everything in (None, list(range(size)))


def test_barriers(size):
    dist.barrier()
    work = dist.barrier(async_op=True)
    assert work.wait() and work.is_completed()


def test_empty_tensors(size):
    empty = torch.zeros(0, 3)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    parts = [torch.zeros(0, 3) for _ in range(size)]
    dist.all_gather(parts, empty)
    dist.all_to_all_single(torch.zeros(0), torch.zeros(0), [0] * size, [0] * size)


def test_works(rank, size):
    tensor = torch.ones(1000)
    work = dist.all_reduce(tensor, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
    assert work.result()[0] is tensor and tensor[999] == size
    works = [dist.all_reduce(torch.ones(10), async_op=True) for _ in range(50)]
    del works[::2]  # nobody waits for these
    assert all(work.wait() for work in works)


def test_futures(size):
    tensor = torch.ones(100)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: [one * 2 for one in done.value()])
    assert future.wait()[0] is tensor and doubled.wait()[0].tolist() == [2.0 * size] * 100
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert work.get_future().wait()[0] is tensor  # asked for late
    together = torch.futures.wait_all(
        [dist.all_reduce(torch.ones(5), async_op=True).get_future() for _ in range(20)])
    assert all(one[0].tolist() == [float(size)] * 5 for one in together)


@pytest.mark.parametrize("ask", [lambda work: work.wait(), lambda work: poll(work)])
def test_a_future_is_done_when_the_work_is(rank, size, ask):
    for number in range(100):
        early = dist.all_reduce(torch.ones(10), async_op=True)
        future = early.get_future()
        seen = future.then(lambda done: done.value()[0].sum().item())
        ask(early)
        assert future.done(), number
        assert seen.wait() == 10 * size
        late = dist.all_reduce(torch.ones(10), async_op=True)
        ask(late)
        assert late.get_future().done(), number
    if size > 1 and rank < 2:
        work = dist.isend(torch.ones(1), 1) if rank == 0 else dist.irecv(torch.ones(1), 0)
        future = work.get_future()
        ask(work)
        assert future.done()


def test_a_future_has_the_error_when_the_wait_has(rank, several):
    for number in range(20):
        work = dist.all_reduce(torch.ones(3 + rank), async_op=True)
        future = work.get_future()
        with pytest.raises(RuntimeError, match="shape|size|elements"):
            work.wait()
        assert future.done(), number
        with pytest.raises(RuntimeError, match="HVD_ERR_MISMATCH"):
            future.value()


def poll(work):
    while not work.is_completed():
        pass


def test_an_error_reaches_all_and_the_group_lives_on(rank, several):
    work = dist.all_reduce(torch.ones(3 + rank), async_op=True)
    future = work.get_future()
    with pytest.raises(RuntimeError, match="shape|size|elements"):
        work.wait()
    assert not work.is_success() and isinstance(work.exception(), RuntimeError)
    with pytest.raises(RuntimeError, match="HVD_ERR_MISMATCH"):
        future.wait()
    dist.all_reduce(torch.ones(2))


def test_a_timeout_says_what_and_where(rank, several):
    if rank == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)
        with pytest.raises(dist.DistBackendError, match='all_reduce of group "0" of'):
            work.wait(datetime.timedelta(milliseconds=20))
        assert not work.is_completed()
    plain.barrier()
    if rank == 0:
        assert work.wait()
    else:
        dist.all_reduce(torch.ones(2))


def test_short_forms(rank, size):
    pg = dist.group.WORLD
    tensor = torch.full((2,), float(rank))
    pg.allreduce([tensor]).wait()
    pg.allreduce(tensor, dist.ReduceOp.MAX).wait()
    assert tensor.tolist() == [float(sum(range(size)))] * 2
    pg.broadcast(tensor.fill_(rank), size - 1).wait()
    assert tensor.tolist() == [size - 1.0] * 2
    pg.barrier().wait()


def test_coalesced(size):
    from torch.distributed.distributed_c10d import _coalescing_manager
    tensors = [torch.full((3,), float(one)) for one in range(4)]
    with _coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert [tensor[0].item() for tensor in tensors] == [float(size * one) for one in range(4)]


@pytest.mark.parametrize("call, words", [
    (lambda size: dist.all_reduce(torch.ones(2).to_sparse()), "dense"),
    (lambda size: dist.all_reduce(torch.ones(2, dtype=torch.complex64), op=dist.ReduceOp.MAX),
     "complex|MAX"),
    (lambda size: dist.all_reduce(torch.ones(2), op=dist.ReduceOp.BXOR), "float32"),
    (lambda size: dist.all_gather_into_tensor(torch.ones(size * 2 + 1), torch.ones(2)),
     "elements"),
    (lambda size: dist.all_to_all_single(torch.ones(size), torch.ones(size), None, [7] * size),
     "splits"),
], ids=["sparse", "complex", "bits", "gather", "splits"])
def test_what_makes_no_sense_by_itself(size, call, words):
    with pytest.raises((ValueError, RuntimeError), match=words):
        call(size)
    dist.barrier()


@each_moved
def test_send_and_recv(rank, size, several, dtype):
    right, left = (rank + 1) % size, (rank - 1) % size
    received = filled(0, dtype)
    works = [dist.isend(filled(rank, dtype), right), dist.irecv(received, left)]
    assert all(work.wait() for work in works)
    assert same(received, filled(left, dtype))


def test_send_and_recv_by_tag_and_in_batches(rank, size, several):
    if rank == 0:
        sends = [dist.isend(torch.full((2,), float(tag)), 1, tag=tag) for tag in (7, 8)]
        assert all(work.wait() for work in sends)
    elif rank == 1:
        late, early = torch.zeros(2), torch.zeros(2)
        dist.recv(late, 0, tag=8)
        assert dist.recv(early, 0, tag=7) == 0
        assert (late[0], early[0]) == (8, 7)
    right, left = (rank + 1) % size, (rank - 1) % size
    column = torch.zeros(4, 3)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, torch.full((4,), float(rank)), right),
        dist.P2POp(dist.irecv, column[:, 1], left)])
    for work in works:
        work.wait()
    assert column[:, 1].tolist() == [float(left)] * 4 and not column[:, ::2].any()
    assert dist.isend(torch.ones(1), right).get_future() is not None
    dist.recv(torch.zeros(1), left)
    objects = [None]
    if rank == 0:
        dist.send_object_list([{"a": 1}], dst=1)
    elif rank == 1:
        dist.recv_object_list(objects, src=0)
        assert objects == [{"a": 1}]


def test_recv_from_any_rank_is_refused(several):
    with pytest.raises(NotImplementedError, match="from which"):
        dist.recv(torch.zeros(1))


def test_monitored_barrier(rank, size):
    dist.monitored_barrier()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30), wait_all_ranks=True)
    dist.monitored_barrier(timeout=30.5)
    dist.monitored_barrier(timeout=30, wait_all_ranks=True)
    with pytest.raises(TypeError, match="number of seconds"):
        dist.monitored_barrier(timeout="30")
    dist.monitored_barrier()  # that one has not counted


def test_timeouts_are_seconds_or_timedeltas(size, several, rank):
    assert dist.all_reduce(torch.ones(2), async_op=True).wait(30.0)
    before = dist.group.WORLD._timeout
    dist.group.WORLD.set_timeout(12)
    assert dist.group.WORLD._timeout == datetime.timedelta(seconds=12)
    dist.group.WORLD.set_timeout(before)
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match=r"is not done after 0\.2 s"):
            dist.irecv(torch.ones(1), 1, tag=77).wait(0.2)
    if rank == 1:
        dist.barrier()
        dist.send(torch.ones(1), 0, tag=77)
    else:
        dist.barrier()


def test_monitored_barrier_names_who_is_missing(rank, size, several):
    short = datetime.timedelta(milliseconds=200)
    if rank == 0:
        with pytest.raises(RuntimeError, match=f"{size - 1} failed to pass monitoredBarrier"):
            dist.monitored_barrier(timeout=short, wait_all_ranks=True)
    elif rank != size - 1:
        with pytest.raises(RuntimeError, match="is not done after"):
            dist.monitored_barrier(timeout=short)
    plain.barrier()
    if rank == size - 1:
        with pytest.raises(RuntimeError, match="is not done after"):
            dist.monitored_barrier(timeout=short)
    dist.monitored_barrier()


def test_groups_of_some_ranks(rank, size, several):
    pairs = [dist.new_group([one, (one + 1) % size]) for one in range(size)] if size > 2 else []
    evens = dist.new_group(list(range(0, size, 2)))
    twin = dist.new_group(list(range(size)))
    for one, pair in enumerate(pairs):
        if rank in (one, (one + 1) % size):
            tensor = torch.full((3,), float(rank))
            dist.all_reduce(tensor, group=pair)
            assert tensor[0] == one + (one + 1) % size
            dist.broadcast(tensor.fill_(rank), max(one, (one + 1) % size), group=pair)
            assert tensor[0] == max(one, (one + 1) % size)
    if rank % 2 == 0:
        gathered = [torch.zeros(1) for _ in range(0, size, 2)]
        dist.all_gather(gathered, torch.full((1,), float(rank)), group=evens)
        assert torch.cat(gathered).tolist() == [float(one) for one in range(0, size, 2)]
        objects = [None] * len(gathered)
        dist.all_gather_object(objects, rank, group=evens)
        assert objects == list(range(0, size, 2))
    else:
        assert dist.get_rank(evens) == -1
    total = torch.ones(1)
    dist.all_reduce(total, group=twin)
    assert total.item() == size
    for pair in [*pairs, twin]:
        if pair is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(pair)


def test_split_and_mesh_of_two_dimensions(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    if size % 2:
        pytest.skip("needs an even number of ranks")
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("outer", "inner"))
    tensor = torch.full((2,), float(rank))
    dist.all_reduce(tensor, group=mesh.get_group("inner"))
    assert tensor[0] == 2 * (rank // 2 * 2) + 1
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=mesh.get_group("outer"))
    assert tensor.item() == size // 2
