# SPDX-License-Identifier: Apache-2.0
"""horovod._keras.elastic, answered by hvd: the callbacks of elastic jobs without their base class,
Keras' Callback, which a program's class adds behind them. `backend` has no use."""
from __future__ import annotations

from hvd._keras import elastic as _elastic
from hvd.elastic import ObjectState


class CommitStateCallbackImpl(_elastic.CommitState):
    __doc__ = _elastic.CommitState.__doc__

    def __init__(self, backend: object, state: ObjectState, batches_per_commit: int = 1) -> None:
        super().__init__(state, batches_per_commit)


class UpdateBatchStateCallbackImpl(_elastic.UpdateBatchState):
    __doc__ = _elastic.UpdateBatchState.__doc__

    def __init__(self, backend: object, state: ObjectState) -> None:
        super().__init__(state)


class UpdateEpochStateCallbackImpl(_elastic.UpdateEpochState):
    __doc__ = _elastic.UpdateEpochState.__doc__

    def __init__(self, backend: object, state: ObjectState) -> None:
        super().__init__(state)
