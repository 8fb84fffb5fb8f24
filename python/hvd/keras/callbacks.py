# SPDX-License-Identifier: Apache-2.0
"""Callbacks for Keras 3."""
import keras

from .._keras import callbacks as _callbacks
from .._keras import learning_rate as _learning_rate


class BroadcastGlobalVariablesCallback(_callbacks.Broadcast, keras.callbacks.Callback):
    __doc__ = _callbacks.Broadcast.__doc__


class MetricAverageCallback(_callbacks.MetricAverage, keras.callbacks.Callback):
    __doc__ = _callbacks.MetricAverage.__doc__


class LearningRateScheduleCallback(_learning_rate.Schedule, keras.callbacks.Callback):
    __doc__ = _learning_rate.Schedule.__doc__


class LearningRateWarmupCallback(_learning_rate.Warmup, keras.callbacks.Callback):
    __doc__ = _learning_rate.Warmup.__doc__


class BestModelCheckpoint(_callbacks.BestModel, keras.callbacks.ModelCheckpoint):
    __doc__ = _callbacks.BestModel.__doc__
