# SPDX-License-Identifier: Apache-2.0
"""Elastic training with Keras, as Horovod's: run, KerasState and the callbacks that keep it."""
import tensorflow as tf

from ..._keras import elastic as _elastic
from ...elastic import run

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback",
           "UpdateEpochStateCallback", "run"]

KerasState = _elastic.KerasState


class CommitStateCallback(_elastic.CommitState, tf.keras.callbacks.Callback):
    __doc__ = _elastic.CommitState.__doc__


class UpdateBatchStateCallback(_elastic.UpdateBatchState, tf.keras.callbacks.Callback):
    __doc__ = _elastic.UpdateBatchState.__doc__


class UpdateEpochStateCallback(_elastic.UpdateEpochState, tf.keras.callbacks.Callback):
    __doc__ = _elastic.UpdateEpochState.__doc__
