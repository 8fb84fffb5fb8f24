# SPDX-License-Identifier: Apache-2.0
"""horovod.mxnet, answered by hvd.mxnet."""
from horovod.common.util import check_extension as check_extension
from horovod.common.util import split_list as split_list
from hvd.mxnet import *  # noqa: F403
from hvd.mxnet import __all__ as __all__

from . import compression as compression
from . import functions as functions
from . import mpi_ops as mpi_ops
