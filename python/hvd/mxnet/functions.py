# SPDX-License-Identifier: Apache-2.0
"""Making all ranks begin alike: parameters and objects."""
from __future__ import annotations

from typing import Any

from mxnet.gluon.parameter import DeferredInitializationError, Parameter, ParameterDict

from .. import objects
from ..basics import size
from .mpi_ops import broadcast_

__all__ = ["allgather_object", "broadcast_object", "broadcast_parameters"]

allgather_object = objects.allgather_object
broadcast_object = objects.broadcast_object


def broadcast_parameters(params: Any, root_rank: int = 0, prefix: str | None = None) -> None:
    """Copies parameters from `root_rank` to all, in place. `params`: a block's collect_params(), or
    a dict of Parameters or NDArrays. Parameters whose shapes are not known yet are copied when
    MXNet initializes them. `prefix` tells several such calls under way apart."""
    if not isinstance(params, (dict, ParameterDict)):
        raise ValueError(f"invalid params of type: {type(params)}")
    if size() == 1:
        return
    for name, p in sorted(params.items()):
        whole = f"{prefix or ''}{name}"
        if not isinstance(p, Parameter):
            broadcast_(p, root_rank, whole)
            continue
        try:
            _broadcast_parameter(p, root_rank, whole)
        except DeferredInitializationError:
            _broadcast_when_initialized(p, root_rank, whole)


def _broadcast_parameter(p: Parameter, root_rank: int, name: str) -> None:
    first, *others = p.list_data()
    broadcast_(first, root_rank, name)
    for other in others:  # of other contexts
        first.copyto(other)


def _broadcast_when_initialized(p: Parameter, root_rank: int, name: str) -> None:
    """The parameter has a method of its own until then."""
    initialize = p._init_impl

    def initialize_and_broadcast(data: object, contexts: object) -> None:
        if vars(p).get("_init_impl") is initialize_and_broadcast:
            del p._init_impl
        initialize(data, contexts)
        _broadcast_parameter(p, root_rank, name)

    p._init_impl = initialize_and_broadcast
