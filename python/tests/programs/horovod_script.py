# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="operator"
"""A program as Horovod's documentation has it: the lines that any Horovod program has, and no word
of hvd. python horovod_script.py CHECKPOINT"""
import os
import sys

import torch
import torch.nn.functional as F
import torch.utils.data.distributed

import horovod.torch as hvd

hvd.init()
torch.manual_seed(42)
torch.set_num_threads(1)

inputs = torch.randn(64, 10)
dataset = torch.utils.data.TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = torch.utils.data.distributed.DistributedSampler(
    dataset, num_replicas=hvd.size(), rank=hvd.rank())
loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * hvd.size(), momentum=0.5)

hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

compression = hvd.Compression.fp16 if "fp16" in sys.argv else hvd.Compression.none
optimizer = hvd.DistributedOptimizer(optimizer,
                                     named_parameters=model.named_parameters(),
                                     compression=compression,
                                     op=hvd.Average)


def metric_average(val, name):
    tensor = torch.tensor(val)
    avg_tensor = hvd.allreduce(tensor, name=name)
    return avg_tensor.item()


first = last = None
for epoch in range(12):
    sampler.set_epoch(epoch)
    total = 0.0
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    last = metric_average(total / len(loader), "avg_loss")
    first = last if first is None else first
    if hvd.rank() == 0:
        torch.save(model.state_dict(), sys.argv[1])

assert last < first / 2, (first, last)
assert os.environ["HOROVOD_RANK"] == str(hvd.rank())
print(f"rank {hvd.rank()} of {hvd.size()}: loss {last:.6f}", flush=True)
