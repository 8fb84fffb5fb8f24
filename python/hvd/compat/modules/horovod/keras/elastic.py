# SPDX-License-Identifier: Apache-2.0
"""horovod.keras.elastic, answered by hvd.keras.elastic."""
from hvd.keras.elastic import (  # noqa: F401
    CommitStateCallback,
    KerasState,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
    run,
)
