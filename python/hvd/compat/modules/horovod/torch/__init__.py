# SPDX-License-Identifier: Apache-2.0
"""horovod.torch, answered by hvd.torch."""
from horovod.common.util import check_extension as check_extension
from hvd.torch import *  # noqa: F403
from hvd.torch import __all__ as __all__

from . import compression as compression
from . import elastic as elastic  # type: ignore[no-redef]
from . import functions as functions
from . import mpi_ops as mpi_ops
from . import optimizer as optimizer
from . import sync_batch_norm as sync_batch_norm
