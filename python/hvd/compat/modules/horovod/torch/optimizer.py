# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.optimizer, answered by hvd.torch."""
from hvd.torch.optimizer import DistributedOptimizer  # noqa: F401
