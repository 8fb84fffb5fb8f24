# SPDX-License-Identifier: Apache-2.0
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

Arrays are in the CPU's memory. An error while a program runs is one of JAX's; `error_of` makes
hvd's own of it.
"""
from .._face import *  # noqa: F403
from .._face import __all__ as _common
from ..objects import allgather_object, broadcast_object
from ..ops import BitwiseAnd, BitwiseOr, BitwiseXor, barrier, join
from . import cluster  # noqa: F401
from .collectives import allgather, allreduce, alltoall, broadcast, reducescatter
from .functions import DistributedOptimizer, broadcast_parameters

__all__ = [
    *_common,
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "DistributedOptimizer", "allgather",
    "allgather_object", "allreduce", "alltoall", "barrier", "broadcast", "broadcast_object",
    "broadcast_parameters", "join", "reducescatter",
]
