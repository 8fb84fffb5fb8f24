# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util, answered by hvd."""
