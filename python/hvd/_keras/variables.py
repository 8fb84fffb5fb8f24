# SPDX-License-Identifier: Apache-2.0
"""Reading and writing the variables of models and optimizers, of either Keras."""
from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from .. import ops as _ops
from .._names import meeting, name_of
from ..basics import global_process_set
from ..process_sets import ProcessSet
from .backends.kinds import Model, Optimizer, Variable

Values = np.ndarray  # of a variable, on the host


def of_model(model: Model) -> list[Variable]:
    """The variables that a model has learned; [] before it is built. Not the states of its random
    numbers: each rank has its own."""
    return list(model.weights) if model.built else []


def of_optimizer(optimizer: Optimizer | None) -> list[Variable]:
    """Its steps, its learning rate, its moments; [] for none. Not the gradients that it adds up
    before they are reduced: each rank has its own."""
    if optimizer is None:
        return []
    found = optimizer.variables
    inner = getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer
    own = {id(each) for each in getattr(inner, "_accumulated_gradients", ())}
    return [each for each in (found() if callable(found) else found) if id(each) not in own]


def broadcast(variables: Sequence[Variable], root_rank: int, name: str | None = None,
              process_set: ProcessSet = global_process_set) -> None:
    """The variables get the values that they have on `root_rank`, a global rank. They meet by their
    names: see hvd._names."""
    values = values_of(variables)
    order = meeting(list(map(name_of, variables)))
    handles = [_ops.broadcast_async(
        values[place], root_rank, None if name is None else f"{name}.{i}", process_set,
        output=values[place], contents=contents)
        for i, (place, contents) in enumerate(zip(*order, strict=True))]
    for handle in handles:
        handle.wait()
    assign(variables, values)


def get(value: object) -> float:
    """The number that a variable or a tensor holds, or that it is."""
    legacy = sys.modules.get("tf_keras")
    if legacy is not None and not _are_keras_3([value]):
        return float(legacy.backend.get_value(value))
    return float(sys.modules["keras"].ops.convert_to_numpy(value))


def scale(variables: Sequence[Variable], factor: float) -> None:
    """Multiplies each."""
    assign(variables, [(value * factor).astype(value.dtype) for value in values_of(variables)])


def values_of(variables: Sequence[Variable]) -> list[Values]:
    """Copies, contiguous: what comes from the others is written into them."""
    legacy = sys.modules.get("tf_keras")
    if legacy is not None and not _are_keras_3(variables):
        found = legacy.backend.batch_get_value(list(variables))
    else:
        found = [sys.modules["keras"].ops.convert_to_numpy(each) for each in variables]
    return [np.array(each, order="C", copy=True) for each in found]


def assign(variables: Sequence[Variable], values: Sequence[Values]) -> None:
    legacy = sys.modules.get("tf_keras")
    if legacy is not None and not _are_keras_3(variables):
        legacy.backend.batch_set_value(list(zip(variables, values, strict=True)))
        return
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _are_keras_3(variables: Sequence[object]) -> bool:
    keras = sys.modules.get("keras")
    kind = getattr(keras, "Variable", None)
    return kind is not None and all(isinstance(each, kind) for each in variables)
