# SPDX-License-Identifier: Apache-2.0
"""Gradients through collectives, against differences: the loss is a function of all ranks' inputs.

`scale` says how Horovod's rules differ from the gradient of the sum of all ranks' losses.
"""
import pytest

torch = pytest.importorskip("torch")
import hvd.torch as hvd  # noqa: E402


def given(rank, shape, seed=1):
    """The same input for a rank wherever it is asked for."""
    generator = torch.Generator().manual_seed(seed * 100 + rank)
    return torch.rand(shape, generator=generator, dtype=torch.float64) + 0.5


def weights(rank, shape):
    return given(rank, shape, seed=2)


def differences(loss, tensor, eps=1e-6):
    """d loss(tensor) / d tensor, by central differences."""
    flat, gradient = tensor.clone().flatten(), []
    for i in range(flat.numel()):
        values = []
        for sign in (1, -1):
            moved = flat.clone()
            moved[i] += sign * eps
            values.append(loss(moved.view(tensor.shape)))
        gradient.append((values[0] - values[1]) / (2 * eps))
    return torch.stack(gradient).view(tensor.shape)


def reduce_like(op, tensors, pre=1.0, post=1.0):
    stacked = torch.stack(tensors) * pre
    results = {hvd.Sum: stacked.sum(0), hvd.Average: stacked.mean(0), hvd.Min: stacked.amin(0),
               hvd.Max: stacked.amax(0), hvd.Product: stacked.prod(0)}
    return results[op] * post


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average, hvd.Min, hvd.Max, hvd.Product])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.5, 3.0)])
def test_allreduce(rank, size, op, scales):
    shape = (2, 3)

    def loss(mine):
        inputs = [mine if r == rank else given(r, shape) for r in range(size)]
        result = reduce_like(op, inputs, *scales)
        return sum((result * weights(r, shape)).sum() for r in range(size))

    mine = given(rank, shape).requires_grad_()
    how = {"op": op, "prescale_factor": scales[0], "postscale_factor": scales[1]}
    (hvd.allreduce(mine, **how) * weights(rank, shape)).sum().backward()
    expected = differences(loss, mine.detach())
    assert torch.allclose(mine.grad, expected, atol=1e-6), (mine.grad, expected)
    pair = [given(rank, shape).requires_grad_(), given(rank, shape).requires_grad_()]
    first, second = hvd.grouped_allreduce(pair, **how)
    ((first + 2 * second) * weights(rank, shape)).sum().backward()
    assert torch.allclose(pair[0].grad, expected, atol=1e-6)
    assert torch.allclose(pair[1].grad, 2 * expected, atol=1e-6)


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average, hvd.Product])
def test_allreduce_of_complex_numbers(rank, size, op):
    """Gradients are those of the same computation on one rank, which has everyone's inputs."""
    generator = torch.Generator().manual_seed(3)
    every = torch.randn(size, 4, dtype=torch.complex128, generator=generator)
    every.requires_grad_()
    combine = {hvd.Sum: every.sum(0), hvd.Average: every.mean(0), hvd.Product: every.prod(0)}[op]
    (combine * (1 + 2j)).imag.square().sum().backward()
    mine = every[rank].detach().clone().requires_grad_()
    (hvd.allreduce(mine, op=op) * (1 + 2j)).imag.square().sum().backward()
    scale = size  # each rank has the loss, and all are added
    assert torch.allclose(mine.grad, every.grad[rank] * scale)


def test_allgather(rank, size):
    shapes = [(r + 1, 2) for r in range(size)]
    whole = (sum(shape[0] for shape in shapes), 2)

    def loss(mine):
        rows = torch.cat([mine if r == rank else given(r, shapes[r]) for r in range(size)])
        return sum((rows.square() * weights(r, whole)).sum() for r in range(size)) / size

    mine = given(rank, shapes[rank]).requires_grad_()
    (hvd.allgather(mine).square() * weights(rank, whole)).sum().backward()
    expected = differences(loss, mine.detach())
    assert torch.allclose(mine.grad, expected, atol=1e-5)
    again = given(rank, shapes[rank]).requires_grad_()
    one, two = hvd.grouped_allgather([again, again * 2])
    ((one.square() + two) * weights(rank, whole)).sum().backward()
    linear = differences(lambda x: loss_of_rows(x, rank, size, shapes, whole), mine.detach())
    assert torch.allclose(again.grad, expected + 2 * linear, atol=1e-5)


def loss_of_rows(mine, rank, size, shapes, whole):
    rows = torch.cat([mine if r == rank else given(r, shapes[r]) for r in range(size)])
    return sum((rows * weights(r, whole)).sum() for r in range(size)) / size


def test_broadcast(rank, size):
    root = size - 1

    def loss(mine):
        value = mine if rank == root else given(root, (3,))
        return sum((value.square() * weights(r, (3,))).sum() for r in range(size)) / size

    mine = given(rank, (3,)).requires_grad_()
    (hvd.broadcast(mine, root).square() * weights(rank, (3,))).sum().backward()
    assert torch.allclose(mine.grad, differences(loss, mine.detach()), atol=1e-6)
    assert rank == root or mine.grad.abs().sum() == 0


@pytest.mark.parametrize("even", [True, False])
def test_alltoall(rank, size, even):
    splits = [[1] * size if even else [(r + d) % 3 for d in range(size)] for r in range(size)]
    rows = [sum(splits[r]) + (0 if even else 1) for r in range(size)]  # one row goes nowhere

    def loss(mine):
        inputs = [mine if r == rank else given(r, (rows[r], 2)) for r in range(size)]
        result = 0
        for d in range(size):
            came = [inputs[r][sum(splits[r][:d]):sum(splits[r][:d + 1])] for r in range(size)]
            output = torch.cat(came)
            result = result + (output.square() * weights(d, output.shape)).sum()
        return result

    mine = given(rank, (rows[rank], 2)).requires_grad_()
    output = hvd.alltoall(mine) if even else hvd.alltoall(mine, torch.tensor(splits[rank]))[0]
    (output.square() * weights(rank, output.shape)).sum().backward()
    assert torch.allclose(mine.grad, differences(loss, mine.detach()), atol=1e-5)


@pytest.mark.parametrize("op", [hvd.Sum, hvd.Average])
@pytest.mark.parametrize("grouped", [False, True])
def test_reducescatter(rank, size, op, grouped):
    shape = (2 * size + 1, 2)
    bounds = [0, 3] + [3 + 2 * r for r in range(1, size)]
    scale = size  # Horovod's rule gives so many times the gradient of the sum of the losses

    def loss(mine):
        result = reduce_like(op, [mine if r == rank else given(r, shape) for r in range(size)],
                             0.5, 3.0)
        pieces = [result[bounds[r]:bounds[r + 1]] for r in range(size)]
        return scale * sum((piece * weights(r, piece.shape)).sum()
                           for r, piece in enumerate(pieces))

    mine = given(rank, shape).requires_grad_()
    how = {"op": op, "prescale_factor": 0.5, "postscale_factor": 3.0}
    output = (hvd.grouped_reducescatter([mine], **how)[0] if grouped
              else hvd.reducescatter(mine, **how))
    (output * weights(rank, output.shape)).sum().backward()
    assert torch.allclose(mine.grad, differences(loss, mine.detach()), atol=1e-5)


def test_reducescatter_of_others_is_refused(size):
    output = hvd.reducescatter(torch.ones(size, requires_grad=True), op=hvd.Max)
    with pytest.raises(NotImplementedError, match="Average and Sum"):
        output.sum().backward()


def test_compressed(size):
    mine = torch.ones(4, requires_grad=True)
    hvd.allreduce(mine, op=hvd.Sum, compression=hvd.Compression.fp16).sum().backward()
    assert mine.grad.tolist() == [size] * 4


def test_no_gradient_is_asked_for():
    mine = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not hvd.allreduce(mine).requires_grad
    assert hvd.allreduce(mine).requires_grad and not hvd.allgather(mine.detach()).requires_grad
