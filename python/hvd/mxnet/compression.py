# SPDX-License-Identifier: Apache-2.0
"""How gradients may be made smaller for their journey.

`Compression.fp16` given to DistributedTrainer makes float32 and float64 gradients travel in 16
bits; hvd sums in float32, so nothing is rounded more than once a hop. A class of one's own with
`compress` and `decompress` works as in Horovod.
"""
from __future__ import annotations

from typing import Any, TypeAlias

import mxnet
import numpy as np

from .._core import abi

NDArray: TypeAlias = mxnet.nd.NDArray


class Compressor:
    """Makes a tensor smaller, and larger again."""

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, Any]:
        """The smaller tensor, and what decompress will need."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: NDArray, ctx: Any) -> NDArray:
        """The tensor as it was, up to rounding."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves tensors as they are."""

    wire = abi.COMPRESSION_NONE

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, None]:
        return tensor, None

    @staticmethod
    def decompress(tensor: NDArray, ctx: None) -> NDArray:
        return tensor


class FP16Compressor(Compressor):
    """Floats as float16."""

    wire = abi.COMPRESSION_FP16

    @staticmethod
    def compress(tensor: NDArray) -> tuple[NDArray, np.dtype]:
        floating = np.issubdtype(tensor.dtype, np.floating)
        return tensor.astype("float16", copy=False) if floating else tensor, tensor.dtype

    @staticmethod
    def decompress(tensor: NDArray, ctx: np.dtype) -> NDArray:
        return tensor.astype(ctx, copy=False)


class Compression:
    """The compressions there are."""

    none: TypeAlias = NoneCompressor
    fp16: TypeAlias = FP16Compressor
