# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow, answered by hvd.tensorflow."""
from horovod.common.util import check_extension as check_extension
from hvd.tensorflow import *  # noqa: F403
from hvd.tensorflow import __all__ as __all__


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    # Keras is loaded only for a program that asks for it.
    if name == "SyncBatchNormalization":
        from hvd.tensorflow import SyncBatchNormalization

        return SyncBatchNormalization
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
