"""horovod.torch.optimizer, answered by hvd.torch."""
from hvd.torch.optimizer import DistributedOptimizer  # noqa: F401
