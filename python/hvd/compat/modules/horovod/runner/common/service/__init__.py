# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.service, answered by hvd."""
