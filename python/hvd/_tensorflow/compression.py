# SPDX-License-Identifier: Apache-2.0
"""How gradients may be made smaller for their journey.

`Compression.fp16` and `.bf16` make float32 and float64 tensors travel in 16 bits; hvd sums in
float32, so nothing is rounded more than once a hop. A class of one's own with `compress` and
`decompress` works as in Horovod.
"""
from __future__ import annotations

from typing import Any, TypeAlias

import tensorflow as tf

from .._core import abi


class Compressor:
    """Makes a tensor smaller, and larger again."""

    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, Any]:
        """The smaller tensor, and what decompress will need."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: Any) -> tf.Tensor:
        """The tensor as it was, up to rounding."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Leaves tensors as they are."""

    wire = abi.COMPRESSION_NONE

    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, None]:
        return tensor, None

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: None) -> tf.Tensor:
        return tensor


class FP16Compressor(Compressor):
    """Floats as float16."""

    wire = abi.COMPRESSION_FP16

    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, tf.DType]:
        small = tf.cast(tensor, tf.float16) if tensor.dtype.is_floating else tensor
        return small, tensor.dtype

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: tf.DType) -> tf.Tensor:
        return tf.cast(tensor, ctx)


class BF16Compressor(Compressor):
    """Floats as bfloat16: float32's range, 8 bits of precision."""

    wire = abi.COMPRESSION_BF16

    @staticmethod
    def compress(tensor: tf.Tensor) -> tuple[tf.Tensor, tf.DType]:
        small = tf.cast(tensor, tf.bfloat16) if tensor.dtype.is_floating else tensor
        return small, tensor.dtype

    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: tf.DType) -> tf.Tensor:
        return tf.cast(tensor, ctx)


class Compression:
    """The compressions there are."""

    none: TypeAlias = NoneCompressor
    fp16: TypeAlias = FP16Compressor
    bf16: TypeAlias = BF16Compressor
