# SPDX-License-Identifier: Apache-2.0
"""hvd.torch in programs that torch compiles: what they compute, also beside ranks that compile
nothing, and what happens without the operators."""
import copy
import os
import subprocess
import sys

# Before torch's compiler is loaded: ranks enough are at it already, and no helper outlives a test.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

import pytest  # noqa: E402

torch = pytest.importorskip("torch")
from tracked import run  # noqa: E402

import hvd.torch as hvd  # noqa: E402
from hvd.torch import operator_library  # noqa: E402

there = pytest.mark.skipif(not hvd.operators_built(), reason=operator_library.PROBLEM)


def given(rank, *shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(100 + rank)) + 0.5


def compiled(function, backend="aot_eager", **how):
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend=backend, **how)


def must_be_close(given_back, expected):
    assert len(given_back) == len(expected)
    for one, other in zip(given_back, expected, strict=True):
        assert one.dtype == other.dtype and torch.allclose(one, other), (given_back, expected)


def functions(rank, size):
    """A function a collective, and its inputs."""
    pair = [given(rank, 2 * size + 1, 2), given(rank, size)]
    half = hvd.Compression.fp16
    return {
        "allreduce": (lambda x: hvd.allreduce(x * 2, op=hvd.Sum, name="a") + 1, pair[:1]),
        "scaled": (lambda x: hvd.allreduce(x * 2, prescale_factor=0.5, postscale_factor=3),
                   pair[:1]),
        "compressed": (lambda x: hvd.allreduce(x * 2, compression=half), pair[:1]),
        "max": (lambda x: hvd.allreduce(x * 2, op=hvd.Max), pair[:1]),
        "product": (lambda x: hvd.allreduce(x * 2, op=hvd.Product), pair[:1]),
        "older": (lambda x: hvd.allreduce(x * 2, average=False), pair[:1]),
        "grouped_allreduce": (lambda x, y: hvd.grouped_allreduce([x, y * 2], op=hvd.Sum), pair),
        "broadcast": (lambda x: hvd.broadcast(x * 2, root_rank=size - 1) * 3, pair[:1]),
        "allgather": (lambda x: hvd.allgather(x * 2).sin(), [given(rank, rank + 1, 2)]),
        "grouped_allgather": (lambda x, y: hvd.grouped_allgather([x, y * 2]), pair),
        "alltoall": (lambda x: hvd.alltoall(x * 2), [given(rank, 2 * size)]),
        "splits": (lambda x: hvd.alltoall(x * 2, splits=[1] * size), [given(rank, size + 1, 2)]),
        "reducescatter": (lambda x: hvd.reducescatter(x * 2, op=hvd.Sum), pair[:1]),
        "grouped_reducescatter": (lambda x, y: hvd.grouped_reducescatter([x, y * 2]), pair),
        "place": (lambda x: hvd.allreduce(x * hvd.rank(), op=hvd.Sum) / hvd.size(), pair[:1]),
    }


@there
@pytest.mark.parametrize("name", functions(0, 1))
def test_each(rank, size, name):
    function, inputs = functions(rank, size)[name]
    expected = run(function, inputs)
    must_be_close(run(compiled(function), inputs), expected)
    # Some ranks compile, others do not: they make the same calls.
    must_be_close(run(function if rank % 2 else compiled(function), inputs), expected)


class Everything(torch.nn.Module):
    """Each kind of collective once, and layers between them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

    def forward(self, batch):
        hidden = torch.relu(self.first(batch))
        mean, largest = hidden.mean(0), hidden.amax(0)
        mean, largest = hvd.grouped_allreduce([mean, largest], name="statistics")
        hidden = hvd.broadcast(hidden - hvd.allreduce(mean * largest, op=hvd.Sum), 0)
        hidden = hvd.alltoall(hidden)
        rows = hvd.allgather(self.second(hidden))
        mine = hvd.reducescatter(rows, op=hvd.Sum)
        return mine.sum() + rows.square().mean()


def everything(size, backend=None):
    torch.manual_seed(3)
    model = Everything()
    step = compiled(model, backend) if backend else model
    loss = step(given(hvd.rank(), 3 * size, 4))
    loss.backward()
    return [loss.detach()] + [parameter.grad for parameter in model.parameters()]


@there
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_model_with_everything(size, backend):
    must_be_close(everything(size, backend), everything(size))


def calls_made():
    return sum(hvd.metrics()["all"].get("calls", {}).values())


@there
def test_no_call_is_left_out_or_moved(rank, size):
    """A result that only some ranks use. Names tell which call a rank is at: one that leaves out a
    call, or moves it, would wait for the others for ever."""
    def function(x):
        first = hvd.allreduce(x, op=hvd.Sum, name="first")
        hvd.allreduce(x + 1, op=hvd.Sum, name="of no use")
        second = hvd.allgather(x, name="second")
        return second.sum() + (first.sum() if rank == 0 else 0)

    for backend in ("aot_eager", "inductor"):
        before = calls_made()
        result = compiled(function, backend)(torch.ones(2))
        made = calls_made() - before
        assert result.item() == 2 * size + (2 * size if rank == 0 else 0) and made == 3
        hvd.barrier()


@there
def test_in_place(rank, size):
    def function(x, y, z):
        hvd.allreduce_(x, op=hvd.Sum)
        hvd.broadcast_(y, size - 1)
        both = hvd.grouped_allreduce_([z, x], op=hvd.Sum)
        return both[0] + y

    def fresh():
        return [torch.ones(2), torch.full((2,), float(rank)), torch.ones(2)]

    inputs, others = fresh(), fresh()
    must_be_close([compiled(function)(*inputs), *inputs], [function(*others), *others])


@there
def test_process_sets(rank, size, even_set):
    if rank % 2:
        return

    def function(x):
        part = hvd.reducescatter(x, op=hvd.Sum, process_set=even_set)
        return hvd.allgather(part, process_set=even_set) * even_set.process_set_id

    inputs = [given(rank, 3, 2)]
    must_be_close(run(compiled(function), inputs), run(function, inputs))


@there
def test_shapes_that_change(rank, size):
    def function(x):
        return hvd.allgather(hvd.reducescatter(x * 2, op=hvd.Sum)) + hvd.allreduce(x)

    step = compiled(function, dynamic=True)
    for rows in (size, 2 * size + 1, 5 * size):
        inputs = [given(rank, rows, 2)]
        must_be_close(run(step, inputs), run(function, inputs))


@there
def test_errors(rank, size):
    with pytest.raises(RuntimeError, match="HVD_ERR_INVALID: .*root"):
        compiled(lambda x: hvd.broadcast(x, 99))(torch.ones(2))
    if size == 1:
        return
    with pytest.raises(RuntimeError, match="HVD_ERR_MISMATCH") as raised:
        compiled(lambda x: hvd.allreduce(x, name="uneven"))(torch.ones(2 + rank))
    assert isinstance(hvd.error_of(raised.value), hvd.HorovodInternalError)


@there
def test_export(size):
    class Mean(torch.nn.Module):
        def forward(self, x):
            return hvd.allreduce(x * 2, op=hvd.Sum) + 1

    exported = torch.export.export(Mean(), (torch.ones(2),))
    assert "hvd.allreduce" in exported.graph_module.code
    assert exported.module()(torch.ones(2)).tolist() == [2 * size + 1] * 2


WITHOUT = """
import warnings
import torch
import hvd.torch as hvd
hvd.init()

def function(x):
    return hvd.allreduce(x * 2, op=hvd.Sum) + 1

assert not hvd.operators_built()
with warnings.catch_warnings():
    warnings.simplefilter("error", RuntimeWarning)
    assert function(torch.ones(2)).tolist() == [3, 3]
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for several in (function, lambda x: function(x) - 1):
        x = torch.ones(2, requires_grad=True)
        torch.compile(several, backend="aot_eager")(x).sum().backward()
        assert x.grad.tolist() == [2, 2]
    try:
        torch.compile(function, backend="aot_eager", fullgraph=True)(torch.ones(3))
    except Exception as error:
        assert "torch.ops.hvd are missing" in str(error), error
    else:
        raise AssertionError("there is a whole graph")
ours = [str(one.message) for one in told if "hvd" in str(one.message)]
assert len(ours) == 1 and "/nowhere.so: no such file" in ours[0], ours
print("done")
"""


def test_without_the_operators(rank):
    if rank != 0:
        return
    alone = {name: value for name, value in os.environ.items()
             if not name.startswith(("HVD_", "HOROVOD_"))} | {"HVD_STANDALONE": "1"}
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True,
                          env={**alone, "HVD_TORCH_LIBRARY": "/nowhere.so"})
    assert done.stdout == "done\n", done.stderr


def test_a_whole_step_with_an_optimizer(rank, size):
    """The optimizer and its hooks run beside the graphs, of which none is hvd's."""
    from torch._dynamo.utils import counters

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    hvd.broadcast_parameters(model.state_dict(), 0)
    plain = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                         model.named_parameters())
    other = torch.optim.SGD(plain.parameters(), lr=0.1)
    torch.compiler.reset()
    counters.clear()

    @torch.compile(backend="eager")
    def step(batch):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    for number in range(4):
        step(given(rank + number, 5, 3))
        other.zero_grad()
        plain(torch.cat([given(one + number, 5, 3) for one in range(size)])
              ).square().mean().backward()
        other.step()
    must_be_close(list(model.parameters()), list(plain.parameters()))
    assert counters["stats"]["unique_graphs"] <= 2
