# SPDX-License-Identifier: Apache-2.0
"""The cluster that jax.distributed.initialize() finds out by itself under hvdrun: where the ranks
meet, how many they are and which this is.

JAX looks through the kinds of clusters that it knows when it is asked; this makes hvdrun the first
of them, since a job may lie within one of Slurm's. JAX asks no entry point before that, so a
program imports hvd.jax first.
"""
from __future__ import annotations

import itertools
import os
import socket

from jax._src.clusters import ClusterEnv

from ..store import Store

_DEFAULT_SECONDS = 300
_meetings = itertools.count(1)
_held: list[socket.socket] = []  # so that nobody else is given the port before JAX listens there


class HvdrunCluster(ClusterEnv):  # type: ignore[no-untyped-call]  # its __init_subclass__
    """As hvdd gives it to each rank."""

    name = "hvdrun"

    @classmethod
    def is_env_present(cls) -> bool:
        return "HVD_LINK" in os.environ

    @classmethod
    def get_coordinator_address(cls, timeout_secs: int | None = None,
                                override_coordinator_port: str | None = None, **_: object) -> str:
        """Rank 0 chooses a port, and tells it through the job's store: once for each time that the
        ranks meet."""
        if override_coordinator_port:
            return _address(int(override_coordinator_port))
        key = f"jax/coordinator/{next(_meetings)}"
        store = Store(_DEFAULT_SECONDS if timeout_secs is None else timeout_secs)
        if cls.get_process_id() == 0:
            store.set(key, _address(_free_port()))
        return store.get(key).decode()

    @classmethod
    def get_process_count(cls) -> int:
        return int(os.environ["HVD_SIZE"])

    @classmethod
    def get_process_id(cls) -> int:
        return int(os.environ["HVD_RANK"])

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """The GPU of this rank's slot, where it sees those of all; None: all that it sees."""
        gpus = [gpu for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpu]
        if len(gpus) < max(2, int(os.environ["HVD_LOCAL_SIZE"])):
            return None
        return int(os.environ["HVD_LOCAL_RANK"])


def _address(port: int) -> str:
    host = os.environ["MASTER_ADDR"]
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def _free_port() -> int:
    """On all of the host's addresses, as JAX listens."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as gRPC's do
    taken.bind(("", 0))
    _held.append(taken)
    return int(taken.getsockname()[1])


def _come_first() -> None:
    """A class of this kind makes itself known as the last."""
    kinds: list[type] = getattr(ClusterEnv, "_cluster_types", [])
    if HvdrunCluster in kinds:
        kinds.remove(HvdrunCluster)
        kinds.insert(0, HvdrunCluster)


_come_first()
