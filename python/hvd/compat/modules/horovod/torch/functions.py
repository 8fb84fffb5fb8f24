# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.functions, answered by hvd.torch."""
from hvd.torch.functions import (  # noqa: F401
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
