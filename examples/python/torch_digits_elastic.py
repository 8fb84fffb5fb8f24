# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on handwritten digits while ranks come and go, as Horovod's elastic
programs do.

    hvdrun -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh \\
        python examples/python/torch_digits_elastic.py
    hvdrun -np 2 python examples/python/torch_digits_elastic.py       # runs as any other, too

What is hvd's is marked. Kill a rank: the others keep their processes, go back to the last commit
and go on; no image of the epoch is lost.
"""
import argparse
import os
import time

import torch
from digits import choose_device, load_digits, make_network
from torch.nn import functional as F
from torch.utils.data import DataLoader

import hvd.torch as hvd


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains on handwritten digits, elastically.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="images a step, of each rank")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate, times the ranks")
    parser.add_argument("--commit-every", type=int, default=5, help="steps between two commits")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: cuda where it is")
    return parser.parse_args()


def step(state, pixels, digits):
    """Returns the loss."""
    state.optimizer.zero_grad()
    loss = F.cross_entropy(state.model(pixels), digits)
    loss.backward()
    state.optimizer.step()
    return loss.item()


def run_epoch(state, loader, arguments, device):
    """Trains what is left of the epoch; returns the sum of the losses, and of how many steps."""
    total = 0.0
    for number, (pixels, digits) in enumerate(loader):
        total += step(state, pixels.to(device), digits.to(device))
        state.sampler.record_batch(number, len(pixels))  # hvd: these are done
        time.sleep(arguments.pause)
        if number % arguments.commit_every == arguments.commit_every - 1:
            state.commit()  # hvd: raises when ranks are to come or go
    return total, len(loader)


@hvd.elastic.run  # hvd: called again whenever ranks have come or gone
def train(state, loader, arguments, device):
    """From where the state says."""
    print(f"pid {os.getpid()}: rank {hvd.rank()} of {hvd.size()}, epoch {state.epoch + 1}, "
          f"{len(state.sampler.processed_indices)} images done", flush=True)
    while state.epoch < arguments.epochs:
        total, steps = run_epoch(state, loader, arguments, device)
        sums = hvd.allreduce(torch.tensor([total, steps], dtype=torch.float64), op=hvd.Sum)
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)  # hvd: at the end of an epoch
        if hvd.rank() == 0:
            loss = sums[0] / max(sums[1], 1)
            print(f"epoch {state.epoch}: loss {loss:.5f} on {hvd.size()} ranks", flush=True)
        state.commit()  # hvd


def main():
    arguments = parse_arguments()
    hvd.init()  # hvd
    device = choose_device(arguments.device, hvd.elastic.slot())  # hvd: stays when ranks change
    torch.set_num_threads(1)

    train_set, _ = load_digits(arguments.seed)
    sampler = hvd.elastic.ElasticSampler(train_set, seed=arguments.seed)  # hvd
    loader = DataLoader(train_set, arguments.batch, sampler=sampler)
    network = make_network(arguments.seed).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=arguments.lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, network.named_parameters())  # hvd

    state = hvd.elastic.TorchState(network, optimizer, sampler=sampler, epoch=0)  # hvd

    def rescale():
        for group in optimizer.param_groups:
            group["lr"] = arguments.lr * hvd.size()

    state.register_reset_callbacks([rescale])  # hvd: the batch has grown, or shrunk
    train(state, loader, arguments, device)
    hvd.shutdown()  # hvd


if __name__ == "__main__":
    main()
