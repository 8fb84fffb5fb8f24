# SPDX-License-Identifier: Apache-2.0
"""Horovod's names for hvd: programs written for Horovod run unchanged.

    hvdrun -np 4 --compat horovod python train.py --epochs 3
    hvdrun -np 4 python -m hvd.compat train.py --epochs 3

or, in a program: `import hvd.compat; hvd.compat.install()` before `import horovod.torch`.
"""
from __future__ import annotations

import os
import sys

from . import _finder
from ._finder import HorovodFinder as HorovodFinder

# The words that hvdrun says to each rank, and what they are without hvdrun.
_IDENTITY = {"RANK": "0", "SIZE": "1", "LOCAL_RANK": "0", "LOCAL_SIZE": "1", "CROSS_RANK": "0",
             "CROSS_SIZE": "1"}

# By these another launcher tells its processes who they are.
_OTHERS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "TORCHELASTIC_RUN_ID")


def install() -> None:
    """From now on `import horovod` gives hvd, here and in the processes that multiprocessing
    starts; HOROVOD_RANK, HOROVOD_SIZE and so on are in the environment, unless another launcher
    than hvdrun has started this process. Again: does nothing.
    RuntimeError when another horovod is in use already."""
    if _finder.is_installed():
        return
    loaded = sys.modules.get("horovod")
    if loaded is not None:
        raise RuntimeError(f"another horovod is loaded already: {loaded.__file__}")
    _finder.install()
    # A spawned process inherits the path, not the finders.
    sys.path.append(_finder.MODULES)
    if "HVD_RANK" not in os.environ and any(name in os.environ for name in _OTHERS):
        return  # a rank of another launcher's, whose number hvd.init() finds out
    for name, alone in _IDENTITY.items():
        os.environ.setdefault("HOROVOD_" + name, os.environ.get("HVD_" + name, alone))
