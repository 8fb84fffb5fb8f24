# SPDX-License-Identifier: Apache-2.0
"""The names of tf_keras (Keras 2) that hvd uses: it has no types of its own."""
from . import layers as layers
from . import mixed_precision as mixed_precision
from . import optimizers as optimizers
from . import saving as saving
