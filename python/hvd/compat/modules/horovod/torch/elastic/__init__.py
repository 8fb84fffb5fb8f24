# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic, answered by hvd.torch.elastic."""
from hvd.torch.elastic import ElasticSampler, TorchState, run  # noqa: F401

from . import sampler as sampler
from . import state as state

__all__ = ["TorchState", "ElasticSampler", "run"]
