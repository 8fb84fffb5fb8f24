# SPDX-License-Identifier: Apache-2.0
"""Elastic training with PyTorch, as Horovod's: `hvd.elastic` of `import hvd.torch as hvd`.

    state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0)

    @hvd.elastic.run
    def train(state): ...
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .. import elastic as _elastic
from .._torch import groups
from .._torch.handlers import (
    ModelStateHandler,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    get_handler_registry,
    set_handler_registry,
)
from .._torch.sampler import ElasticSampler
from .._torch.state import TorchState
from ..elastic import Epoch, ObjectState, State, check_hosts, epoch, is_elastic, run_fn, slot

F = TypeVar("F", bound=Callable[..., object])

__all__ = ["ElasticSampler", "Epoch", "ModelStateHandler", "ObjectState", "OptimizerStateHandler",
           "SamplerStateHandler", "State", "StateHandler", "TorchState", "check_hosts", "epoch",
           "get_handler_registry", "is_elastic", "reset", "run", "run_fn",
           "set_handler_registry", "slot"]


def reset() -> None:
    """See hvd.elastic.reset. A default group of torch.distributed on backend "hvd" is made anew."""
    timeout = groups.leave()
    _elastic.reset()
    groups.enter(timeout)


def run(func: F) -> F:
    """See hvd.elastic.run. DistributedOptimizers begin their next step anew. The function itself
    makes what depends on groups of torch.distributed (DistributedDataParallel, further groups),
    each time it is called."""
    return run_fn(func, reset)
