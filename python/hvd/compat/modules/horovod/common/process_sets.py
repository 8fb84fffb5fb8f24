# SPDX-License-Identifier: Apache-2.0
"""horovod.common.process_sets, answered by hvd."""
from hvd.basics import (  # noqa: F401
    add_process_set,
    get_process_set_ids_and_ranks,
    global_process_set,
    remove_process_set,
)
from hvd.process_sets import ProcessSet  # noqa: F401


def is_process_set_included(process_set_id: int = 0) -> bool:
    """Whether this rank is a member; ValueError when there is no such set."""
    from hvd import rank

    ranks = get_process_set_ids_and_ranks().get(process_set_id)
    if ranks is None:
        raise ValueError(f"there is no process set {process_set_id}")
    return rank() in ranks
