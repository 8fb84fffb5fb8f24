# SPDX-License-Identifier: Apache-2.0
"""Elastic training with TensorFlow, as Horovod's."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from .._keras.elastic import KerasState, Variables
from .._keras.variables import Values
from .._state import Part
from ..elastic import ObjectState, State, run

__all__ = ["ObjectState", "State", "TensorFlowKerasState", "TensorFlowState", "run"]

TensorFlowKerasState = KerasState


class TensorFlowState(ObjectState):
    """The state that training goes on with: variables, and whatever keywords there are. `variables`
    None: TensorFlow 1's global ones. `session`: for graphs of TensorFlow 1; None: the default one
    there is."""

    def __init__(self, variables: Sequence[tf.Variable] | None = None,
                 session: tf.compat.v1.Session | None = None,
                 **kwargs: Any) -> None:
        self.variables = list(variables or tf.compat.v1.global_variables())
        self.session = session or tf.compat.v1.get_default_session()
        self._variables = Variables(self._read, self._write)
        super().__init__(**kwargs)

    def _read(self) -> list[Values]:
        if self.session is not None:
            return list(self.session.run(self.variables))
        return [variable.numpy() for variable in self.variables]

    def _write(self, values: list[Values]) -> None:
        for variable, value in zip(self.variables, values, strict=True):
            if self.session is not None:
                variable.load(value, self.session)
            else:
                variable.assign(value)

    def _parts(self) -> dict[str, Part]:
        return {"hvd.variables": self._variables, **super()._parts()}
