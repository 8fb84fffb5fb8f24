# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.data, answered by hvd."""
