# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic.sampler, answered by hvd.torch.elastic."""
from hvd.torch.elastic import ElasticSampler as ElasticSampler
