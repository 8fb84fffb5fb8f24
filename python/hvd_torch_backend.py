# SPDX-License-Identifier: Apache-2.0
"""What torch knows of hvd before anybody asks for it: backend "hvd", and `env://` without a port.

The package's entry point `torch.backends` has torch call `register()` in every process that
imports it. So this module imports nothing of hvd's; what is asked for later does.
"""
from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

NAME = "hvd"


def register() -> None:
    """Makes backend and rendezvous known to torch.distributed. Again: nothing."""
    import torch.distributed as dist
    if not dist.is_available() or NAME in dist.Backend.backend_list:
        return
    dist.Backend.register_backend(NAME, _group, extended_api=True, devices=["cpu", "cuda"])
    _answer_env()
    _answer_monitored_barrier()


def _group(options: Any, _: Any) -> Any:
    from hvd.distributed import members, process_group
    return process_group.ProcessGroup(members.join(options))


def _answer_env() -> None:
    """`env://` needs MASTER_PORT, where rank 0 listens. hvdrun opens no port: its ranks meet in the
    job's key-value store. A program, or its user, that sets MASTER_PORT has torch's way."""
    rendezvous: Any = importlib.import_module("torch.distributed.rendezvous")
    handlers = rendezvous._rendezvous_handlers
    before = handlers["env"]

    def env(url: str, timeout: timedelta = rendezvous.default_pg_timeout,
            **more: Any) -> Iterator[tuple[Any, int, int]]:
        if "HVD_LINK" not in os.environ or os.environ.get("MASTER_PORT"):
            yield from before(url, timeout=timeout, **more)
            return
        from hvd.distributed import store
        yield store.at_rendezvous(url, timeout)
        raise RuntimeError("Unable to perform re-rendezvous using env:// method")

    handlers["env"] = env


def _answer_monitored_barrier() -> None:
    """torch has it for gloo's groups alone."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d
    before: Callable[..., None] = dist.monitored_barrier

    def monitored_barrier(group: Any = None, timeout: timedelta | float | None = None,
                          wait_all_ranks: bool = False) -> None:
        mine = group is not dist.GroupMember.NON_GROUP_MEMBER and dist.get_backend(group) == NAME
        if not mine:
            before(group, timeout, wait_all_ranks)
            return
        asked: Any = group or dist.group.WORLD
        asked.monitored_barrier(timeout, wait_all_ranks)

    monitored_barrier.__doc__ = before.__doc__
    dist.monitored_barrier = distributed_c10d.monitored_barrier = monitored_barrier
