# SPDX-License-Identifier: Apache-2.0
"""Horovod's elastic PyTorch example in its usual form, on made-up digits instead of a download; no
word of hvd but its name there. For tests/system/test_python_elastic.py."""
import torch
import torch.nn.functional as F
import torch.utils.data.distributed

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState

EPOCHS = 2

hvd.init()
torch.manual_seed(42)
torch.set_num_threads(1)

generator = torch.Generator().manual_seed(1)
pictures = torch.rand(256, 1, 8, 8, generator=generator)
labels = torch.randint(0, 8, (256,), generator=generator)
pictures[torch.arange(256), 0, :, labels] += 1
dataset = torch.utils.data.TensorDataset(pictures, labels)
sampler = ElasticSampler(dataset)
loader = torch.utils.data.DataLoader(dataset, batch_size=16, sampler=sampler)

model = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(216, 8), torch.nn.LogSoftmax(1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * hvd.size(), momentum=0.5)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(),
                                     compression=hvd.Compression.none, op=hvd.Average)
raised = []


def metric_average(val, name):
    return hvd.allreduce(torch.tensor(val), name=name).item()


@hvd.elastic.run
def train(state):
    for state.epoch in range(state.epoch, EPOCHS + 1):  # noqa: B020
        state.model.train()
        for batch, (data, target) in enumerate(loader):
            state.optimizer.zero_grad()
            F.nll_loss(state.model(data), target).backward()
            state.optimizer.step()
            state.sampler.record_batch(batch, 16)
            state.batch += 1
            if state.batch % 3 == 0:
                state.commit()
        state.batch = 0
        state.sampler.set_epoch(state.epoch + 1)


def on_state_reset():
    for param_group in optimizer.param_groups:
        param_group["lr"] = 0.02 * hvd.size()


state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=1, batch=0)
assert isinstance(state, TorchState) and issubclass(HorovodInternalError, RuntimeError)
assert HostsUpdatedInterrupt(True).skip_sync
state.register_reset_callbacks([on_state_reset])
train(state)
with torch.no_grad():
    loss = metric_average(F.nll_loss(model(pictures), labels).item(), "avg_loss")
if hvd.rank() == 0:
    print(f"\nTest set: Average loss: {loss:.4f}\n")
