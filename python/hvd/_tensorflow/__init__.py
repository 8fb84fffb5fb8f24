# SPDX-License-Identifier: Apache-2.0
"""The room of TensorFlow: hvd's collectives as ops of its graphs, and what training with it needs.

    optimizer ──> aggregation ──> gradients ──> collectives ──> calls ──> operator_library, errors
    tape ──> gradients            functions ──> collectives ──> slices    compression

operator_library: loads libhvd_tensorflow.so (`operators/tensorflow`). errors: hvd's, which are
TensorFlow's as well. calls: one call on a list of tensors, its name within a graph, and the ops'
gradients. collectives, compression, functions: the interface. slices: tf.IndexedSlices over the
ranks. gradients: how gradients are reduced, for tapes, optimizers and Keras. aggregation: the
gradients of several passes. optimizer: tf.compat.v1's. tape: tf.GradientTape.

Enters: tensors, variables, tapes, optimizers. Leaves: ops of TensorFlow's, hvd's errors.

Threads: any of Python's; TensorFlow's own run the ops.

`hvd.tensorflow` is its face; `hvd._keras` uses it. It needs TensorFlow 2.16 or later.
"""
