# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation over the batches of all ranks."""
from __future__ import annotations

import torch
from torch.autograd import Function
from torch.nn.modules.batchnorm import _BatchNorm

from .._torch.context import Context, applied
from ..basics import is_initialized, size
from .autograd import allgather, allreduce
from .mpi_ops import Sum


class SyncBatchNorm(_BatchNorm):
    """As torch.nn.BatchNorm1d/2d/3d, with mean and variance over all ranks' batches, which may
    differ in length. Input: (N, C, …). On one rank, and in evaluation, it is plain batch
    normalisation."""

    def _check_input_dim(self, input: torch.Tensor) -> None:  # noqa: A002  (torch's name)
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  (torch's name)
        self._check_input_dim(input)
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        own_statistics = self.training or self.running_mean is None
        if not own_statistics or not is_initialized() or size() == 1:
            return torch.nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias,
                own_statistics, self._factor(), self.eps)
        mean, var, count = _Statistics.of(input)
        if self.training and self.track_running_stats:
            self._track(mean, var, count)
        output: torch.Tensor = applied(_Normalise, input, self.weight, self.bias, mean, var,
                                       self.eps, count)
        return output

    def _factor(self) -> float:
        if self.momentum is not None:
            return self.momentum
        seen = self.num_batches_tracked
        return 0.0 if seen is None or int(seen) == 0 else 1.0 / int(seen)

    @torch.no_grad()
    def _track(self, mean: torch.Tensor, var: torch.Tensor, count: float) -> None:
        if self.running_mean is None or self.running_var is None:
            return
        unbiased = var * (count / max(count - 1, 1))
        factor = self._factor()
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)


class _Statistics:
    """Mean and variance by channel over all ranks."""

    @staticmethod
    @torch.no_grad()
    def of(inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, float]:
        """(mean, variance, number of elements a channel). Each rank's own sums of squares are about
        its own mean: sums of squares of large numbers would lose the variance in rounding."""
        rows = inputs.transpose(0, 1).flatten(1).double()  # (C, elements)
        count = rows.shape[1]
        mean = rows.mean(1) if count else rows.new_zeros(rows.shape[0])
        squares = (rows - mean[:, None]).square().sum(1)
        mine = torch.cat([mean, squares, mean.new_tensor([float(count)])])[None]
        all_ranks = allgather(mine.contiguous(), name="sync_batch_norm.statistics")
        channels = rows.shape[0]
        means, squares, counts = torch.split(all_ranks, [channels, channels, 1], 1)
        total = counts.sum()
        if total == 0:
            raise ValueError("SyncBatchNorm: no rank has any element")
        mean = (means * counts).sum(0) / total
        var = (squares + counts * (means - mean).square()).sum(0) / total
        return mean, var, float(total)


# Shape of a channel's value, number of elements, types of the inputs and of the bias.
_Call = tuple[tuple[int, ...], float, torch.dtype, torch.dtype | None]


class _Normalise(Function):
    @staticmethod
    def forward(ctx: Context[_Call], inputs: torch.Tensor, weight: torch.Tensor | None,
                bias: torch.Tensor | None, mean: torch.Tensor, var: torch.Tensor, eps: float,
                count: float) -> torch.Tensor:
        shape = (1, -1) + (1,) * (inputs.dim() - 2)
        kind = torch.promote_types(inputs.dtype, torch.float32)
        inverse = torch.rsqrt(var + eps).to(kind).view(shape)
        centred = (inputs.to(kind) - mean.to(kind).view(shape)) * inverse
        ctx.save_for_backward(centred, inverse, weight)
        ctx.call = (shape, count, inputs.dtype, None if bias is None else bias.dtype)
        output = centred
        if weight is not None:
            output = output * weight.to(kind).view(shape)
        if bias is not None:
            output = output + bias.to(kind).view(shape)
        return output.to(inputs.dtype)

    @staticmethod
    def backward(ctx: Context[_Call], grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        centred, inverse, weight = ctx.saved_tensors
        shape, count, kind, bias_kind = ctx.call
        axes = [axis for axis in range(grad.dim()) if axis != 1]
        wide = grad.to(centred.dtype)
        d_bias, d_weight = wide.sum(axes), (wide * centred).sum(axes)
        sums = allreduce(torch.cat([d_bias, d_weight]).contiguous(), op=Sum,
                         name="sync_batch_norm.gradients") / count
        mean_grad, mean_product = (half.view(shape) for half in sums.chunk(2))
        scale = inverse if weight is None else inverse * weight.to(inverse.dtype).view(shape)
        d_input = (wide - mean_grad - centred * mean_product) * scale
        return (d_input.to(kind), None if weight is None else d_weight.to(weight.dtype),
                None if bias_kind is None else d_bias.to(bias_kind), None, None, None, None)
