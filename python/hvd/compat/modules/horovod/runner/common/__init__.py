# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common, answered by hvd."""
