"""horovod.torch.elastic.sampler, answered by hvd.torch.elastic."""
from hvd.torch.elastic import ElasticSampler as ElasticSampler
