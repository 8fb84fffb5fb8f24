# SPDX-License-Identifier: Apache-2.0
"""horovod.torch.elastic.state, answered by hvd.torch.elastic."""
from hvd.torch.elastic import (  # noqa: F401
    ElasticSampler,
    ModelStateHandler,
    ObjectState,
    OptimizerStateHandler,
    SamplerStateHandler,
    StateHandler,
    TorchState,
    get_handler_registry,
    set_handler_registry,
)
