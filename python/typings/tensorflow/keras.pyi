# SPDX-License-Identifier: Apache-2.0
"""Keras 3, or tf_keras: hvd uses what both have."""
from keras import callbacks as callbacks
from keras import layers as layers
from keras import models as models
