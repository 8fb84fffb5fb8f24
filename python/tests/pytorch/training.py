# SPDX-License-Identifier: Apache-2.0
"""The training in the tests of DistributedOptimizer: of a net on all ranks, and of the same in one
process that has all ranks' batches."""
import torch

import hvd.torch as hvd

STEPS, ROWS = 5, 4


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)
        self.second = torch.nn.Linear(8, 3)
        self.idle = torch.nn.Linear(2, 2)  # has no part in forward
        self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) * self.frozen


def made(dtype=torch.float64):
    torch.manual_seed(3)
    return Net().to(dtype)


def batches(size, step, dtype=torch.float64):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(size, ROWS, 6, generator=generator, dtype=torch.float64)
    return x.to(dtype), x.sum(2, keepdim=True).sin().to(dtype)


def loss_of(model, x, y):
    return (model(x) - y).square().mean()


def sgd(params, momentum=0.9):
    return torch.optim.SGD(params, lr=0.05, momentum=momentum)


def alone(size, make=sgd, steps=STEPS, dtype=torch.float64, clip=None):
    """The parameters after training in one process."""
    model = made(dtype)
    optimizer = make([p for p in model.parameters() if p.requires_grad])
    for step in range(steps):
        optimizer.zero_grad()
        x, y = batches(size, step, dtype)
        loss_of(model, x.flatten(0, 1), y.flatten(0, 1)).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def train(rank, size, optimizer, model, steps=STEPS, dtype=torch.float64, **zero):
    for step in range(steps):
        optimizer.zero_grad(**zero)
        x, y = batches(size, step, dtype)
        loss_of(model, x[rank], y[rank]).backward()
        optimizer.step()


def same(model, expected, **tolerance):
    for p, q in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(p.detach(), q, **tolerance), (p, q)


def wrapped(model, make=sgd, **how):
    params = [p for p in model.parameters() if p.requires_grad]
    return hvd.DistributedOptimizer(make(params), named_parameters=model.named_parameters(), **how)
