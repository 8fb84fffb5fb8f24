# SPDX-License-Identifier: Apache-2.0
"""The handlers of signals run in every function of torch.distributed that waits for other ranks, on
backend "hvd"."""
import datetime

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
import torch.distributed as dist  # noqa: E402
from interrupted import must_be_heard  # noqa: E402

import hvd  # noqa: E402
import hvd.distributed  # noqa: E402, F401

if not dist.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)


@pytest.fixture(scope="module", autouse=True)
def group(job):
    dist.init_process_group("hvd")
    yield
    dist.destroy_process_group()


def ones():
    return torch.ones(6)


def size():
    return dist.get_world_size()


def at_root(value):
    """Rank 1 is the root: rank 0 waits for it."""
    return value if dist.get_rank() == 1 else None


def tell(work):
    return work.wait()


def many(count):
    return [ones() for _ in range(count)]


def objects():
    return [{"a": dist.get_rank()}]


def gather_object():
    dist.gather_object("one", [None] * size() if dist.get_rank() == 0 else None, dst=0)


GROUPS = []


def between_two(mine, others):
    return mine, lambda: others() if dist.get_rank() == 1 else None


CALLS = {
    "all_reduce": lambda: dist.all_reduce(ones()),
    "all_reduce, async": lambda: tell(dist.all_reduce(ones(), async_op=True)),
    "all_reduce_coalesced": lambda: dist.all_reduce_coalesced(many(2)),
    "reduce": lambda: dist.reduce(ones(), 0),
    "broadcast": lambda: dist.broadcast(ones(), 1),
    "all_gather": lambda: dist.all_gather(many(size()), ones()),
    "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(torch.ones(6 * size()), ones()),
    "gather": lambda: dist.gather(ones(), many(size()) if dist.get_rank() == 0 else None, 0),
    "scatter": lambda: dist.scatter(ones(), at_root(many(size())), 1),
    "reduce_scatter": lambda: dist.reduce_scatter(ones(), many(size())),
    "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(ones(), torch.ones(6 * size())),
    "all_to_all": lambda: dist.all_to_all(many(size()), many(size())),
    "all_to_all_single": lambda: dist.all_to_all_single(torch.ones(size()), torch.ones(size())),
    "send": between_two(lambda: dist.send(torch.ones(1 << 20), 1),
                        lambda: dist.recv(torch.ones(1 << 20), 0)),
    "recv": between_two(lambda: dist.recv(ones(), 1), lambda: dist.send(ones(), 0)),
    "isend": between_two(lambda: tell(dist.isend(torch.ones(1 << 20), 1)),
                         lambda: dist.recv(torch.ones(1 << 20), 0)),
    "irecv": between_two(lambda: tell(dist.irecv(ones(), 1)), lambda: dist.send(ones(), 0)),
    "batch_isend_irecv": between_two(
        lambda: [tell(each) for each in dist.batch_isend_irecv(
            [dist.P2POp(dist.irecv, ones(), 1)])],
        lambda: dist.send(ones(), 0)),
    "barrier": dist.barrier,
    "barrier, async": lambda: tell(dist.barrier(async_op=True)),
    "monitored_barrier": lambda: dist.monitored_barrier(timeout=datetime.timedelta(minutes=5)),
    "all_gather_object": lambda: dist.all_gather_object([None] * size(), "one"),
    "broadcast_object_list": lambda: dist.broadcast_object_list(objects(), 1),
    "scatter_object_list":
        lambda: dist.scatter_object_list([None], at_root(["one"] * size()), 1),
    "gather_object": gather_object,
    "send_object_list": between_two(
        lambda: dist.recv_object_list(objects(), 1), lambda: dist.send_object_list(objects(), 0)),
    "new_group": lambda: GROUPS.append(dist.new_group([0, 1])),
    "barrier of a group": between_two(lambda: dist.barrier(group=GROUPS[-1]),
                                      lambda: dist.barrier(group=GROUPS[-1])),
    "destroy_process_group of a group": between_two(
        lambda: dist.destroy_process_group(GROUPS[-1]),
        lambda: dist.destroy_process_group(GROUPS[-1])),
    "new_subgroups": lambda: dist.new_subgroups_by_enumeration([[0, 1]]),
    "destroy_process_group": dist.destroy_process_group,
    "init_process_group": lambda: dist.init_process_group("hvd"),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_handler_runs(what, several):
    given = CALLS[what]
    must_be_heard(f"distributed.{what}", *(given if isinstance(given, tuple) else (given,)))
