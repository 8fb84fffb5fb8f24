"""horovod.tensorflow.sync_batch_norm, answered by hvd.tensorflow."""
from hvd.tensorflow import SyncBatchNormalization as SyncBatchNormalization
