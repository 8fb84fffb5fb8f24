# SPDX-License-Identifier: Apache-2.0
"""horovod.mxnet.functions, answered by hvd.mxnet."""
from hvd.mxnet.functions import allgather_object, broadcast_object  # noqa: F401
