"""The room of hvd.tensorflow: hvd's collectives as ops of TensorFlow's graphs."""
