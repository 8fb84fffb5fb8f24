# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits, on any number of ranks: Horovod's flow with hvd.

    hvdrun -np 2 python examples/python/torch_digits.py               # on GPUs where there are any
    hvdrun -np 2 python examples/python/torch_digits.py --device cpu

What is hvd's is marked. --batch counts the images of all ranks together, so that the losses are the
same on any number of them; give --batch-per-rank instead, and each rank adds its own: then the
learning rate grows with the ranks, as it does in most Horovod programs.
"""
import argparse

import torch
from digits import choose_device, load_digits, make_network
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import hvd.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images a step, of all ranks")
    parser.add_argument("--batch-per-rank", type=int, help="images a step, of each rank")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", help="where rank 0 saves the best network")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where it is")
    parser.add_argument("--fp16", action="store_true", help="gradients travel in 16 bits")
    return parser.parse_args()


def average(value, name):
    """The mean of all ranks' values."""
    return hvd.allreduce(torch.tensor(value, dtype=torch.float64), name=name).item()  # hvd


def train(network, optimizer, loader, device):
    """One epoch; returns the mean loss over all ranks."""
    network.train()
    total = 0.0
    for pixels, digits in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(pixels.to(device)), digits.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return average(total / len(loader), "loss")


@torch.no_grad()
def accuracy(network, loader, device):
    """The share of right answers, over all ranks."""
    network.eval()
    right = total = 0.0
    for pixels, digits in loader:
        right += (network(pixels.to(device)).argmax(1).cpu() == digits).sum().item()
        total += len(digits)
    return average(right, "right") / average(total, "total")


def main():
    arguments = parse_arguments()
    hvd.init()  # hvd
    device = choose_device(arguments.device, hvd.local_rank())  # hvd: each rank has its own GPU
    torch.set_num_threads(1)  # each rank has cores of its own

    train_set, test_set = load_digits(arguments.seed)
    per_rank = arguments.batch_per_rank or max(arguments.batch // hvd.size(), 1)
    rate = arguments.lr * (hvd.size() if arguments.batch_per_rank else 1)  # hvd: larger batches
    sampler = DistributedSampler(train_set, hvd.size(), hvd.rank(), seed=arguments.seed)  # hvd
    loader = DataLoader(train_set, per_rank, sampler=sampler)
    test_sampler = DistributedSampler(test_set, hvd.size(), hvd.rank(), shuffle=False)  # hvd
    test_loader = DataLoader(test_set, 64, sampler=test_sampler)

    network = make_network(arguments.seed).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(  # hvd: gradients are averaged over all ranks
        optimizer, named_parameters=network.named_parameters(),
        compression=hvd.Compression.fp16 if arguments.fp16 else hvd.Compression.none)
    hvd.broadcast_parameters(network.state_dict(), root_rank=0)  # hvd: all begin alike
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)  # hvd

    best = 0.0
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        loss = train(network, optimizer, loader, device)
        right = accuracy(network, test_loader, device)
        if hvd.rank() == 0:  # hvd: one rank speaks and saves
            print(f"epoch {epoch + 1}: loss {loss:.5f} accuracy {right:.3f}", flush=True)
            if arguments.checkpoint and right > best:
                torch.save(network.state_dict(), arguments.checkpoint)
        best = max(best, right)
    hvd.shutdown()  # hvd


if __name__ == "__main__":
    main()
