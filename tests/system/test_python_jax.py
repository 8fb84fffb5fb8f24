# SPDX-License-Identifier: Apache-2.0
"""hvd.jax: its tests on jobs of several sizes, and how its programs end."""
import functools
import subprocess

import world
from test_python import ENV, TESTS, WITH_JAX, must_be_clean, python, run_tests

PROGRAM = TESTS / "programs" / "jax_ends.py"
DISTRIBUTED = TESTS / "programs" / "jax_distributed.py"
EXAMPLE = world.REPOSITORY / "examples" / "python" / "jax_digits.py"


@functools.cache
def python_with_jax():
    asked = subprocess.run([python(), "-c", "import jax, optax"], capture_output=True, text=True)
    if asked.returncode != 0:
        raise world.Skip(f".cache/python: {asked.stderr.strip().splitlines()[-1]}")
    return python()


@world.bound(500)
def test_collectives_and_programs():
    python_with_jax()
    with world.hosts(2) as here:
        for np, *hosts in world.rows((3, "-H", "host0:2,host1:1"), with_all=((2,),)):
            run_tests(here, np, *hosts, tests=(WITH_JAX,))


@world.bound(200)
def test_the_digits_example_gives_the_same_losses_on_any_number_of_ranks():
    losses = {}
    with world.hosts(2) as here:
        for np, hosts in world.rows((1, ()), (4, ("-H", "host0:2,host1:2")), with_all=((2, ()),)):
            outcome = here.hvdrun("-np", np, *hosts, python_with_jax(), EXAMPLE, "--epochs", 2, env=ENV, seconds=60).must(0)
            losses[np] = [float(line.split("loss ")[1].split(",")[0]) for line in outcome.out.splitlines() if "loss " in line]
            assert len(losses[np]) == 2, outcome
            must_be_clean(here)
    for np in losses:
        assert all(abs(a - b) < 1e-3 for a, b in zip(losses[1], losses[np])), losses


@world.bound(200)
def test_ends_and_beginnings():
    with world.hosts() as here:
        for mode in ("pending", "pending-hvd-first", "sessions"):
            outcome = here.hvdrun("-np", 2, python_with_jax(), PROGRAM, mode, env=ENV, seconds=60).must(0)
            assert outcome.out.count("done") == 2, outcome
            must_be_clean(here)
        outcome = here.hvdrun("-np", 2, python_with_jax(), PROGRAM, "dies", env=ENV, seconds=60).must(7, "rank 1")
        assert outcome.out.count("was told") == 1, outcome
        must_be_clean(here)


@world.bound(200)
def test_the_processes_of_jax_find_one_another():
    """With a port that rank 0 chooses, and also where Slurm's or Open MPI's names are about."""
    slurm = {"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "other", "SLURM_JOB_NODELIST": "other", "SLURM_NTASKS": "9", "SLURM_PROCID": "8",
             "SLURM_LOCALID": "0", "SLURM_STEP_NUM_NODES": "9"}
    with world.hosts(2) as here:
        for np, hosts in ((2, ()), (4, ("-H", "host0:2,host1:2")), (2, ("-H", "host1:1,host0:1"))):
            words = [word for name, value in slurm.items() for word in ("-x", f"{name}={value}")]
            outcome = here.hvdrun("-np", np, *hosts, *words, python_with_jax(), DISTRIBUTED, env=ENV, seconds=60).must(0)
            assert outcome.out.count("met") == np, outcome
            must_be_clean(here)
        here.hvdrun("-np", 2, python_with_jax(), DISTRIBUTED, "without", env=ENV, seconds=60).must(
            1, "import hvd.jax before jax.distributed.initialize()")
        must_be_clean(here)
