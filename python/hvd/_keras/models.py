# SPDX-License-Identifier: Apache-2.0
"""Models that are loaded to go on training."""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from .backends.settings import Settings
from .distributed import distributed


def load_model(keras: Any, filepath: str | os.PathLike[str],
               custom_optimizers: Iterable[type] | None,
               custom_objects: dict[str, Any] | None, settings: Settings) -> Any:
    """The model of the file, whose optimizer reduces its gradients over the ranks."""
    objects = {one.__name__: one for one in custom_optimizers or ()}
    model = keras.models.load_model(filepath, custom_objects={**objects, **(custom_objects or {})})
    if getattr(model, "optimizer", None) is not None:
        model.optimizer = distributed(model.optimizer, settings)
    return model
