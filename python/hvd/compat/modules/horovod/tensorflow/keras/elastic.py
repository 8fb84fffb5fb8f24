# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.keras.elastic, answered by hvd.tensorflow.keras.elastic."""
from hvd.tensorflow.keras.elastic import (  # noqa: F401
    CommitStateCallback,
    KerasState,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
    run,
)
