# SPDX-License-Identifier: Apache-2.0
"""The callbacks without their base class, which is Keras' Callback: of either Keras."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import objects
from ..basics import global_process_set
from ..process_sets import ProcessSet
from . import variables
from .backends.kinds import Logs, Model, Variable


def set_of(model: Model) -> ProcessSet | None:
    """The ranks that train this model together: those of its optimizer. None on a rank that is none
    of them."""
    optimizer = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer
    settings = getattr(optimizer, "_hvd_settings", None)
    members = global_process_set if settings is None else settings.process_set
    return members if members.included() else None


class Broadcast:
    """All ranks begin with the model and the optimizer of `root_rank`, also where these were
    restored from a checkpoint there alone: when training begins, and again behind the first batch
    where there were no variables before. `local_variables` stay each rank's own. `device`: has no
    use here, since values travel by the host."""

    model: Model

    def __init__(self, root_rank: int, device: str = "",
                 local_variables: Iterable[object] | None = None) -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.local_variables = list(local_variables or ())
        self.broadcast_done = False
        self._trained = False  # whether there was a batch
        self._sent = 0

    def register_local_var(self, var: object) -> None:
        """This one stays each rank's own."""
        self.local_variables.append(var)

    def on_train_begin(self, logs: Logs = None) -> None:
        """Broadcasts what is there on all ranks."""
        members = set_of(self.model)
        self._trained = False
        self.broadcast_done = members is None
        if members is None:
            return
        found = self._variables()
        counts = objects.allgather_object(len(found), "keras.variables", members)
        self._sent = len(found) if len(set(counts)) == 1 else -1
        if self._sent > 0:
            self._broadcast(found, members)

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Before the second batch. (Who looks at the end of each batch has Keras wait for it.)"""
        self._complete()
        self._trained = True

    def on_test_begin(self, logs: Logs = None) -> None:
        """Where the epoch had one batch."""
        self._complete()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Where the epoch had one batch."""
        self._complete()

    def _complete(self) -> None:
        """Broadcasts what was not there before the first batch."""
        if self.broadcast_done or not self._trained:
            return
        self.broadcast_done = True
        found = self._variables()
        members = set_of(self.model)
        if len(found) != self._sent and members is not None:
            self._broadcast(found, members)

    def _variables(self) -> list[Variable]:
        model = self.model
        local = {id(each) for each in self.local_variables}
        found = [*variables.of_model(model),
                 *variables.of_optimizer(getattr(model, "optimizer", None))]
        return [each for each in found if id(each) not in local]

    def _broadcast(self, found: list[Variable], members: ProcessSet) -> None:
        variables.broadcast(found, self.root_rank, "keras.variables", members)


class MetricAverage:
    """Metrics that are logged at the end of an epoch are averages over the ranks, for callbacks
    behind this one. A metric that only some ranks have measured (as with validation on one of them)
    is the average of these, on all. `device`: has no use here."""

    model: Model

    def __init__(self, device: str = "") -> None:
        super().__init__()
        self.device = device

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Replaces the values in `logs`."""
        members = set_of(self.model)
        if logs is None or members is None:
            return
        mine = {name: np.asarray(value, np.float64) for name, value in logs.items()
                if _is_number(value)}
        ranks = objects.allgather_object(mine, "keras.metrics", members)
        for name in sorted({name for each in ranks for name in each}):
            mean = np.mean([each[name] for each in ranks if name in each], axis=0)
            logs[name] = float(mean) if np.ndim(mean) == 0 else mean


def _is_number(value: object) -> bool:
    try:
        np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return False
    return value is not None


class BestModel:
    """Saves the model of the best epoch, to `filepath`, which may also be set later."""

    filepath: Any

    def __init__(self, monitor: str = "val_loss", verbose: int = 0,
                 save_weights_only: bool = False, mode: str = "auto",
                 save_freq: int | str = "epoch", filepath: Any = None) -> None:
        # Keras asks for the name's ending at once.
        later = "best.weights.h5" if save_weights_only else "best.keras"
        super().__init__(  # type: ignore[call-arg]
            filepath=later if filepath is None else filepath, monitor=monitor, verbose=verbose,
            save_best_only=True, save_weights_only=save_weights_only, mode=mode,
            save_freq=save_freq)
        self.filepath = filepath

    def on_train_begin(self, logs: Logs = None) -> None:
        """Asks for the name."""
        if self.filepath is None:
            raise ValueError("BestModelCheckpoint has no filepath: set callback.filepath before "
                             "training, on the rank that saves")
        super().on_train_begin(logs)  # type: ignore[misc]
