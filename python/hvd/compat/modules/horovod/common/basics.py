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

    def _get_process_set_ids_and_ranks(self) -> dict[int, list[int]]:
        """All process sets: number → global ranks."""
        return hvd.get_process_set_ids_and_ranks()

    def _process_set_size(self, process_set_id: int) -> int:
        """How many members the set has. ValueError when there is no such set."""
        return len(self._ranks_of(process_set_id))

    def _process_set_rank(self, process_set_id: int) -> int:
        """This rank's index among the set's members. ValueError when it is none, or there is no
        such set."""
        ranks = self._ranks_of(process_set_id)
        if hvd.rank() not in ranks:
            raise ValueError("Process is not part of provided process set.")
        return ranks.index(hvd.rank())

    def _ranks_of(self, process_set_id: int) -> list[int]:
        ranks = hvd.get_process_set_ids_and_ranks().get(process_set_id)
        if ranks is None:
            raise ValueError("Process set does not exist or has not been registered.")
        return ranks

    def __repr__(self) -> str:
        return f"<HorovodBasics by hvd {hvd.library_version()}>"


for _name in ("init", "shutdown", "is_initialized", "start_timeline", "stop_timeline", "size",
              "local_size", "cross_size", "rank", "local_rank", "cross_rank", "is_homogeneous",
              "mpi_threads_supported", "mpi_enabled", "mpi_built", "gloo_enabled", "gloo_built",
              "nccl_built", "ddl_built", "ccl_built", "cuda_built", "rocm_built"):
    setattr(HorovodBasics, _name, staticmethod(getattr(hvd, _name)))
