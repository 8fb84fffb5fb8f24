# SPDX-License-Identifier: Apache-2.0
"""Horovod's TensorFlow 2 Keras example in its usual form, on made-up digits instead of a download;
no word of hvd. For tests/system/test_compat.py, with TF_USE_LEGACY_KERAS=1, since Keras 3 has no
experimental_run_tf_function."""
import sys

import tensorflow as tf

import horovod
import horovod.tensorflow.keras as hvd


def digits(count):
    """Pictures of 8 by 8 whose brightest column says which digit it is."""
    generator = tf.random.Generator.from_seed(1)
    labels = generator.uniform([count], 0, 8, tf.int64)
    pictures = generator.uniform([count, 8, 8]) + tf.one_hot(labels, 8)[:, tf.newaxis]
    return pictures.numpy(), labels.numpy()


def train(checkpoint):
    # Horovod: initialize Horovod.
    hvd.init()
    tf.keras.utils.set_random_seed(1)

    # Horovod: pin GPU to be used to process local rank (one GPU per process)
    gpus = tf.config.experimental.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")

    images, labels = digits(512)
    dataset = tf.data.Dataset.from_tensor_slices(
        (tf.cast(images[..., tf.newaxis] / 2.0, tf.float32), tf.cast(labels, tf.int64)))
    dataset = dataset.repeat().shuffle(1000).batch(32)

    model = tf.keras.Sequential([
        tf.keras.layers.Conv2D(8, [3, 3], activation="relu"),
        tf.keras.layers.MaxPooling2D(pool_size=(2, 2)),
        tf.keras.layers.Dropout(0.1),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10, activation="softmax"),
    ])

    # Horovod: adjust learning rate based on number of GPUs.
    scaled_lr = 0.01 * hvd.size()
    opt = tf.optimizers.Adam(scaled_lr)

    # Horovod: add Horovod DistributedOptimizer.
    opt = hvd.DistributedOptimizer(
        opt, backward_passes_per_step=1, average_aggregated_gradients=True)

    # Horovod: Specify `experimental_run_tf_function=False` to ensure TensorFlow
    # uses hvd.DistributedOptimizer() to compute gradients.
    model.compile(loss=tf.losses.SparseCategoricalCrossentropy(), optimizer=opt,
                  metrics=["accuracy"], experimental_run_tf_function=False)

    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=scaled_lr, warmup_epochs=2, verbose=1),
    ]

    # Horovod: save checkpoints only on worker 0 to prevent other workers from corrupting them.
    if hvd.rank() == 0:
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(checkpoint))

    # Horovod: write logs on worker 0.
    verbose = 2 if hvd.rank() == 0 else 0
    history = model.fit(dataset, steps_per_epoch=32 // hvd.size(), callbacks=callbacks, epochs=3,
                        verbose=verbose).history
    assert history["loss"][-1] < history["loss"][0], history
    return history["loss"]


if __name__ == "__main__":
    if len(sys.argv) == 3:
        # run training through horovod.run
        losses = horovod.run(train, args=(sys.argv[1],), np=int(sys.argv[2]))
        assert losses[0] == losses[-1], losses
        print(len(losses), "ranks")
    else:
        # this is running via horovodrun
        train(sys.argv[1])
