# SPDX-License-Identifier: Apache-2.0
"""The same digits as a plain torch.distributed program: nothing in it is hvd's but a word.

    hvdrun -np 2 python examples/python/ddp_digits.py                       # DDP on backend "hvd"
    hvdrun -np 2 python examples/python/ddp_digits.py --shard               # FSDP2: parameters cut
    hvdrun -np 2 python examples/python/ddp_digits.py --backend gloo        # no port is opened
    torchrun --nproc-per-node 2 examples/python/ddp_digits.py --backend gloo

--batch counts the images of all ranks together, so that the losses are the same on any number.
"""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist
from digits import choose_device, load_digits, make_network
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

with contextlib.suppress(ImportError):  # an installed hvd needs no import
    import hvd.distributed  # noqa: F401


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains on handwritten digits.")
    parser.add_argument("--backend", default="hvd", help="torch.distributed's: hvd, gloo, …")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where it is")
    parser.add_argument("--shard", action="store_true", help="FSDP2 instead of DDP")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images a step, of all ranks")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def parallel(network, shard):
    if not shard:
        return DistributedDataParallel(network, gradient_as_bucket_view=True)
    for layer in (network[0], network[2]):
        fully_shard(layer)
    return fully_shard(network)


def mean(value):
    """Over all ranks."""
    total = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def train(network, optimizer, loader, device):
    total = 0.0
    for pixels, digits in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(pixels.to(device)), digits.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return mean(total / len(loader))


@torch.no_grad()
def accuracy(network, loader, device):
    right = total = 0.0
    for pixels, digits in loader:
        right += (network(pixels.to(device)).argmax(1).cpu() == digits).sum().item()
        total += len(digits)
    return mean(right) / mean(total)


def main():
    arguments = parse_arguments()
    device = choose_device(arguments.device, int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group(arguments.backend)
    torch.set_num_threads(1)  # each rank has cores of its own

    train_set, test_set = load_digits(arguments.seed)
    sampler = DistributedSampler(train_set, seed=arguments.seed)
    loader = DataLoader(train_set, max(arguments.batch // dist.get_world_size(), 1),
                        sampler=sampler)
    test_loader = DataLoader(test_set, 64, sampler=DistributedSampler(test_set, shuffle=False))

    network = parallel(make_network(arguments.seed).to(device), arguments.shard)
    optimizer = torch.optim.SGD(network.parameters(), lr=arguments.lr, momentum=0.9)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        loss = train(network, optimizer, loader, device)
        right = accuracy(network, test_loader, device)
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1}: loss {loss:.5f} accuracy {right:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
