# SPDX-License-Identifier: Apache-2.0
"""horovod._keras.callbacks, answered by hvd: the callbacks without their base class, Keras'
Callback, which a program's class adds behind them. `backend` has no use."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hvd._keras import callbacks as _callbacks
from hvd._keras import learning_rate as _learning_rate


class BroadcastGlobalVariablesCallbackImpl(_callbacks.Broadcast):
    __doc__ = _callbacks.Broadcast.__doc__

    def __init__(self, backend: object, root_rank: int, device: str = "") -> None:
        super().__init__(root_rank, device)


class MetricAverageCallbackImpl(_callbacks.MetricAverage):
    __doc__ = _callbacks.MetricAverage.__doc__

    def __init__(self, backend: object, device: str = "") -> None:
        super().__init__(device)


class LearningRateScheduleCallbackImpl(_learning_rate.Schedule):
    __doc__ = _learning_rate.Schedule.__doc__

    def __init__(self, backend: object, initial_lr: float,
                 multiplier: float | Callable[[float], float], *args: Any, **kwargs: Any) -> None:
        super().__init__(initial_lr, multiplier, *args, **kwargs)


class LearningRateWarmupCallbackImpl(_learning_rate.Warmup):
    __doc__ = _learning_rate.Warmup.__doc__

    def __init__(self, backend: object, initial_lr: float, *args: Any, **kwargs: Any) -> None:
        super().__init__(initial_lr, *args, **kwargs)
