# SPDX-License-Identifier: Apache-2.0
"""How many images a second ResNet-50 trains on, with made-up images.

    hvdrun -np 2 python examples/python/synthetic_benchmark.py
    python examples/python/synthetic_benchmark.py --ranks 1,2 --plot scaling.png   # starts the jobs
"""
import argparse
import statistics
import sys
import time

import torch
from resnet50 import resnet50
from torch.nn import functional as F

import hvd.torch as hvd
from hvd import run as run_job


def parse_arguments():
    parser = argparse.ArgumentParser(description="Trains ResNet-50 on random images.")
    parser.add_argument("--batch-size", type=int, default=4, help="images a step, of each rank")
    parser.add_argument("--image-size", type=int, default=64, help="pixels a side")
    parser.add_argument("--num-warmup-batches", type=int, default=2)
    parser.add_argument("--num-batches-per-iter", type=int, default=3)
    parser.add_argument("--num-iters", type=int, default=5)
    parser.add_argument("--fp16-allreduce", action="store_true", help="gradients travel in 16 bits")
    parser.add_argument("--ranks", help="numbers of ranks to compare, as 1,2,4: a job each")
    parser.add_argument("--plot", help="with --ranks: a PNG of the result (needs matplotlib)")
    return parser.parse_args()


def measure(arguments):
    """Called on every rank; returns the images a second of all ranks, for each iteration."""
    hvd.init()
    torch.set_num_threads(1)
    torch.manual_seed(hvd.rank())
    model = resnet50()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), named_parameters=model.named_parameters(),
        compression=hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    images = torch.randn(arguments.batch_size, 3, arguments.image_size, arguments.image_size)
    classes = torch.randint(1000, (arguments.batch_size,))

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(images), classes).backward()
        optimizer.step()

    for _ in range(arguments.num_warmup_batches):
        step()
    rates = []
    for number in range(arguments.num_iters):
        hvd.barrier()
        began = time.perf_counter()
        for _ in range(arguments.num_batches_per_iter):
            step()
        seconds = time.perf_counter() - began
        mine = arguments.batch_size * arguments.num_batches_per_iter / seconds
        rates.append(hvd.allreduce(torch.tensor(mine), op=hvd.Sum, name="rate").item())
        if hvd.rank() == 0:
            print(f"iteration {number + 1}: {rates[-1]:.1f} images/s on {hvd.size()} ranks",
                  flush=True)
    if hvd.rank() == 0:
        print(f"median: {statistics.median(rates):.1f} images/s", flush=True)
    hvd.shutdown()
    return rates


def compare(arguments, counts):
    """Images a second and the efficiency for each number of ranks; the first number's is 100 %."""
    rates = {}
    for count in counts:
        rates[count] = statistics.median(run_job(measure, (arguments,), num_proc=count)[0])
    one = rates[counts[0]] / counts[0]
    print("\nranks   images/s   efficiency")
    for count, rate in rates.items():
        print(f"{count:5}   {rate:8.1f}   {rate / count / one:9.0%}")
    return rates


def plot(rates, path):
    try:
        import matplotlib
    except ImportError:
        sys.exit("--plot needs matplotlib: pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    counts = list(rates)
    ideal = [rates[counts[0]] / counts[0] * count for count in counts]
    pyplot.plot(counts, ideal, "--", color="gray", label="ideal")
    pyplot.plot(counts, list(rates.values()), "o-", label="hvd")
    pyplot.xlabel("ranks")
    pyplot.ylabel("images/s")
    pyplot.xticks(counts)
    pyplot.legend()
    pyplot.savefig(path)
    print(f"wrote {path}")


def main():
    arguments = parse_arguments()
    if arguments.ranks is None:
        measure(arguments)
        return
    counts = [int(count) for count in arguments.ranks.split(",")]
    rates = compare(arguments, counts)
    if arguments.plot:
        plot(rates, arguments.plot)


if __name__ == "__main__":
    main()
