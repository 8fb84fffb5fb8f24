# SPDX-License-Identifier: Apache-2.0
"""The names of Keras 3 that hvd uses: Keras has no types of its own. Its tensors are those of its
backend, so they are anything here."""
from typing import Any

from . import callbacks as callbacks
from . import config as config
from . import layers as layers
from . import models as models
from . import ops as ops
from . import optimizers as optimizers
from . import saving as saving

__version__: str

class Variable:
    name: str
    path: str
    value: Any
    dtype: str
    def assign(self, value: Any) -> Any: ...
