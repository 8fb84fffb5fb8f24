# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.mpi_ops, answered by hvd.torch."""
from horovod.common.basics import HorovodBasics as _HorovodBasics
from hvd.basics import (
    get_process_set_ids_and_ranks as _get_process_set_ids_and_ranks,  # noqa: F401
)
from hvd.torch import *  # noqa: F403
from hvd.torch.mpi_ops import (  # noqa: F401
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    handle_average_backwards_compatibility,
)

_basics = _HorovodBasics(__file__, "mpi_lib_v2")
