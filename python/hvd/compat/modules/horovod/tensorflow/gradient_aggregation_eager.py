# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.gradient_aggregation_eager, answered by hvd, whose one way is for both."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from hvd import ProcessSet, global_process_set
from hvd._tensorflow.gradients import Gradient

from .gradient_aggregation import LocalGradientAggregationHelper


class LocalGradientAggregationHelperEager(LocalGradientAggregationHelper):
    __doc__ = LocalGradientAggregationHelper.__doc__

    def __init__(self, backward_passes_per_step: int,
                 allreduce_func: Callable[[list[Gradient], list[object]], Sequence[Gradient]],
                 sparse_as_dense: bool, average_aggregated_gradients: bool,
                 process_set: ProcessSet = global_process_set,
                 scale_local_gradients: bool = True) -> None:
        super().__init__(backward_passes_per_step, allreduce_func, sparse_as_dense,
                         average_aggregated_gradients, process_set=process_set,
                         scale_local_gradients=scale_local_gradients)
