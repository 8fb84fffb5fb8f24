# SPDX-License-Identifier: Apache-2.0
"""Sums within compiled JAX programs, by hvd and by jaxlib's gloo, in turns in the same processes.

Started by scripts/bench jax: hvdrun -np 2 python jax_chain.py ROUNDS. A program is a chain of sums, each of the one
before, so none begins before the last has ended. Rank 0 prints a JSON line a size: of each side the median over the
rounds, in microseconds a sum; and the median of the rounds' ratios.
"""
import functools
import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import hvd.jax as hvd

SIZES = (4, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20)


def sums_in_chain(count):
    return 64 if count <= 4 << 20 else 16


def by_hvd(elements, chain):
    program = jax.jit(lambda x: functools.reduce(lambda y, _: hvd.allreduce(y, hvd.Sum, name="chain"), range(chain), x))
    return program, jnp.ones(elements, jnp.float32)


def by_gloo(elements, chain):
    mesh = jax.make_mesh((hvd.size(),), ("ranks",))
    ranks = jax.sharding.PartitionSpec("ranks")

    @jax.jit
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=ranks, out_specs=ranks, check_vma=False)
    def program(x):
        return functools.reduce(lambda y, _: jax.lax.psum(y, "ranks"), range(chain), x)

    return program, jax.make_array_from_process_local_data(
        jax.sharding.NamedSharding(mesh, ranks), np.ones(elements, np.float32))


def measure(program, argument, chain):
    """Microseconds a sum."""
    hvd.barrier()
    began = time.perf_counter()
    result = jax.block_until_ready(program(argument))
    took = (time.perf_counter() - began) / chain
    mine = np.asarray(result.addressable_data(0))
    assert mine[0] == mine[-1] == float(hvd.size()) ** chain, "wrong sum"
    return 1e6 * took


def compare(size, rounds):
    chain = sums_in_chain(size)
    sides = {"hvd": by_hvd(size // 4, chain), "gloo": by_gloo(size // 4, chain)}
    times = {name: [] for name in sides}
    for _ in range(rounds + 1):
        for name, (program, argument) in sides.items():
            times[name].append(measure(program, argument, chain))
    us = {name: times[name][1:] for name in sides}  # the first has compiled
    ratios = [theirs / ours for ours, theirs in zip(us["hvd"], us["gloo"])]
    if hvd.rank() == 0:
        print(json.dumps({"case": "jax chain", "bytes": size, "np": hvd.size(), "iters": rounds, "ratio": round(statistics.median(ratios), 2),
                          **{f"us_{name}": round(statistics.median(each), 1) for name, each in us.items()}}), flush=True)


def main():
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize()
    hvd.init()
    for size in SIZES:
        compare(size, int(sys.argv[1]))
    hvd.shutdown()
    jax.distributed.shutdown()


main()
