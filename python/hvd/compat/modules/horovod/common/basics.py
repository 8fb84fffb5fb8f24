# SPDX-License-Identifier: Apache-2.0
"""horovod.common.basics, answered by hvd."""
from __future__ import annotations

from typing import Any

import hvd


class HorovodBasics:
    """Joining, ranks, sizes and what is built, as methods. Its arguments say in which of Horovod's
    libraries these are; hvd has one library."""

    Average = hvd.Average
    Sum = hvd.Sum
    Adasum = hvd.Adasum
    Min = hvd.Min
    Max = hvd.Max
    Product = hvd.Product

    def __init__(self, pkg_path: str = "", *names: Any) -> None:
        self.pkg_path = pkg_path
        self.names = names

    def __repr__(self) -> str:
        return f"<HorovodBasics by hvd {hvd.__version__}>"


for _name in ("init", "shutdown", "is_initialized", "start_timeline", "stop_timeline", "size",
              "local_size", "cross_size", "rank", "local_rank", "cross_rank", "is_homogeneous",
              "mpi_threads_supported", "mpi_enabled", "mpi_built", "gloo_enabled", "gloo_built",
              "nccl_built", "ddl_built", "ccl_built", "cuda_built", "rocm_built"):
    setattr(HorovodBasics, _name, staticmethod(getattr(hvd, _name)))
