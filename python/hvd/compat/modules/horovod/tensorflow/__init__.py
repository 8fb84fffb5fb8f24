# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow, answered by hvd.tensorflow."""
from horovod.common.util import check_extension as check_extension
from hvd.tensorflow import *  # noqa: F403
from hvd.tensorflow import __all__ as __all__

from . import compression as compression
from . import elastic as elastic  # type: ignore[no-redef]
from . import functions as functions
from . import mpi_ops as mpi_ops
from . import util as util
from .util import _cache as _cache
from .util import _executing_eagerly as _executing_eagerly
from .util import _make_subgraph as _make_subgraph
from .util import refs_to_vars as refs_to_vars
from .util import vars_to_refs as vars_to_refs


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    # Keras is loaded only for a program that asks for it.
    if name == "SyncBatchNormalization":
        from hvd.tensorflow import SyncBatchNormalization

        return SyncBatchNormalization
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
