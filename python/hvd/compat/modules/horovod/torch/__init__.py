# SPDX-License-Identifier: Apache-2.0
"""horovod.torch, answered by hvd.torch."""
from horovod.common.util import check_extension as check_extension
from hvd.torch import *  # noqa: F403
from hvd.torch import __all__ as __all__

from . import elastic as elastic  # type: ignore[no-redef]
