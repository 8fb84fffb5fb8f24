# SPDX-License-Identifier: Apache-2.0
"""torch.ops.hvd.*, called as they stand: results and gradients as hvd.torch's, torch's own checks,
errors, and how the library is found."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
from tracked import run  # noqa: E402

import hvd.torch as hvd  # noqa: E402
from hvd._core import library  # noqa: E402
from hvd.torch import operator_library  # noqa: E402

ops = torch.ops.hvd
there = pytest.mark.skipif(not hvd.operators_built(), reason=operator_library.PROBLEM)


def given(rank, *shape, seed=1):
    generator = torch.Generator().manual_seed(seed * 100 + rank)
    return torch.rand(shape, generator=generator) + 0.5


def pairs(rank, size):
    """An operator and hvd.torch's function for the same, with what both are given."""
    counts = torch.tensor([1] * size)
    how = {"prescale_factor": 0.5, "postscale_factor": 3.0}
    one, two = [given(rank, 3, 2)], [given(rank, 3), given(rank, 2, 2)]
    uneven, exchanged, scattered = given(rank, rank + 1, 2), given(rank, size + 1, 2), given(
        rank, 2 * size + 1, 2)
    for op in (hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product):
        yield (lambda x, op=op: ops.allreduce(x, op, **how),
               lambda x, op=op: hvd.allreduce(x, op=op, **how), one)
        yield (lambda x, y, op=op: ops.grouped_allreduce([x, y], op),
               lambda x, y, op=op: hvd.grouped_allreduce([x, y], op=op), two)
    yield (lambda x: ops.allreduce(x, compression=1),
           lambda x: hvd.allreduce(x, compression=hvd.Compression.fp16), one)
    yield lambda x: ops.broadcast(x, size - 1), lambda x: hvd.broadcast(x, size - 1), one
    yield ops.allgather, hvd.allgather, [uneven]
    yield lambda x: ops.allgather(x, rows=3 * size), hvd.allgather, one
    yield (lambda x, y: ops.grouped_allgather([x, y]), lambda x, y: hvd.grouped_allgather([x, y]),
           [uneven, given(rank, 2)])
    yield lambda x: ops.alltoall(x)[0], hvd.alltoall, [given(rank, 2 * size, 2)]
    yield (lambda x: ops.alltoall(x, counts), lambda x: hvd.alltoall(x, splits=counts), [exchanged])
    yield (lambda x: ops.alltoall(x, counts.int(), rows=size)[0],
           lambda x: hvd.alltoall(x, splits=counts)[0], [exchanged])
    yield (lambda x: ops.reducescatter(x, hvd.Sum), lambda x: hvd.reducescatter(x, op=hvd.Sum),
           [scattered])
    yield (lambda x, y: ops.grouped_reducescatter([x, y]),
           lambda x, y: hvd.grouped_reducescatter([x, y]), [scattered, given(rank, size)])


def must_be_equal(given_back, expected):
    assert len(given_back) == len(expected)
    for one, other in zip(given_back, expected, strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other), (given_back, expected)


@there
def test_results_and_gradients_are_those_of_hvd_torch(rank, size):
    for operator, function, inputs in pairs(rank, size):
        must_be_equal(run(operator, inputs), run(function, inputs))


@there
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                                   torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_types(rank, size, dtype):
    tensor = torch.tensor([1, 2, 3], dtype=dtype)
    total = ops.allreduce(tensor, hvd.Sum)
    assert total.dtype == dtype and total.tolist() == [size, 2 * size, 3 * size]
    assert ops.allreduce(torch.tensor(rank == 0), hvd.Sum).item() is True


@there
def test_shapes(size):
    turned = torch.arange(6.0).view(2, 3).t()
    total = ops.allreduce(turned, hvd.Sum)
    assert torch.equal(total, turned * size) and total.is_contiguous()
    assert ops.allreduce(torch.tensor(2.0), hvd.Sum).item() == 2.0 * size
    assert ops.allgather(torch.empty(0, 3)).shape == (0, 3)
    counts = torch.ones(size, dtype=torch.int64)
    padded, received = ops.alltoall(torch.ones(size), counts, rows=size + 2)
    assert padded.tolist() == [1.0] * size + [0.0] * 2 and received.tolist() == [1] * size


@there
def test_in_place(rank, size):
    tensor = torch.ones(3)
    assert ops.allreduce_(tensor, hvd.Sum) is None and tensor.tolist() == [size] * 3
    ops.broadcast_(tensor.fill_(rank), size - 1)
    assert tensor.tolist() == [size - 1] * 3
    several = [torch.ones(2), torch.ones(1, dtype=torch.int32)]
    ops.grouped_allreduce_(several, hvd.Sum)
    assert [one.tolist() for one in several] == [[size, size], [size]]
    with pytest.raises(RuntimeError, match="contiguous"):
        ops.allreduce_(torch.ones(2, 3).t())


@there
def test_names_are_those_of_hvd_torch(rank, size):
    """A rank may call the operator where another calls the function."""
    tensor = torch.full((2,), float(rank))
    total = (ops.allreduce(tensor, hvd.Sum, name="of both") if rank % 2
             else hvd.allreduce(tensor, op=hvd.Sum, name="of both"))
    assert total.tolist() == [sum(range(size))] * 2
    rows = ops.allgather(tensor) if rank % 2 else hvd.allgather(tensor)
    assert rows.tolist() == [r for r in range(size) for _ in range(2)]


@there
def test_process_sets(rank, size, even_set):
    members = list(range(0, size, 2))
    if rank % 2:
        with pytest.raises(RuntimeError, match="HVD_ERR_INVALID"):
            ops.allreduce(torch.ones(2), process_set=even_set.process_set_id)
        return
    number = even_set.process_set_id
    total = ops.allreduce(torch.full((1,), float(rank)), hvd.Sum, process_set=number)
    assert total.item() == sum(members)
    assert ops.allgather(torch.tensor([rank]), number).tolist() == members
    numbers = ops.rank_and_size(torch.ones(1), number)
    assert numbers.tolist() == [members.index(rank), len(members)]


@there
def test_torchs_own_checks(rank, size):
    if size > 2:
        pytest.skip("takes long, and has nothing to do with the number of ranks")

    def tracked(*shape):
        return torch.rand(*shape, requires_grad=True)

    several, plain = [tracked(2 * size, 2), tracked(size)], [torch.rand(3), torch.rand(2)]
    defaults = (1.0, 1.0, 0, 0, "")
    for operator, arguments in (
            (ops.allreduce, (tracked(3, 2),)), (ops.allreduce, (tracked(3), hvd.Max, 0.5)),
            (ops.grouped_allreduce, (several,)), (ops.grouped_allreduce, (several, hvd.Product)),
            (ops.broadcast, (tracked(3), 0)), (ops.allgather, (tracked(rank + 1, 2),)),
            (ops.allgather, (tracked(2, 2), 0, "", 2 * size)), (ops.grouped_allgather, (several,)),
            (ops.alltoall, (tracked(2 * size, 2),)),
            (ops.alltoall, (tracked(size + 1), torch.tensor([1] * size), 0, "", size)),
            (ops.reducescatter, (tracked(2 * size), hvd.Sum)),
            (ops.reducescatter, (tracked(2 * size), hvd.Sum, *defaults, 2)),
            (ops.grouped_reducescatter, (several, hvd.Average, *defaults, [2, 1])),
            (ops.own_rows, (torch.rand(2 * size), 2)), (ops.rank_and_size, (torch.rand(2),)),
            (ops.allreduce_, plain[:1]), (ops.broadcast_, (plain[0], 0)),
            (ops.grouped_allreduce_, (plain,))):
        torch.library.opcheck(operator.default, tuple(arguments))


@there
def test_errors_of_one_rank(size):
    ones = torch.ones(size)
    for call, words in (
            (lambda: ops.allreduce(ones, 77), "77"),
            (lambda: ops.broadcast(ones, size), "root"),
            (lambda: ops.allreduce(ones, process_set=2**40), "process_set"),
            (lambda: ops.allreduce(ones.to(torch.float8_e4m3fnuz)), "Float8_e4m3fnuz"),
            (lambda: ops.alltoall(ones, ones), "one-dimensional"),
            (lambda: ops.allgather(torch.tensor(1.0)), "scalar"),
            (lambda: ops.reducescatter(ones, rows=7), "rows is 7")):
        with pytest.raises(RuntimeError, match="HVD_ERR_INVALID.*" + words) as raised:
            call()
        assert isinstance(hvd.error_of(raised.value), ValueError)
    assert hvd.error_of(RuntimeError("of somebody else's")) is None


@there
def test_errors_between_ranks(rank, size, several):
    for tensor in (torch.ones(2 + rank),
                   torch.ones(2, dtype=torch.float32 if rank else torch.float64)):
        with pytest.raises(RuntimeError, match="HVD_ERR_MISMATCH: .*differ") as raised:
            ops.allreduce(tensor, name="differs")
        mine = hvd.error_of(raised.value)
        assert isinstance(mine, hvd.MismatchError) and mine.code == 3
        assert "'allreduce.differs'" in str(mine) and "HVD_ERR" not in str(mine)


@there
def test_threads_run_while_an_operator_waits(rank, size, several):
    """The last rank calls only when a thread of its own has run beside a call that waits."""
    import threading

    def meet():
        ops.allreduce(torch.ones(1), name="while waiting")

    waiting = threading.Thread(target=meet)
    if rank != size - 1:
        waiting.start()
    # Would never get here, on rank 0, if the wait held the interpreter's lock.
    ops.allreduce(torch.ones(1), name="beside it")
    if rank == size - 1:
        waiting.start()
    waiting.join()


# ---- the library ----

ALONE = """
import torch
import hvd.torch as hvd
hvd.init()
assert torch.ops.hvd.allreduce(torch.ones(2), hvd.Sum, name="w").tolist() == [1.0, 1.0]
with open("/proc/self/maps") as maps:
    print(*sorted({line.split()[-1] for line in maps if "/libhvd" in line}), sep="\\n")
"""


@there
def test_there_is_one_libhvd(rank, tmp_path):
    """Also where Python has loaded another file than the one beside libhvd_torch."""
    if rank != 0:
        return
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("HVD_", "HOROVOD_"))} | {"HVD_STANDALONE": "1"}
    built = pathlib.Path(library.LIBRARY.path).resolve()
    operators = built.parent / operator_library.NAME
    elsewhere = tmp_path / "libhvd-elsewhere.so"
    shutil.copy(built, elsewhere)
    for path in (built, elsewhere):
        told = {"HVD_LIBRARY": str(path), "HVD_TORCH_LIBRARY": str(operators)}
        done = subprocess.run([sys.executable, "-c", ALONE], env={**kept, **told},
                              capture_output=True, text=True)
        assert done.stdout.split() == sorted([str(path), str(operators)]), done


def test_why_it_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("HVD_TORCH_LIBRARY", str(tmp_path / "none.so"))
    missing = operator_library._load()
    assert "none.so: no such file" in missing and "-DHVD_TORCH=" in missing
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    monkeypatch.setenv("HVD_TORCH_LIBRARY", str(broken))
    assert "broken.so: " in operator_library._load()
    monkeypatch.setattr(operator_library, "NEW_ENOUGH", False)
    assert "too old" in operator_library._load()
