# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.functions, answered by hvd.tensorflow."""
from hvd.tensorflow import (  # noqa: F401
    allgather_object,
    broadcast_global_variables,
    broadcast_object,
    broadcast_object_fn,
    broadcast_variables,
)
