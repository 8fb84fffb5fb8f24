# SPDX-License-Identifier: Apache-2.0
"""hvd for MXNet, as Horovod's: `import hvd.mxnet as hvd`.

    hvd.init()
    net, loss_of = ...
    hvd.broadcast_parameters(net.collect_params(), root_rank=0)
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

Arrays are in the CPU's memory.
"""
from .._face import *  # noqa: F403
from .._face import __all__ as _common
from .compression import Compression
from .functions import allgather_object, broadcast_object, broadcast_parameters
from .mpi_ops import (
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
    *_common,
    "Compression", "DistributedOptimizer", "DistributedTrainer", "allgather",
    "allgather_object", "allreduce", "allreduce_", "alltoall", "broadcast", "broadcast_",
    "broadcast_object", "broadcast_parameters", "grouped_allgather", "grouped_allreduce",
    "grouped_allreduce_", "grouped_reducescatter", "reducescatter",
]
