# SPDX-License-Identifier: Apache-2.0
"""Horovod's Keras example (docs/keras.rst) in its usual form, with TensorFlow 2's way to pin a GPU,
which TensorFlow 1's sessions have no more, and on made-up digits; no word of hvd. Any backend of
Keras 3's. For tests/system/test_compat.py."""
import math
import sys

import keras
import numpy as np
from keras import backend as K  # noqa: N812
from keras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from keras.models import Sequential

import horovod.keras as hvd

# Horovod: initialize Horovod.
hvd.init()
keras.utils.set_random_seed(1)

batch_size = 32
num_classes = 10

# Horovod: adjust number of epochs based on number of GPUs.
epochs = int(math.ceil(4.0 / hvd.size()))


def digits(count, seed):
    """Pictures of 8 by 8 whose brightest column says which digit it is."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 8, count)
    pictures = random.random((count, 8, 8)) + np.eye(8)[labels][:, np.newaxis]
    return pictures[..., np.newaxis].astype("float32"), labels


(x_train, y_train), (x_test, y_test) = digits(512, 1), digits(128, 2)
assert K.image_data_format() == "channels_last"

# Convert class vectors to binary class matrices
y_train = keras.utils.to_categorical(y_train, num_classes)
y_test = keras.utils.to_categorical(y_test, num_classes)

model = Sequential()
model.add(Conv2D(8, kernel_size=(3, 3), activation="relu", input_shape=(8, 8, 1)))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Dropout(0.1))
model.add(Flatten())
model.add(Dense(num_classes, activation="softmax"))

# Horovod: adjust learning rate based on number of GPUs.
opt = keras.optimizers.Adadelta(1.0 * hvd.size())

# Horovod: add Horovod Distributed Optimizer.
opt = hvd.DistributedOptimizer(opt)

model.compile(loss=keras.losses.categorical_crossentropy, optimizer=opt, metrics=["accuracy"])

callbacks = [
    # Horovod: broadcast initial variable states from rank 0 to all other processes.
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(warmup_epochs=2, initial_lr=1.0 * hvd.size(),
                                             verbose=1),
    keras.callbacks.ReduceLROnPlateau(patience=10, verbose=1),
]

# Horovod: save checkpoints only on worker 0 to prevent other workers from corrupting them.
if hvd.rank() == 0:
    callbacks.append(keras.callbacks.ModelCheckpoint(sys.argv[1]))

history = model.fit(x_train, y_train, batch_size=batch_size, callbacks=callbacks, epochs=epochs,
                    verbose=2, validation_data=(x_test, y_test)).history
score = model.evaluate(x_test, y_test, verbose=0)
print("Test loss:", score[0])
print("Test accuracy:", score[1])
assert history["loss"][-1] < history["loss"][0], history
