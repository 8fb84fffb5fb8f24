# SPDX-License-Identifier: Apache-2.0
"""The parts that the faces of all frameworks have in common: joining a job, who is in it, process
sets, what this build can do, the reductions and the errors. Each face shows it as its own."""
from ._core.errors import error_of
from .basics import (
    add_process_set,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    metrics,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    remove_process_set,
    rocm_built,
    set_grace,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from .errors import (
    AbortedError,
    DuplicateError,
    Error,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InvalidError,
    MismatchError,
    NotInitializedError,
)
from .ops import Adasum, Average, Max, Min, Product, Sum
from .process_sets import ProcessSet

__all__ = [
    "AbortedError", "Adasum", "Average", "DuplicateError", "Error", "HorovodInternalError",
    "HostsUpdatedInterrupt", "InvalidError", "Max", "Min", "MismatchError",
    "NotInitializedError", "ProcessSet", "Product", "Sum", "add_process_set", "ccl_built",
    "cross_rank", "cross_size", "cuda_built", "ddl_built", "error_of", "global_process_set",
    "gloo_built", "gloo_enabled", "init", "is_homogeneous", "is_initialized", "local_rank",
    "local_size", "metrics", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
    "rank", "remove_process_set", "rocm_built", "set_grace", "shutdown", "size", "start_timeline",
    "stop_timeline",
]
