# SPDX-License-Identifier: Apache-2.0
"""How the gradients of an optimizer are reduced."""
from __future__ import annotations

import os

import torch

from ..._core import abi
from ..._core.compression import Compresses, wire_of
from ...process_sets import ProcessSet
from ..operators import options


class Reduction:
    """Op, scales, compression, process set."""

    def __init__(self, op: int, predivide: float, compression: Compresses[torch.Tensor],
                 sparse_as_dense: bool, process_set: ProcessSet) -> None:
        self.op = op
        # libhvd divides by the number of ranks besides.
        self.scales = (1.0 / predivide, predivide) if op == abi.AVERAGE else (1.0, 1.0)
        self.compression = compression
        self.wire = wire_of(compression)
        self.sparse_as_dense = sparse_as_dense
        self.process_set = process_set

    def options(self, kind: str, name: str) -> object:
        """The options of one gradient's, or of a group's, allreduce."""
        return options(kind, name, self.process_set, self.op, 0, *self.scales,
                       self.wire or abi.COMPRESSION_NONE)

    def settings(self) -> tuple[tuple[str, str], ...]:
        """The settings that all ranks must have alike, in words."""
        return (("op", str(self.op)), ("gradient_predivide_factor", repr(self.scales[1])),
                ("compression", getattr(self.compression, "__name__", str(self.wire))),
                ("HVD_BUCKET_BYTES", os.environ.get("HVD_BUCKET_BYTES", "not set")))
