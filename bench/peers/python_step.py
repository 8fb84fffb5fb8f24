# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of hvd's Python faces, and of a training step of ResNet-50's shape in several ways, by turns in the same processes.

Started by scripts/bench python: hvdrun -np 2 python python_step.py ROUNDS. Rank 0 prints a JSON line a figure: the median
over the rounds, in microseconds. Every way trains a model of its own; their parameters must be equal at the end.
"""
import contextlib
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from resnet50 import resnet50
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import hvd
import hvd.distributed  # noqa: F401
import hvd.torch as hvd_torch

IMAGES, PIXELS, STEPS = 4, 32, 3
TENSORS = 161
DDP_BUCKET = 25 << 18  # elements of float32: 25 MiB


def say(case, us, **more):
    if hvd.rank() == 0:
        print(json.dumps({"case": case, "us": round(us, 2), **more}), flush=True)


def calls(rounds):
    """One call of 4 bytes after another; and the gradients of a step, of one element each."""
    small = torch.ones(1)
    many = [torch.ones(1) for _ in range(TENSORS)]
    names = [f"gradient {index}" for index in range(TENSORS)]
    blocking, together = [], []
    for _ in range(100 * rounds):
        began = time.perf_counter()
        hvd_torch.allreduce_(small, name="small")
        blocking.append(time.perf_counter() - began)
    for _ in range(50 * rounds):
        hvd.barrier()
        began = time.perf_counter()
        handles = [hvd_torch.allreduce_async_(one, name=name) for one, name in zip(many, names)]
        for handle in handles:
            hvd_torch.synchronize(handle)
        together.append(time.perf_counter() - began)
    say("blocking", 1e6 * statistics.median(blocking))
    say("async", 1e6 * statistics.median(together), tensors=TENSORS)


class Way:
    """One way to train. `prepare` may wrap the model and its optimizer."""

    def __init__(self, name, prepare):
        torch.manual_seed(1)
        self.name = name
        self.plain = resnet50()
        self.model, self.optimizer = prepare(self.plain, torch.optim.SGD(self.plain.parameters(), lr=0.001))
        if self.optimizer is None:  # the parameters are others now
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)
        self.times = []

    def step(self, images, classes):
        hvd.barrier()
        began = time.perf_counter()
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(images), classes).backward()
        self.optimizer.step()
        self.times.append(time.perf_counter() - began)

    def parameters(self):
        for one in self.plain.parameters():
            yield (one.full_tensor() if hasattr(one, "full_tensor") else one).detach()


def ddp(group):
    return lambda model, optimizer: (
        DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True, broadcast_buffers=False),
        optimizer)


def fsdp(group):
    def prepare(model, _):
        mesh = DeviceMesh.from_group(group, "cpu")
        for layer in model:
            if any(True for _ in layer.parameters()):
                fully_shard(layer, mesh=mesh)
        return fully_shard(model, mesh=mesh), None
    return prepare


def distributed_optimizer(model, optimizer):
    wrapped = hvd_torch.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd_torch.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, wrapped


def steps(rounds):
    everyone = list(range(hvd.size()))
    gloo, ours = dist.group.WORLD, dist.new_group(everyone, backend="hvd")
    ways = [Way("local", lambda model, optimizer: (model, optimizer)), Way("hvd optimizer", distributed_optimizer),
            Way("DDP gloo", ddp(gloo)), Way("DDP hvd", ddp(ours)), Way("FSDP2 gloo", fsdp(gloo)), Way("FSDP2 hvd", fsdp(ours))]
    generator = torch.Generator().manual_seed(hvd.rank())
    images = torch.randn(IMAGES, 3, PIXELS, PIXELS, generator=generator)
    classes = torch.randint(1000, (IMAGES,), generator=generator)
    for _ in range(rounds + 1):
        for way in ways:
            for _ in range(STEPS):
                way.step(images, classes)
    for way in ways:
        say(f"step: {way.name}", 1e6 * statistics.median(way.times[STEPS:]))
    wanted = list(ways[1].parameters())
    for way in ways[2:]:
        worst = max((one - other).abs().max().item() for one, other in zip(way.parameters(), wanted))
        assert worst < 1e-3, f"{way.name} has other parameters: {worst}"
    return ways[1]


def gradients(rounds, way):
    """A step's gradients alone: from where backward leaves them through DistributedOptimizer, and in DDP's buckets through gloo."""
    params = list(way.plain.parameters())
    made = [torch.ones_like(p) for p in params]
    elements = sum(p.numel() for p in params)
    buckets = [torch.ones(min(DDP_BUCKET, elements - at)) for at in range(0, elements, DDP_BUCKET)]
    ours, gloo = [], []
    for _ in range(5 * rounds):
        for p, gradient in zip(params, made):
            p.grad = gradient
        hvd.barrier()
        began = time.perf_counter()
        for p in reversed(params):
            way.optimizer._arrived(p)
        way.optimizer.synchronize()
        ours.append(time.perf_counter() - began)
        hvd.barrier()
        began = time.perf_counter()
        for work in [dist.all_reduce(bucket, async_op=True) for bucket in buckets]:
            work.wait()
        gloo.append(time.perf_counter() - began)
        assert all(p.grad[..., 0].sum() == p.grad[..., 0].numel() for p in params)
    say("gradients: hvd", 1e6 * statistics.median(ours))
    say("gradients: gloo", 1e6 * statistics.median(gloo))


def main():
    rounds = int(sys.argv[1])
    torch.set_num_threads(1)
    hvd.init()
    with contextlib.suppress(KeyError):
        os.environ.pop("MASTER_PORT")
    dist.init_process_group("gloo")
    calls(rounds)
    gradients(rounds, steps(rounds))
    dist.destroy_process_group()
    hvd.shutdown()


if __name__ == "__main__":
    main()
