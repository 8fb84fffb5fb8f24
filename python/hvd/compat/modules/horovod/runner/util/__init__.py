"""horovod.runner.util, answered by hvd."""
