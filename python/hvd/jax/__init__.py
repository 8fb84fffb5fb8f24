"""hvd for JAX: collectives on pytrees, also within compiled programs.

    import hvd.jax as hvd

    hvd.init()
    params = hvd.broadcast_parameters(params)
    optimizer = hvd.DistributedOptimizer(optax.adam(1e-3))

    @jax.jit
    def step(params, state, batch):
        loss, gradients = jax.value_and_grad(loss_of)(params, batch)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, hvd.allreduce(loss)

Arrays are in the CPU's memory. What goes wrong while a program runs is an error of JAX's;
`error_of` makes hvd's own of it.
"""
from .._core.errors import error_of
from ..basics import (
    add_process_set,
    cross_rank,
    cross_size,
    global_process_set,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    metrics,
    rank,
    remove_process_set,
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
from ..objects import allgather_object, broadcast_object
from ..ops import (
    Adasum,
    Average,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    Max,
    Min,
    Product,
    Sum,
    barrier,
    join,
)
from ..process_sets import ProcessSet
from . import cluster  # noqa: F401
from .collectives import allgather, allreduce, alltoall, broadcast, reducescatter
from .functions import DistributedOptimizer, broadcast_parameters

__all__ = [
    "AbortedError", "Adasum", "Average", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "DistributedOptimizer", "DuplicateError", "Error", "HorovodInternalError", "InvalidError",
    "Max", "Min", "MismatchError", "NotInitializedError", "ProcessSet", "Product", "Sum",
    "add_process_set", "allgather", "allgather_object", "allreduce", "alltoall", "barrier",
    "broadcast", "broadcast_object", "broadcast_parameters", "cross_rank", "cross_size",
    "error_of", "global_process_set", "init", "is_homogeneous", "is_initialized", "join",
    "local_rank", "local_size", "metrics", "rank", "reducescatter", "remove_process_set",
    "shutdown", "size", "start_timeline", "stop_timeline",
]
