"""torch.distributed over hvd: `init_process_group("hvd")`.

With hvd's package installed torch finds the backend by itself; from a checkout: `import
hvd.distributed` first. CPU tensors; for GPUs beside it: `init_process_group("cpu:hvd,cuda:nccl")`.
"""
from __future__ import annotations

from typing import Any

import torch.distributed as dist

__all__ = ["register"]

NAME = "hvd"


def register() -> None:
    """Makes the backend known to torch.distributed. Again: nothing."""
    if not dist.is_available() or NAME in dist.Backend.backend_list:
        return
    dist.Backend.register_backend(NAME, _group, extended_api=True, devices=["cpu"])


def _group(options: Any, _: Any) -> dist.ProcessGroup:
    # The group's modules load libhvd; a program that asks for no group of ours needs none of it.
    from . import members, process_group
    return process_group.ProcessGroup(members.join(options))


register()
