# SPDX-License-Identifier: Apache-2.0
"""horovod.keras.callbacks, answered by hvd.keras."""
from hvd.keras.callbacks import (  # noqa: F401
    BestModelCheckpoint,
    BroadcastGlobalVariablesCallback,
    LearningRateScheduleCallback,
    LearningRateWarmupCallback,
    MetricAverageCallback,
)
