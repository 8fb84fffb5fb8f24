# SPDX-License-Identifier: Apache-2.0
"""The two places where Keras 3 itself is changed, once, when the first optimizer is made: Keras
asks nobody there.

`model.compile` puts a LossScaleOptimizer around the optimizer where the model is of mixed_float16,
and chooses XLA for TensorFlow where there is a GPU. XLA has no kernels of ours.
"""
from __future__ import annotations

import functools
import importlib
import warnings
from types import ModuleType
from typing import Any

import keras

from .loss_scale import ScaledMixin, adopt
from .optimizer import DistributedMixin

_TRAINER = "keras.src.trainers.trainer"


@functools.cache
def install() -> None:
    """Again: does nothing."""
    _adopt_scalers(keras.optimizers.LossScaleOptimizer)
    if keras.config.backend() == "tensorflow":
        _keep_from_xla(importlib.import_module(_TRAINER))


def _adopt_scalers(scaler: type[keras.optimizers.LossScaleOptimizer]) -> None:
    inner = scaler.__init__

    @functools.wraps(inner)
    def init(self: keras.optimizers.LossScaleOptimizer, *args: Any, **kwargs: Any) -> None:
        inner(self, *args, **kwargs)
        adopt(self)

    scaler.__init__ = init  # type: ignore[assignment]


def _keep_from_xla(trainer: ModuleType) -> None:
    asked = getattr(trainer, "model_supports_jit", None)
    if asked is None:
        warnings.warn(f"hvd does not know Keras {keras.__version__}: where there is a GPU, say "
                      "model.compile(jit_compile=False)", stacklevel=2)
        return

    @functools.wraps(asked)
    def supports(model: keras.models.Model) -> bool:
        optimizer = getattr(model, "optimizer", None)
        return not isinstance(optimizer, (DistributedMixin, ScaledMixin)) and bool(asked(model))

    trainer.model_supports_jit = supports  # type: ignore[attr-defined]
