"""hvd for MXNet, as Horovod's: `import hvd.mxnet as hvd`.

    hvd.init()
    net, loss_of = ...
    hvd.broadcast_parameters(net.collect_params(), root_rank=0)
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

Arrays are in the CPU's memory.
"""
from .._core.errors import error_of
from ..basics import (
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
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from ..errors import (
    AbortedError,
    DuplicateError,
    Error,
    HorovodInternalError,
    InvalidError,
    MismatchError,
    NotInitializedError,
)
from ..process_sets import ProcessSet
from .compression import Compression
from .functions import allgather_object, broadcast_object, broadcast_parameters
from .mpi_ops import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allreduce,
    allreduce_,
    alltoall,
    broadcast,
    broadcast_,
    grouped_allgather,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_reducescatter,
    reducescatter,
)
from .optimizer import DistributedOptimizer
from .trainer import DistributedTrainer

__all__ = [
    "AbortedError", "Adasum", "Average", "Compression", "DistributedOptimizer",
    "DistributedTrainer", "DuplicateError", "Error", "HorovodInternalError", "InvalidError", "Max",
    "Min", "MismatchError", "NotInitializedError", "ProcessSet", "Product", "Sum",
    "add_process_set", "allgather", "allgather_object", "allreduce", "allreduce_", "alltoall",
    "broadcast", "broadcast_", "broadcast_object", "broadcast_parameters", "ccl_built",
    "cross_rank", "cross_size", "cuda_built", "ddl_built", "error_of", "global_process_set",
    "gloo_built", "gloo_enabled", "grouped_allgather", "grouped_allreduce", "grouped_allreduce_",
    "grouped_reducescatter", "init", "is_homogeneous", "is_initialized", "local_rank",
    "local_size", "metrics", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
    "rank", "reducescatter", "remove_process_set", "rocm_built", "shutdown", "size",
    "start_timeline", "stop_timeline",
]
