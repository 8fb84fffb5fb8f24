# SPDX-License-Identifier: Apache-2.0
"""torchrun_script BACKEND [--port | --die]: a program as torchrun's users write them.

--port: its ranks agree on a port of their own for MASTER_PORT. --die: rank 1 kills itself while
the others wait for it.
"""
import contextlib
import os
import signal
import socket
import sys

import torch
import torch.distributed as dist

with contextlib.suppress(ImportError):
    import hvd.distributed  # noqa: F401


def listening():
    """The TCP ports on which this process listens."""
    with open("/proc/self/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    mine = set()
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            mine.add(os.readlink(f"/proc/self/fd/{entry}"))
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in mine]


def agree_on_a_port():
    from hvd.store import Store
    if os.environ["RANK"] == "0":
        with socket.socket() as probe:
            probe.bind(("", 0))
            Store().set("port", str(probe.getsockname()[1]))
    os.environ["MASTER_PORT"] = Store().get("port").decode()
    os.environ["MASTER_ADDR"] = "127.0.0.1"


def meet_without_a_port():
    """Does what init_process_group does first; the groups' own connections come later."""
    before = listening()
    store, rank, size = next(dist.rendezvous("env://"))
    store.set(f"rank {rank}", b"\0here")
    assert all(store.get(f"rank {one}") == b"\0here" for one in range(size))
    assert store.add("count", 2) in range(2, 2 * size + 1, 2)
    assert listening() == before
    print("no rendezvous listens", flush=True)


def main():
    backend, more = sys.argv[1], sys.argv[2:]
    assert "MASTER_PORT" not in os.environ
    if "--port" in more:
        agree_on_a_port()
    if "--port" not in more:
        meet_without_a_port()
    dist.init_process_group(backend)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    assert int(os.environ["LOCAL_RANK"]) < int(os.environ["LOCAL_WORLD_SIZE"])
    total = torch.full((4,), float(rank))
    dist.all_reduce(total)
    assert total.tolist() == [float(sum(range(size)))] * 4
    if "--die" in more and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
