"""What Horovod's older arguments mean beside the newer ones."""
from __future__ import annotations

import warnings

from ._core import abi


def op_of(op: int | None, average: bool | None) -> int:
    """What `op` and Horovod's older `average` mean together."""
    if op is not None:
        if average is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of "
                             "them.")
        return op
    if average is None:
        return abi.AVERAGE
    warnings.warn("Parameter `average` has been replaced with `op`: hvd.Average or hvd.Sum.",
                  DeprecationWarning, stacklevel=3)
    return abi.AVERAGE if average else abi.SUM
