# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.keras.callbacks, answered by hvd.tensorflow.keras."""
from hvd.tensorflow.keras.callbacks import (  # noqa: F401
    BestModelCheckpoint,
    BroadcastGlobalVariablesCallback,
    LearningRateScheduleCallback,
    LearningRateWarmupCallback,
    MetricAverageCallback,
)
