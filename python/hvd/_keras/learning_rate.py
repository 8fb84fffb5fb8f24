# SPDX-License-Identifier: Apache-2.0
"""The callbacks that change the learning rate, without their base class, which is Keras' Callback:
of either Keras."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..basics import size
from . import variables
from .backends.kinds import Logs, Model, Variable


class Schedule:
    """From `start_epoch` until before `end_epoch` the learning rate is `initial_lr` times
    `multiplier`, a number or a function of the epoch. With `staircase` it changes when an epoch
    begins, else with each batch; then the epoch is a fraction, of `steps_per_epoch`, which is known
    from the data where it has a length. `momentum_correction`: what momentum has gathered is scaled
    when the learning rate changes."""

    model: Model
    params: dict[str, Any]

    def __init__(self, initial_lr: float, multiplier: float | Callable[[float], float],
                 start_epoch: int = 0, end_epoch: int | None = None, staircase: bool = True,
                 momentum_correction: bool = True, steps_per_epoch: int | None = None) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("Parameter `initial_lr` is required")
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.momentum_correction = momentum_correction
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch = 0
        if callable(multiplier):
            self.staircase = staircase
            self.multiplier: Callable[[float], float] = multiplier
        else:
            number = multiplier
            self.staircase = True
            self.multiplier = lambda epoch: number

    def on_train_begin(self, logs: Logs = None) -> None:
        """Finds out how many steps an epoch has."""
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self._steps_of_data()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Keeps the number."""
        self.current_epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Sets the learning rate, where it is due."""
        if self.current_epoch < self.start_epoch or (
                self.end_epoch is not None and self.current_epoch >= self.end_epoch):
            return
        if self.staircase:
            if batch == 0:
                self._set(self.multiplier(self.current_epoch))
            return
        assert self.steps_per_epoch is not None
        self._set(self.multiplier(self.current_epoch + batch / self.steps_per_epoch))

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Logs the learning rate."""
        if logs is not None:
            logs["lr"] = variables.get(self.model.optimizer.learning_rate)

    def _set(self, multiplier: float) -> None:
        optimizer = self.model.optimizer
        before = variables.get(optimizer.learning_rate)
        rate = self.initial_lr * multiplier
        if rate == before:
            return
        optimizer.learning_rate = rate
        if self.momentum_correction and before:
            # The velocity of momentum has the learning rate in it.
            variables.scale(_velocities(optimizer, self.model), rate / before)

    def _steps_of_data(self) -> int:
        steps = self.params.get("steps")
        if steps:
            return int(steps)
        if self.params.get("samples") and self.params.get("batch_size"):
            return int(self.params["samples"]) // int(self.params["batch_size"])
        raise ValueError(
            "Could not autodetect the number of steps per epoch. Please specify the "
            f"steps_per_epoch parameter to the {type(self).__name__}().")


def _velocities(optimizer: Any, model: Model) -> list[Variable]:
    """The velocities of optimizers with a momentum (SGD, RMSprop). Adam's moments have no learning
    rate."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer
    if not getattr(optimizer, "momentum", None):
        return []
    if hasattr(optimizer, "get_slot_names"):  # tf_keras.optimizers.legacy
        if "momentum" not in optimizer.get_slot_names():
            return []
        return [optimizer.get_slot(each, "momentum") for each in model.trainable_variables]
    found = getattr(optimizer, "momentums", None) or getattr(optimizer, "_momentums", None) or []
    return [each for each in found if each is not None]


class Warmup(Schedule):
    """The learning rate grows from that of one rank, `initial_lr` / size, to `initial_lr` in
    `warmup_epochs` epochs, batch by batch (https://arxiv.org/abs/1706.02677). `verbose`: 1 says
    when it is there."""

    def __init__(self, initial_lr: float, warmup_epochs: int = 5, momentum_correction: bool = True,
                 steps_per_epoch: int | None = None, verbose: int = 0) -> None:
        def multiplier(epoch: float) -> float:
            # The last batch of warm-up is to have the whole rate.
            assert self.steps_per_epoch is not None
            epoch += 1.0 / self.steps_per_epoch
            return 1.0 / size() * (epoch * (size() - 1) / warmup_epochs + 1)

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction,
                         steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Says that it is there."""
        super().on_epoch_end(epoch, logs)
        assert self.end_epoch is not None
        if epoch == self.end_epoch - 1 and self.verbose > 0:
            rate = variables.get(self.model.optimizer.learning_rate)
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")
