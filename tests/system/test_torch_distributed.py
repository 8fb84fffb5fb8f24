# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.distributed under hvdrun: on backend "hvd" and on gloo, with no port of a rendezvous."""
import pathlib

import world
from test_python import ENV, must_be_clean, python

EXAMPLE = world.REPOSITORY / "examples" / "python" / "ddp_digits.py"
PROGRAM = world.REPOSITORY / "python" / "tests" / "programs" / "torchrun_script.py"


def losses(here, np, *words, hosts=()):
    outcome = here.hvdrun("-np", np, *hosts, python(), EXAMPLE, "--epochs", 2, *words, env=ENV, seconds=80).must(0)
    found = [float(line.split("loss ")[1].split()[0]) for line in outcome.out.splitlines() if "loss " in line]
    assert len(found) == 2, outcome
    must_be_clean(here)
    return found


@world.bound(400)
def test_ddp_and_fsdp_give_the_losses_of_one_rank():
    python()
    two = ("-H", "host0:2,host1:2")
    with world.hosts(2) as here:
        alone = losses(here, 1)
        for np, *words in world.rows((4,), (4, "--shard"), with_all=((2,), (2, "--shard"))):
            found = losses(here, np, *words, hosts=two if np == 4 else ())
            assert all(abs(a - b) < 1e-3 for a, b in zip(alone, found)), (alone, found)


@world.bound(200)
def test_a_torchrun_script_needs_no_port():
    python()
    with world.hosts(2) as here:
        for backend in ("gloo", "hvd"):
            for np, hosts in ((2, ()), (4, ("-H", "host0:2,host1:2"))):
                outcome = here.hvdrun("-np", np, *hosts, python(), PROGRAM, backend, env=ENV, seconds=60).must(0)
                assert outcome.out.count("no rendezvous listens") == np, outcome
                must_be_clean(here)


@world.bound(120)
def test_a_torchrun_script_with_a_port_of_its_own_has_it():
    python()
    with world.hosts() as here:
        here.hvdrun("-np", 2, python(), PROGRAM, "gloo", "--port", env=ENV, seconds=60).must(0)
        must_be_clean(here)


@world.bound(120)
def test_ranks_that_are_not_hvdruns_are_refused():
    python()
    said = "import hvd.distributed, torch.distributed as d; d.init_process_group('hvd', rank=0, world_size=1, store=d.HashStore())"
    with world.hosts() as here:
        here.hvdrun("-np", 2, python(), "-c", said, env=ENV, seconds=60).must(1, "has the ranks of hvdrun")
        must_be_clean(here)


@world.bound(120)
def test_a_death_ends_what_a_group_waits_for():
    python()
    with world.hosts(2) as here:
        for hosts in (("-H", "localhost:3"), ("-H", "host0:2,host1:1")):
            outcome = here.hvdrun("-np", 3, *hosts, python(), PROGRAM, "hvd", "--die", env=ENV, seconds=60)
            outcome.must(137, "rank 1")
            must_be_clean(here)


assert pathlib.Path(PROGRAM).exists()
