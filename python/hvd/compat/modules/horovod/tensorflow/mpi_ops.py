# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.mpi_ops, answered by hvd.tensorflow."""
from horovod.common.basics import HorovodBasics as _HorovodBasics
from hvd.tensorflow import *  # noqa: F403
from hvd.tensorflow import Adasum, Average, Max, Min, Product, Sum  # noqa: F401

_basics = _HorovodBasics(__file__, "mpi_lib")
