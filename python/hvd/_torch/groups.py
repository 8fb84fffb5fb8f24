# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's default group across a reset: one on backend "hvd" ends with the epoch and is
made anew in the next. Other backends' are the program's."""
from __future__ import annotations

from datetime import timedelta

import torch.distributed as dist

from ..basics import rank, size


def leave() -> timedelta | None:
    """Before a reset. Returns the group's timeout; None when there is no group of hvd's."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_backend() != "hvd":
        return None
    world = dist.group.WORLD
    timeout: timedelta = world._timeout  # type: ignore[union-attr]  # of backend hvd's group
    for group in list(dist.distributed_c10d._world.pg_map):
        if group.name() == "hvd":
            group.abort()  # the other members may be gone
    dist.destroy_process_group()
    return timeout


def enter(timeout: timedelta | None) -> None:
    """After it. Groups that the program has made besides it makes again itself."""
    if timeout is not None:
        dist.init_process_group("hvd", timeout=timeout, rank=rank(), world_size=size())
