# SPDX-License-Identifier: Apache-2.0
"""Elastic states of Keras' models, and their callbacks without the base class."""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from .._core import abi
from .._elastic.box import Entry
from .._state import ObjectState, Part
from . import variables
from .backends.kinds import Logs, Model, Optimizer, Variable
from .variables import Values


class Variables:
    """A part of a state: variables, whose values are pickled. `read` and `write` are all of
    them."""

    def __init__(self, read: Callable[[], list[Values]],
                 write: Callable[[list[Values]], None]) -> None:
        self._read = read
        self._write = write

    def entries(self) -> dict[str, Entry]:
        return {}

    def outline(self) -> list[Values]:
        return self._read()

    def load(self, outline: list[Values], held: dict[str, abi.TensorStruct]) -> None:
        self._write(outline)

    def level(self, root: int, all_of_it: bool) -> None:
        """They are within the outlines."""

    def meet(self) -> None:
        """Each rank has the same."""


class KerasState(ObjectState):
    """The state that training goes on with: a model and its optimizer (if it is not compiled into
    the model), and whatever keywords there are. The model must be built, ValueError otherwise.
    `backend` has no use: TensorFlow 1's sessions have gone."""

    def __init__(self, model: Model, optimizer: Optimizer | None = None, backend: object = None,
                 **kwargs: Any) -> None:
        if not getattr(model, "built", True):
            raise ValueError("the model must be built before it is put into a state: "
                             "model.build(input_shape)")
        self.model = model
        self.optimizer = optimizer or getattr(model, "optimizer", None)
        self.backend = backend
        self._build_optimizer()
        self._variables = Variables(self._read, self._write)
        super().__init__(**kwargs)

    def _build_optimizer(self) -> None:
        # A new process has what those have that have taken steps. Legacy: tf_keras' optimizers of
        # old.
        build = getattr(self.optimizer, "build",
                        getattr(self.optimizer, "_create_all_weights", None))
        if build is not None:
            with contextlib.suppress(NotImplementedError):
                build(self.model.trainable_variables)

    def _all(self) -> list[Variable]:
        found = [*variables.of_model(self.model), *variables.of_optimizer(self.optimizer)]
        rate = getattr(self.optimizer, "learning_rate", None)
        if rate is not None and hasattr(rate, "assign") and all(rate is not each for each in found):
            found.append(rate)  # which tf_keras does not count among an optimizer's variables
        return found

    def _read(self) -> list[Values]:
        synced = getattr(self.model, "jax_state_sync", None)
        if synced is not None:
            synced()  # while fit() runs on JAX its step has the values
        return variables.values_of(self._all())

    def _write(self, values: list[Values]) -> None:
        there = self._all()
        if len(there) != len(values):
            raise ValueError(f"the state has {len(values)} variables, model and optimizer here "
                             f"{len(there)}: let the optimizer take a step, or build it, before "
                             "the state is made")
        variables.assign(there, values)

    def _parts(self) -> dict[str, Part]:
        return {"hvd.variables": self._variables, **super()._parts()}


class CommitState:
    """Commits the state behind every `batches_per_commit` batches, and at the end of each
    epoch."""

    def __init__(self, state: ObjectState, batches_per_commit: int = 1) -> None:
        super().__init__()
        self.state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Logs = None) -> None:
        self.batches_remaining = self.batches_per_commit  # the same on ranks that are new

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.state.commit()


class UpdateBatchState:
    """Keeps `state.batch`: the batch of the epoch that ended last, and 0 at an epoch's end. The
    first epoch after a reset is shorter by it, where the steps of an epoch are known."""

    params: dict[str, Any]

    def __init__(self, state: ObjectState) -> None:
        super().__init__()
        self.state = state
        self.steps_per_epoch: int | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        if self.params.get("steps"):
            self.steps_per_epoch = self.steps_per_epoch or self.params["steps"]
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.state.batch = 0


class UpdateEpochState:
    """Keeps `state.epoch`: how many epochs have ended, over all resets."""

    def __init__(self, state: ObjectState) -> None:
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Logs = None) -> None:
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        self.state.epoch = self.initial_epoch + epoch + 1
