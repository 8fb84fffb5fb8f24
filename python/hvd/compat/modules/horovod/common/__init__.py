"""horovod.common, answered by hvd."""
