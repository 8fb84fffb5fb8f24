# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.compression, answered by hvd.tensorflow."""
from hvd._tensorflow.compression import (  # noqa: F401
    Compression,
    Compressor,
    FP16Compressor,
    NoneCompressor,
)
