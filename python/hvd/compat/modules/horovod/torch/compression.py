# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.compression, answered by hvd.torch."""
from hvd.torch.compression import Compression, Compressor, FP16Compressor, NoneCompressor  # noqa: F401
