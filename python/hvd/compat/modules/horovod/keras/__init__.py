# SPDX-License-Identifier: Apache-2.0
"""horovod.keras, answered by hvd.keras."""
from hvd.keras import *  # noqa: F403
from hvd.keras import __all__ as __all__

from . import callbacks as callbacks  # type: ignore[no-redef]
from . import elastic as elastic  # type: ignore[no-redef]
