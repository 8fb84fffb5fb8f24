# SPDX-License-Identifier: Apache-2.0
"""ResNet-50's gradients as torch and Horovod average them; a JSON line with the keys of hvd-bench.

Usage: torchrun --nproc-per-node N frameworks.py torch       in DDP's buckets of 25 MiB, over gloo
       horovodrun -np N python frameworks.py horovod         tensor by tensor, in an order that differs by rank and step
"""
import json
import random
import sys
import time

import torch
from frameworks_shapes import resnet50_counts

STEPS, WARM_UP = 10, 3
torch.set_num_threads(1)
if sys.argv[1] == "horovod":
    import horovod.torch as hvd
    hvd.init()
    rank, size, barrier = hvd.rank(), hvd.size(), hvd.barrier
    name = "horovod-" + ("mpi" if hvd.mpi_enabled() else "gloo")

    def start(x, key):
        return hvd.allreduce_async_(x, op=hvd.Sum, name=key)
    finish = hvd.synchronize
else:
    import torch.distributed as dist
    dist.init_process_group("gloo")
    rank, size, barrier, name = dist.get_rank(), dist.get_world_size(), dist.barrier, "torch-gloo"

    def start(x, key):
        return dist.all_reduce(x, async_op=True)

    def finish(handle):
        handle.wait()


def main():
    tensors = [torch.ones(count) for count in resnet50_counts()]
    total = sum(x.numel() * 4 for x in tensors)
    if name == "torch-gloo":
        tensors = [torch.ones(part.numel()) for part in torch.empty(total // 4).split((25 << 20) // 4)]
    times = []
    for step in range(WARM_UP + STEPS):
        order = list(range(len(tensors)))
        if name != "torch-gloo":
            random.Random(step * 100 + rank).shuffle(order)
        for x in tensors:
            x.fill_(1.0)
        barrier()
        begin = time.perf_counter()
        for handle in [start(tensors[i], f"gradient.{i}") for i in order]:
            finish(handle)
        times.append((time.perf_counter() - begin) * 1e6)
    assert all(x[0] == size and x[-1] == size for x in tensors), "wrong sum"
    times = sorted(times[WARM_UP:])
    if rank == 0:
        print(json.dumps({"peer": name, "op": "gradients", "dtype": "float32", "np": size, "bytes": total, "iters": len(times),
                          "us_p50": times[len(times) // 2], "us_p10": times[len(times) // 10],
                          "us_p90": times[len(times) * 9 // 10]}), flush=True)
    if name == "torch-gloo":
        dist.destroy_process_group()


main()
