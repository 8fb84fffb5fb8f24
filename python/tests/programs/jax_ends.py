# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-redef, misc, attr-defined"
"""How programs of hvd.jax end and begin again: jax_ends.py MODE [SESSIONS]."""
import os
import signal
import sys

if sys.argv[1] == "pending-hvd-first":
    import hvd  # noqa: F401

import jax
import jax.numpy as jnp

import hvd.jax as hvd  # noqa: F811


def pending():
    """The process ends while XLA still waits for the others."""
    program = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum, name=f"rank {hvd.rank()} alone"))
    # XLA runs what waits for nothing in the calling thread.
    slow = jax.jit(lambda x: x @ x @ x)(jnp.ones((1500, 1500)))
    program(slow)
    print("done", flush=True)


def sessions():
    """The same programs in many sessions."""
    program = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum))
    hvd.shutdown()
    try:
        program(jnp.ones(3))
    except hvd.NotInitializedError:
        hvd.init()
    for _ in range(int((sys.argv + [100])[2])):
        assert float(program(jnp.ones(3))[0]) == hvd.size()
        hvd.shutdown()
        hvd.init()
    hvd.shutdown()
    try:
        program(jnp.ones(3)).block_until_ready()
    except Exception as error:
        assert isinstance(hvd.error_of(error), hvd.NotInitializedError), error
        print("done", flush=True)


def dies():
    """Rank 1 dies inside a program: the others are told who."""
    program = jax.jit(lambda x: hvd.allreduce(x, hvd.Sum))
    program(jnp.ones(3)).block_until_ready()
    if hvd.rank() == 1:
        sys.stdout.flush()
        os._exit(7)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # hvdrun's, which may come first
    try:
        program(jnp.ones(3)).block_until_ready()
    except Exception as error:
        assert isinstance(hvd.error_of(error), hvd.HorovodInternalError), error
        print("was told", flush=True)


hvd.init()
modes = {"pending": pending, "pending-hvd-first": pending, "sessions": sessions, "dies": dies}
modes[sys.argv[1]]()
