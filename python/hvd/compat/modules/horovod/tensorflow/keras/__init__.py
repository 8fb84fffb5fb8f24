# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.keras, answered by hvd.tensorflow.keras."""
from hvd.tensorflow.keras import *  # noqa: F403
from hvd.tensorflow.keras import __all__ as __all__

from . import callbacks as callbacks  # type: ignore[no-redef]
from . import elastic as elastic  # type: ignore[no-redef]
