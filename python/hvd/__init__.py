# SPDX-License-Identifier: Apache-2.0
"""hvd: data-parallel training on many hosts.

    import numpy as np
    import hvd

    hvd.init()
    total = hvd.allreduce(np.ones(3, "float32"), op=hvd.Sum)

Start it with `hvdrun -np 4 python train.py`. PyTorch: `import hvd.torch as hvd`, as Horovod's.
"""
from typing import TYPE_CHECKING

from . import elastic
from ._run import run
from .basics import (
    add_process_set,
    build_info,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    get_process_set_ids_and_ranks,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    library_version,
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
from .buckets import Bucket
from .errors import (
    AbortedError,
    DuplicateError,
    Error,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InternalError,
    InvalidError,
    JobError,
    LaunchError,
    MismatchError,
    NotInitializedError,
    RankError,
    RemovedError,
    TimedOutError,
    UnsupportedError,
)
from .objects import allgather_object, broadcast_object
from .ops import (
    Adasum,
    Average,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allgather_async,
    alloc,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    join,
    join_async,
    on_stream,
    poll,
    recv,
    recv_async,
    reducescatter,
    reducescatter_async,
    send,
    send_async,
    synchronize,
    wait,
)
from .process_sets import ProcessSet
from .store import Store

if TYPE_CHECKING:
    __version__: str
else:
    def __getattr__(name: str) -> str:
        """Answers for __version__, which is libhvd's: the library is loaded when somebody asks."""
        if name == "__version__":
            return library_version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AbortedError", "Adasum", "Average", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Bucket",
    "DuplicateError", "Error",
    "HorovodInternalError", "HostsUpdatedInterrupt", "InternalError", "InvalidError", "JobError",
    "LaunchError", "Max", "Min", "MismatchError", "NotInitializedError", "ProcessSet", "Product",
    "RankError", "RemovedError", "Store", "Sum", "TimedOutError", "UnsupportedError",
    "add_process_set", "allgather", "allgather_async", "allgather_object", "alloc", "allreduce",
    "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async",
    "barrier", "broadcast", "broadcast_", "broadcast_async", "broadcast_async_",
    "broadcast_object", "build_info", "ccl_built", "cross_rank", "cross_size", "cuda_built",
    "ddl_built", "elastic", "get_process_set_ids_and_ranks", "global_process_set", "gloo_built",
    "gloo_enabled", "grouped_allgather", "grouped_allgather_async", "grouped_allreduce",
    "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_",
    "grouped_reducescatter", "grouped_reducescatter_async", "init", "is_homogeneous",
    "is_initialized", "join", "join_async", "library_version", "local_rank", "local_size",
    "metrics",
    "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built", "on_stream", "poll", "rank",
    "recv",
    "recv_async", "reducescatter", "reducescatter_async", "remove_process_set", "rocm_built", "run",
    "send", "send_async", "set_grace", "shutdown", "size", "start_timeline", "stop_timeline",
    "synchronize", "wait",
]
