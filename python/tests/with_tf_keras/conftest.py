# SPDX-License-Identifier: Apache-2.0
"""tf.keras is tf_keras in these tests: TensorFlow looks when it is first asked for it."""
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
