# SPDX-License-Identifier: Apache-2.0
"""Types and operations on arrays that are used more seldom: bits, complex numbers, DLPack's."""
import numpy as np
import pytest

import hvd

INTS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


def ramp(rank, dtype, shape=(3, 2)):
    return (np.arange(np.prod(shape)).reshape(shape) + rank).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(rank, size, dtype):
    mine = ramp(rank, dtype) * (1 + 2j)
    every = np.stack([ramp(r, dtype) * (1 + 2j) for r in range(size)])
    assert hvd.allreduce(mine, op=hvd.Sum).tolist() == every.sum(0).tolist()
    assert np.allclose(hvd.allreduce(mine), every.mean(0))
    assert np.allclose(hvd.allreduce(mine, op=hvd.Product), every.prod(0))
    scaled = hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4)
    assert scaled.tolist() == (2 * every.sum(0)).tolist()
    with pytest.raises(ValueError, match=f"{dtype} tensors have no max"):
        hvd.allreduce(mine, op=hvd.Max)


@pytest.mark.parametrize("dtype", [*INTS, "bool"])
def test_bits(rank, size, dtype):
    mine = ramp(rank, dtype)
    every = np.stack([ramp(r, dtype) for r in range(size)])
    for op, numpy_op in ((hvd.BitwiseAnd, np.bitwise_and), (hvd.BitwiseOr, np.bitwise_or),
                         (hvd.BitwiseXor, np.bitwise_xor)):
        result = hvd.allreduce(mine, op=op)
        assert result.dtype == dtype and result.tolist() == numpy_op.reduce(every).tolist()
        with pytest.raises(ValueError, match="float32"):
            hvd.allreduce(mine.astype("float32"), op=op)
        with pytest.raises(ValueError, match="scaled"):
            hvd.allreduce(mine, op=op, prescale_factor=2)


def test_large_unsigned(size):
    large = np.full(3, 2**64 - 1, "uint64")
    assert hvd.allreduce(large).tolist() == [2**64 - 1] * 3
    assert hvd.allreduce(large, op=hvd.Min).tolist() == [2**64 - 1] * 3
    assert hvd.allreduce(large, op=hvd.Sum).tolist() == [2**64 - size] * 3


@pytest.mark.parametrize("kind", ["uint16", "uint32", "uint64", "complex64", "complex128",
                                  "float8_e4m3fn", "float8_e5m2"])
def test_further_types_by_dlpack(size, kind):
    torch = pytest.importorskip("torch")
    tensor = torch.ones(3).to(getattr(torch, kind))
    try:
        tensor.__dlpack__(max_version=(1, 0))
    except BufferError as error:
        pytest.skip(str(error))  # this torch cannot show them
    hvd.allreduce_(tensor, op=hvd.Sum)
    wanted = torch.full((3,), size).to(tensor.dtype)
    assert torch.equal(tensor.view(torch.uint8), wanted.view(torch.uint8))
