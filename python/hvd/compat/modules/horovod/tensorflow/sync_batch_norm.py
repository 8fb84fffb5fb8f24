# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.sync_batch_norm, answered by hvd.tensorflow."""
from hvd.tensorflow import SyncBatchNormalization as SyncBatchNormalization
