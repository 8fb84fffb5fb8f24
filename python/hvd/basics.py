# SPDX-License-Identifier: Apache-2.0
"""Joining a job, who is in it, what this build can do, timelines and metrics.

Any thread may call any of these.
"""
from __future__ import annotations

import ctypes
import json
import warnings
from collections.abc import Sequence
from typing import Any

from ._core import errors, patience
from ._core.library import LIBRARY
from ._core.runtime import RUNTIME
from .process_sets import ProcessSet

global_process_set: ProcessSet = RUNTIME.sets.world


def init(comm: object = None,
         process_sets: Sequence[ProcessSet] | Sequence[Sequence[int]] | str | None = None) -> None:
    """Joins the job that hvdrun started; returns when all ranks have. Without hvdrun the job is
    this process alone. Initialized already: does nothing. After shutdown(), or where the epoch is
    over since a rank has left it: joins the next epoch.

    `process_sets` are made at once, the same on all ranks, and get the numbers 1, 2, …; "dynamic"
    (Horovod's word) says that there will be more, which needs no saying here. `comm` may be what
    Horovod takes, as long as it means all ranks. LaunchError when the ranks differ in what they
    must have alike. In an elastic job a process that came too late, or is no longer needed, ends
    here in good order (SystemExit, code 0).
    """
    try:
        RUNTIME.init(comm, process_sets)
    except errors.RemovedError:
        raise SystemExit(0) from None


def shutdown() -> None:
    """Leaves the job once every rank does. Calls that are pending end with AbortedError. A process
    that ends without it leaves then."""
    RUNTIME.shutdown()


def is_initialized() -> bool:
    """Whether this process is in a job. The child of a fork, which can use nothing else, says what
    its parent was, and has the parent's rank, size and so on."""
    return bool(LIBRARY.held.hvd_is_initialized()) or RUNTIME.is_inherited()


def rank() -> int:
    """This process's number in the job, from 0. As for all of these: NotInitializedError, a
    ValueError, outside a job."""
    return RUNTIME.place("hvd_rank")


def size() -> int:
    """The number of ranks."""
    return RUNTIME.place("hvd_size")


def local_rank() -> int:
    """This rank's number among those of its host."""
    return RUNTIME.place("hvd_local_rank")


def local_size() -> int:
    """The number of ranks on this host."""
    return RUNTIME.place("hvd_local_size")


def cross_rank() -> int:
    """This host's number among those that have this local rank."""
    return RUNTIME.place("hvd_cross_rank")


def cross_size() -> int:
    """The number of hosts that have this local rank."""
    return RUNTIME.place("hvd_cross_size")


def is_homogeneous() -> bool:
    """Whether all hosts have the same number of ranks."""
    return RUNTIME.place("hvd_is_homogeneous") == 1


# ---- process sets ----

def add_process_set(process_set: ProcessSet | Sequence[int], *, members_only: bool = False,
                    key: str = "") -> ProcessSet:
    """Registers a set, or the ranks of one. Every rank of the job calls it alike, members or not.
    DuplicateError, a ValueError, when there is a set of these ranks; at most 15 at a time.

    With `members_only` the members alone call it; `key` tells sets of the same ranks apart, and
    each rank may be in 48 of them. They are removed by their members alone, too."""
    return RUNTIME.sets.add(process_set, members_only, key)


def remove_process_set(process_set: ProcessSet) -> bool:
    """Every rank of the job calls it alike. False when the set is not registered, or is the global
    one."""
    return RUNTIME.sets.remove(process_set)


def get_process_set_ids_and_ranks() -> dict[int, list[int]]:
    """All sets: number → global ranks."""
    return RUNTIME.sets.by_id()


# ---- what this build can do ----

def build_info() -> dict[str, str]:
    """libhvd's capabilities by name, as `hvdrun --check-build` lists them. Needs no init()."""
    text = LIBRARY.held.hvd_build_info().decode()
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def library_version() -> str:
    """libhvd's version."""
    return str(LIBRARY.held.hvd_version().decode())


def mpi_built(verbose: bool = False) -> bool:
    """False: hvd uses no MPI. (`verbose` has nothing to add.)"""
    return False


def mpi_enabled() -> bool:
    """False: hvd uses no MPI."""
    return False


def mpi_threads_supported() -> bool:
    """True: any number of threads may use hvd at once, which is what programs ask this for."""
    if not is_initialized():
        raise errors.not_initialized()
    return True


def gloo_built(verbose: bool = False) -> bool:
    """True: what Horovod does by gloo (CPU tensors, several hosts, no MPI) hvd does by itself, and
    programs choose their way by this answer."""
    return True


def gloo_enabled() -> bool:
    """As gloo_built."""
    return True


def nccl_built(verbose: bool = False) -> int:
    """0: what Horovod's programs ask this for (how Adasum averages within a host) is not so in
    hvd, whatever library moves the bytes."""
    return 0


def ddl_built(verbose: bool = False) -> bool:
    """False: DDL has gone."""
    return False


def ccl_built(verbose: bool = False) -> bool:
    """False: hvd does not use oneCCL."""
    return False


def cuda_built(verbose: bool = False) -> bool:
    """True: collectives take tensors on NVIDIA's GPUs. Whether there are any, and a driver,
    build_info() says."""
    return True


def rocm_built(verbose: bool = False) -> bool:
    """False: hvd does not use AMD's GPUs."""
    return False


# ---- the end of the job ----

def set_grace(seconds: float) -> None:
    """When the job is to end (Ctrl-C, TERM to hvdrun), this rank needs so long between its TERM and
    its end, for a last checkpoint, instead of hvdrun's default of 5 s. `--grace` and HVD_GRACE are
    the person's word, and count instead. Until then, or until a rank is gone, collectives work:
    ranks may agree in them on what to save. Ask between init() and the training."""
    LIBRARY.check(LIBRARY.released.hvd_set_grace(float(seconds)))


# ---- seeing inside ----

def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """hvdrun writes what all ranks do from now on to `file_path`, on its host. UnsupportedError
    without hvdrun, InvalidError when it cannot be written. There are no cycles to mark."""
    if mark_cycles:
        warnings.warn("hvd has no cycles: there is nothing to mark in the timeline", stacklevel=2)
    patience.call(lambda: LIBRARY.released.hvd_start_timeline(str(file_path).encode()))


def stop_timeline() -> None:
    """Returns when the file is complete."""
    patience.call(LIBRARY.released.hvd_stop_timeline)


def metrics() -> dict[str, Any]:
    """Counters and histograms of this rank."""
    size = ctypes.c_size_t()
    LIBRARY.check(LIBRARY.held.hvd_metrics(None, ctypes.byref(size)))
    for _ in range(10):  # they may grow between two calls
        size.value += 256
        buffer = ctypes.create_string_buffer(size.value)
        status = LIBRARY.held.hvd_metrics(buffer, ctypes.byref(size))
        if not status:
            break
    LIBRARY.check(status)
    return dict(json.loads(buffer.value))
