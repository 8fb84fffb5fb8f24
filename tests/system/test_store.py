# SPDX-License-Identifier: Apache-2.0
"""The job's key-value store: one for all hosts, without a port, before hvd_init and after hvd_shutdown."""
import os
import subprocess

import world
from world import PROGRAMS

STORE = PROGRAMS / "store"
ONE_HOST = ((1, "host0:1"), (2, "host0:2"), (4, "host0:4"))
TWO_HOSTS = ((4, "host0:2,host1:2"), (3, "host0:1,host1:2"))


def must_be_right(here, np, hosts, mode, *options):
    outcome = here.hvdrun("-np", np, "-H", hosts, *options, STORE, mode, seconds=60).must(0)
    assert outcome.out.count("store right") == np, outcome


def in_all_worlds(mode):
    with world.hosts(2, slots=4) as here:
        for np, hosts in ONE_HOST + TWO_HOSTS:
            must_be_right(here, np, hosts, mode)
        here.must_be_clean()


@world.bound(200)
def test_all_ranks_see_one_store():
    in_all_worlds("everything")


@world.bound(120)
def test_the_store_works_before_init_beside_collectives_and_after_shutdown():
    in_all_worlds("around")


@world.bound(120)
def test_limits_are_named():
    with world.hosts(2) as here:
        for np, hosts in (2, "host0:2"), (3, "host0:2,host1:1"):
            must_be_right(here, np, hosts, "limits")
        must_be_right(here, 1, "host0:1", "full")
        must_be_right(here, 2, "host0:1,host1:1", "full")
        must_be_right(here, 1, "host0:1", "many")
        must_be_right(here, 1, "host1:1", "many")
        here.must_be_clean()


def test_a_child_of_a_fork_is_refused():
    with world.hosts() as here:
        must_be_right(here, 2, "host0:2", "fork")
        here.must_be_clean()


def test_a_program_that_a_rank_starts_sees_the_same_store():
    """Its link's door is closed on the way."""
    code = f"import subprocess, sys; sys.exit(subprocess.run([{str(STORE)!r}, sys.argv[1]]).returncode)"
    with world.hosts(2) as here:
        for mode in "everything", "around":
            outcome = here.hvdrun("-np", 3, "-H", "host0:2,host1:1", "/usr/bin/python3", "-c", code, mode).must(0)
            assert outcome.out.count("store right") == 3, outcome
        here.must_be_clean()


def test_a_wait_outlives_signals_whose_handlers_run():
    with world.hosts() as here:
        must_be_right(here, 2, "host0:2", "signal")


@world.bound(120)
def test_who_waits_is_told_of_a_death():
    with world.hosts(2) as here:
        for mode in "victim", "victim-joined":
            for np, hosts in (2, "host0:2"), (4, "host0:2,host1:2"):
                outcome = here.hvdrun("-np", np, "-H", hosts, STORE, mode)
                assert outcome.code == 137, outcome
                for rank in range(np - 1):
                    assert f"rank {rank} was told: " in outcome.err, outcome
        here.must_be_clean()


@world.bound(120)
def test_a_large_value_on_a_slow_link_holds_back_no_beat():
    """Each way 4 MiB take 3.4 s there, more than the lease."""
    with world.hosts(2, rate="10mbit") as here:
        must_be_right(here, 2, "host0:1,host1:1", "large", "--lease", 2)


def test_without_hvdrun_a_process_has_a_store_of_its_own():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HVD_")}
    environment.update(RANK="0", WORLD_SIZE="1")
    outcome = subprocess.run([STORE, "alone"], capture_output=True, text=True, env=environment, timeout=world.patient(30))
    assert outcome.returncode == 0 and "store right" in outcome.stdout, outcome


def test_half_a_launchers_environment_is_no_store_of_ones_own():
    environment = {**os.environ, "HVD_RANK": "0"}
    outcome = subprocess.run([STORE, "alone"], capture_output=True, text=True, env=environment, timeout=world.patient(30))
    assert outcome.returncode == 1 and "HVD_ERR_LAUNCH" in outcome.stderr and "HVD_LINK is not set" in outcome.stderr, outcome
