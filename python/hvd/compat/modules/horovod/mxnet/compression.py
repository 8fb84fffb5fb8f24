# SPDX-License-Identifier: Apache-2.0
"""horovod.mxnet.compression, answered by hvd.mxnet."""
from hvd.mxnet.compression import Compression, Compressor, FP16Compressor, NoneCompressor  # noqa: F401
