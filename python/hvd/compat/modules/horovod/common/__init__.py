# SPDX-License-Identifier: Apache-2.0
"""horovod.common, answered by hvd."""
