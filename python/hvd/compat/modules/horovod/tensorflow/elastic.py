# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.elastic, answered by hvd.tensorflow.elastic."""
from hvd.tensorflow.elastic import TensorFlowKerasState, TensorFlowState, run  # noqa: F401
