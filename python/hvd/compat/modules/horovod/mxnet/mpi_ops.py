# SPDX-License-Identifier: Apache-2.0
"""horovod.mxnet.mpi_ops, answered by hvd.mxnet."""
from horovod.common.basics import HorovodBasics as _HorovodBasics
from hvd.mxnet import *  # noqa: F403
from hvd.mxnet.mpi_ops import Adasum, Average, Max, Min, Product, Sum  # noqa: F401

_basics = _HorovodBasics(__file__, "mpi_lib")
