"""Horovod's package, answered by hvd."""
# The version of Horovod's interface that programs may count on; hvd's own is hvd.__version__.
__version__ = "0.28.1"
