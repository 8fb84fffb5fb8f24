# SPDX-License-Identifier: Apache-2.0
"""The handlers of signals run in every function of hvd.torch that waits for other ranks."""
import inspect

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from interrupted import must_be_heard  # noqa: E402

import hvd.torch as hvd  # noqa: E402


def ones():
    return torch.ones(5, requires_grad=True)


def several_ones():
    return [torch.ones(5), torch.ones(2, 3)]


def rows():
    return torch.ones(hvd.size(), 3, requires_grad=True)


def backward(make):
    """The gradient of what this makes is a collective, too: that is the one that waits."""
    def call():
        make().sum().backward()
    return call


def model():
    torch.manual_seed(1)
    return torch.nn.Linear(3, 2)


def train():
    net = model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1),
                                         named_parameters=net.named_parameters())
    for _ in range(3):  # the first step goes by names, the others by buckets
        net(torch.ones(4, 3)).sum().backward()
        optimizer.step()


def train_by_adasum():
    net = model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=0.1),
                                         named_parameters=net.named_parameters(), op=hvd.Adasum)
    net(torch.ones(4, 3)).sum().backward()
    optimizer.step()


def optimizer_with_state():
    net = model()
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    return optimizer


def sparse():
    return torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (4,))


def normalize():
    norm = hvd.SyncBatchNorm(3)
    norm(rows()).sum().backward()


def state():
    net = model()
    return hvd.elastic.TorchState(net, torch.optim.SGD(net.parameters(), lr=0.1), step=1)


CALLS = {
    "allreduce": lambda: hvd.allreduce(ones()),
    "allreduce_": lambda: hvd.allreduce_(torch.ones(5)),
    "allreduce_async": lambda: hvd.synchronize(hvd.allreduce_async(torch.ones(5))),
    "allreduce_async_": lambda: hvd.synchronize(hvd.allreduce_async_(torch.ones(5))),
    "grouped_allreduce": lambda: hvd.grouped_allreduce(several_ones()),
    "grouped_allreduce_": lambda: hvd.grouped_allreduce_(several_ones()),
    "grouped_allreduce_async":
        lambda: hvd.synchronize(hvd.grouped_allreduce_async(several_ones())),
    "grouped_allreduce_async_":
        lambda: hvd.synchronize(hvd.grouped_allreduce_async_(several_ones())),
    "allgather": lambda: hvd.allgather(ones()),
    "allgather_async": lambda: hvd.synchronize(hvd.allgather_async(torch.ones(5))),
    "grouped_allgather": lambda: hvd.grouped_allgather(several_ones()),
    "grouped_allgather_async":
        lambda: hvd.synchronize(hvd.grouped_allgather_async(several_ones())),
    "broadcast": lambda: hvd.broadcast(ones(), 1),
    "broadcast_": lambda: hvd.broadcast_(torch.ones(5), 1),
    "broadcast_async": lambda: hvd.synchronize(hvd.broadcast_async(torch.ones(5), 1)),
    "broadcast_async_": lambda: hvd.synchronize(hvd.broadcast_async_(torch.ones(5), 1)),
    "alltoall": lambda: hvd.alltoall(rows()),
    "alltoall_async": lambda: hvd.synchronize(hvd.alltoall_async(torch.ones(hvd.size(), 3))),
    "reducescatter": lambda: hvd.reducescatter(rows()),
    "reducescatter_async":
        lambda: hvd.synchronize(hvd.reducescatter_async(torch.ones(hvd.size(), 3))),
    "grouped_reducescatter": lambda: hvd.grouped_reducescatter([torch.ones(hvd.size(), 3)] * 2),
    "grouped_reducescatter_async": lambda: hvd.synchronize(
        hvd.grouped_reducescatter_async([torch.ones(hvd.size(), 3)] * 2)),
    "sparse_allreduce_async": lambda: hvd.synchronize(
        hvd.sparse_allreduce_async(sparse(), "sparse", hvd.Sum)),
    "broadcast_object": lambda: hvd.broadcast_object({"a": 1}, 1),
    "allgather_object": lambda: hvd.allgather_object({"a": 1}),
    "broadcast_parameters": lambda: hvd.broadcast_parameters(model().state_dict(), 1),
    "broadcast_optimizer_state":
        lambda: hvd.broadcast_optimizer_state(optimizer_with_state(), 1),
    "DistributedOptimizer": train,
    "DistributedOptimizer, Adasum": train_by_adasum,
    "SyncBatchNorm": normalize,
    "barrier": hvd.barrier,
    "join": hvd.join,
    "elastic.TorchState.commit": lambda: state().commit(),
    "elastic.TorchState.sync": lambda: state().sync(),
}
# They wait for no other rank, or are those of hvd, which its own test goes through.
OTHERS = {"Compression", "ProcessSet", "add_process_set", "remove_process_set", "error_of", "init",
          "shutdown", "metrics", "operators_built", "poll", "start_timeline", "stop_timeline",
          "synchronize", "rank", "size", "local_rank", "local_size", "cross_rank", "cross_size",
          "is_homogeneous", "is_initialized", "mpi_built", "mpi_enabled", "mpi_threads_supported",
          "gloo_built", "gloo_enabled", "nccl_built", "ddl_built", "ccl_built", "cuda_built",
          "rocm_built", "set_grace"}


def test_each_public_function_is_here():
    calls = {name for name in hvd.__all__ if callable(getattr(hvd, name)) and not (
        inspect.isclass(getattr(hvd, name)) and issubclass(getattr(hvd, name), BaseException))}
    assert calls == (set(CALLS) & calls) | OTHERS


@pytest.mark.parametrize("what", CALLS)
def test_a_handler_runs(what, several):
    must_be_heard(f"torch.{what}", CALLS[what])


GRADIENTS = {
    "allreduce": lambda tensor: hvd.allreduce(tensor),
    "grouped_allreduce": lambda tensor: hvd.grouped_allreduce([tensor, tensor])[1],
    "allgather": lambda tensor: hvd.allgather(tensor),
    "broadcast": lambda tensor: hvd.broadcast(tensor, 1),
    "alltoall": lambda tensor: hvd.alltoall(tensor),
    "reducescatter": lambda tensor: hvd.reducescatter(tensor),
}


@pytest.mark.parametrize("what", GRADIENTS)
def test_a_handler_runs_in_the_gradient(what, several):
    result = GRADIENTS[what](rows())
    must_be_heard(f"torch.gradient.{what}", lambda: result.sum().backward())
