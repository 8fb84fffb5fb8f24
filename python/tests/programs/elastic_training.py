# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="assignment"
"""A rank of an elastic job, for tests/system/test_python_elastic.py: trains with PyTorch, says who
it is and what it has, and ends when the file --until is there.

    epoch E rank R size N pid HOST:P share S done D hash H   where it comes into an epoch
    commit E K hash H                                the same behind each 20th step

A hash is of the tensors that all ranks have alike: where they begin an epoch, of buffers, too.
"""
import argparse
import hashlib
import os
import pathlib
import signal
import socket
import time

import torch

import hvd.torch as hvd

parser = argparse.ArgumentParser()
parser.add_argument("--until", required=True)
parser.add_argument("--workers", action="store_true", help="a DataLoader with a process")
parser.add_argument("--distributed", action="store_true", help="torch.distributed's DDP")
parser.add_argument("--die", help="file that the first rank 1 takes away, to kill itself in a step")
parser.add_argument("--second", help="file for which another host's second rank waits before it "
                    "begins; the first makes it in its first epoch, before it has the state")
parser.add_argument("--pause", type=float, default=0.01)
arguments = parser.parse_args()

if arguments.distributed:
    from hvd.distributed import register

    register()
    torch.distributed.init_process_group("hvd")
elsewhere = arguments.second and socket.gethostname() != "host0"
while elsewhere and os.environ["HVD_LOCAL_RANK"] == "1" and not os.path.exists(arguments.second):
    time.sleep(0.01)  # it looks again
hvd.init()
if elsewhere and hvd.local_rank() == 0:
    pathlib.Path(arguments.second).touch()
    time.sleep(2)  # orders nothing: the second is there by then, and the others know that it is
torch.set_num_threads(1)
torch.manual_seed(hvd.rank())

data = torch.arange(4800)
sampler = hvd.elastic.ElasticSampler(data)
more = {"num_workers": 1, "persistent_workers": True} if arguments.workers else {}
loader = torch.utils.data.DataLoader(data, 4, sampler=sampler, **more)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16),
                            torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
if not arguments.distributed:
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, step=0, samples=0)
workers = set()


def digest(*more):
    parts = [p.detach().numpy().tobytes() for p in (*model.parameters(), *more)]
    for values in optimizer.state_dict()["state"].values():
        parts += [one.numpy().tobytes() for _, one in sorted(values.items())]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def die():
    if arguments.die and hvd.rank() == 1 and state.step > 30:
        try:
            os.unlink(arguments.die)
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def take_step(module, numbers):
    optimizer.zero_grad()
    inputs = torch.sin(numbers[:, None] * torch.arange(1, 9) / 100)
    loss = module(inputs).sub(inputs.sum(1, keepdim=True)).square().mean()
    die()
    loss.backward()
    optimizer.step()


@hvd.elastic.run
def train(state):
    epoch = hvd.elastic.epoch()
    who = f"{socket.gethostname()}:{os.getpid()}"
    print(f"epoch {epoch.number} rank {hvd.rank()} size {hvd.size()} pid {who} "
          f"share {hvd.elastic.slot()} done {state.samples} hash {digest(*model.buffers())}",
          flush=True)
    module = torch.nn.parallel.DistributedDataParallel(model) if arguments.distributed else model
    while True:
        for number, numbers in enumerate(loader):
            if len(numbers) > 1:
                take_step(module, numbers)
            sampler.record_batch(number, len(numbers))
            state.step += 1
            time.sleep(arguments.pause)
            if arguments.workers:
                workers.update(worker.pid for worker in loader._iterator._workers)
            if state.step % 5 == 0:
                ends = hvd.allreduce(torch.tensor(float(pathlib.Path(arguments.until).exists())),
                                     op=hvd.Max).item() > 0
                state.samples = len(sampler.processed_indices)
                state.commit()
                if state.step % 20 == 0 or ends:
                    print(f"commit {hvd.elastic.epoch().number} {state.step} hash {digest()}",
                          flush=True)
                if ends:
                    return
        state.commit()
        assert len(sampler.processed_indices) == len(data), "SAMPLES LOST"
        sampler.set_epoch(sampler.epoch + 1)


train(state)
assert len(workers) <= 1, f"WORKERS DIED: {workers}"
print(f"rank {hvd.rank()} done", flush=True)
if arguments.distributed:
    torch.distributed.destroy_process_group()
