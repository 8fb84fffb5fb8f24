# SPDX-License-Identifier: Apache-2.0
"""Callbacks for tf.keras, whichever Keras it is."""
import tensorflow as tf

from ..._keras import callbacks as _callbacks
from ..._keras import learning_rate as _learning_rate


class BroadcastGlobalVariablesCallback(_callbacks.Broadcast, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.Broadcast.__doc__


class MetricAverageCallback(_callbacks.MetricAverage, tf.keras.callbacks.Callback):
    __doc__ = _callbacks.MetricAverage.__doc__


class LearningRateScheduleCallback(_learning_rate.Schedule, tf.keras.callbacks.Callback):
    __doc__ = _learning_rate.Schedule.__doc__


class LearningRateWarmupCallback(_learning_rate.Warmup, tf.keras.callbacks.Callback):
    __doc__ = _learning_rate.Warmup.__doc__


class BestModelCheckpoint(_callbacks.BestModel, tf.keras.callbacks.ModelCheckpoint):
    __doc__ = _callbacks.BestModel.__doc__
