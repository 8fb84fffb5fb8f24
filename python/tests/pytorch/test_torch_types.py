# SPDX-License-Identifier: Apache-2.0
"""hvd.torch's collectives on types that are used more seldom, and on bits."""
import functools
import math

import pytest

torch = pytest.importorskip("torch")
import hvd.torch as hvd  # noqa: E402

FURTHER = [torch.uint16, torch.uint32, torch.uint64, torch.complex64, torch.complex128,
           torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.mark.parametrize("dtype", FURTHER, ids=str)
def test_further_types(rank, size, dtype):
    def filled(value, shape=(5,)):
        return torch.full(shape, value).to(dtype)

    def same(left, right):
        return left.dtype == right.dtype and torch.equal(left.view(torch.uint8),
                                                         right.view(torch.uint8))

    mine = filled(rank + 1)
    assert same(hvd.allreduce(mine, op=hvd.Sum), filled(size * (size + 1) // 2))
    assert same(hvd.allreduce(mine, op=hvd.Product), filled(math.factorial(size)))
    assert same(hvd.allreduce(filled(3)), filled(3))
    assert same(hvd.broadcast(mine, size - 1), filled(size))
    assert same(hvd.allgather(mine), torch.cat([filled(r + 1) for r in range(size)]))
    assert same(hvd.reducescatter(filled(1, (size,)), op=hvd.Sum), filled(size, (1,)))
    assert same(hvd.alltoall(filled(rank + 1, (size,)))[:1], filled(1, (1,)))
    if not dtype.is_complex:
        assert same(hvd.allreduce(mine, op=hvd.Max), filled(size))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_float8_is_rounded_as_torch_does(rank, size, dtype):
    generator = torch.Generator().manual_seed(7)
    every = (torch.randn(size, 4000, generator=generator) * 30).to(dtype)
    wanted = every.double().sum(0)
    assert torch.equal(hvd.allreduce(every[rank], op=hvd.Sum).view(torch.uint8),
                       wanted.to(dtype).view(torch.uint8))
    greatest = torch.finfo(dtype).max  # beyond it, torch before 2.13 says NaN
    large = torch.tensor([448.0, 400.0, -448.0, greatest, 0.0]).to(dtype)
    sums = hvd.allreduce(large, op=hvd.Sum, prescale_factor=1.0)
    most = torch.finfo(dtype).max if dtype is torch.float8_e4m3fn else float("inf")
    exact = large.double() * size
    for got, one in zip(sums.double().tolist(), exact.tolist(), strict=True):
        too_large = abs(one) > greatest
        rounded = torch.tensor(0.0 if too_large else one).to(dtype).item()
        assert got == (math.copysign(most, one) if too_large else rounded)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.bool], ids=str)
def test_bits(rank, size, dtype):
    mine = torch.tensor([0, 1, rank, rank + 1]).to(dtype)
    every = [torch.tensor([0, 1, r, r + 1]).to(dtype) for r in range(size)]
    for op, combine in ((hvd.BitwiseAnd, torch.bitwise_and), (hvd.BitwiseOr, torch.bitwise_or),
                        (hvd.BitwiseXor, torch.bitwise_xor)):
        assert torch.equal(hvd.allreduce(mine, op=op), functools.reduce(combine, every))
    with pytest.raises(ValueError, match="float32"):
        hvd.allreduce(torch.ones(2), op=hvd.BitwiseOr)
