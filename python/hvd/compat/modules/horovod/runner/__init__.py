# SPDX-License-Identifier: Apache-2.0
"""horovod.runner, answered by hvd."""
from hvd import run as run
