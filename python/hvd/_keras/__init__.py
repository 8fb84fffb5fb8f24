# SPDX-License-Identifier: Apache-2.0
"""The room of hvd.keras and hvd.tensorflow.keras: what is the same for both generations of Keras,
and what is not.

Keras 3 (`keras`, on TensorFlow, JAX or torch): `optimizer` reduces gradients, `loss_scale` decides
for all ranks whether a step is skipped, `hooks` are the two places where Keras itself is changed.
tf_keras (Keras 2, on TensorFlow): `tf_keras_optimizer`. Both: `distributed` chooses between them,
`classes` makes the optimizers' subclasses, `variables` reads and writes variables, `callbacks` and
`learning_rate` are the callbacks without their base class, which the public modules add,
`batch_norm`, `tf_keras_batch_norm` and `models` the rest. `backends/` is what differs by Keras 3's
backend; its `settings` say how gradients are reduced.

No thread of its own. A module that imports one of the two is loaded only by programs that have it.
"""
