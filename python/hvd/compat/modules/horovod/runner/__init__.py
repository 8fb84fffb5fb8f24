"""horovod.runner, answered by hvd."""
from hvd import run as run
