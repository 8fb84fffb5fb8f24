# SPDX-License-Identifier: Apache-2.0
"""JAX's own processes under hvdrun: jax.distributed.initialize() needs no argument.
jax_distributed.py [WITHOUT]: as a program does that does not import hvd.jax."""
import sys

import jax
import jax.numpy as jnp
import numpy as np

if sys.argv[1:] == ["without"]:
    jax.distributed.initialize()

import hvd.jax as hvd  # noqa: E402

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize()
hvd.init()
assert (jax.process_index(), jax.process_count()) == (hvd.rank(), hvd.size())
assert len(jax.devices()) == hvd.size() and len(jax.local_devices()) == 1

mesh = jax.make_mesh((hvd.size(),), ("ranks",))
spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("ranks"))
mine = np.full((1, 4), hvd.rank() + 1.0, np.float32)
by_jax = jax.jit(lambda x: x.sum(0), out_shardings=jax.sharding.NamedSharding(
    mesh, jax.sharding.PartitionSpec()))(jax.make_array_from_process_local_data(spread, mine))
by_hvd = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum))(jnp.asarray(mine[0]))
assert np.array_equal(by_jax.addressable_data(0), by_hvd), (by_jax, by_hvd)
print("met", flush=True)
hvd.shutdown()
jax.distributed.shutdown()
