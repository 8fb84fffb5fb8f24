# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from . import keras as keras
from . import train as train

class GraphKeys:
    LOCAL_VARIABLES: str

class Session:
    def run(self, fetches: Any) -> Any: ...

def Variable(initial_value: Callable[[], tf.Tensor], trainable: bool = ...,
             collections: Sequence[str] = ..., name: str = ...,
             use_resource: bool = ...) -> tf.Variable: ...
def get_default_graph() -> tf.Graph: ...
def get_default_session() -> Session | None: ...
def global_variables() -> list[tf.Variable]: ...
