# SPDX-License-Identifier: Apache-2.0
"""Sets of ranks that run collectives among themselves: `hvd.ProcessSet([0, 2])`."""
from ._core.process_sets import ProcessSet

__all__ = ["ProcessSet"]

ProcessSet.__module__ = __name__  # which programs know
