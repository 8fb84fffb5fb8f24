# SPDX-License-Identifier: Apache-2.0
"""How the ends of asynchronous calls are told: callbacks, queues, waits with a time limit, handles that are given up."""
import world
from world import PROGRAMS

WORLDS = ((2, "host0:2"), (5, "host0:5"), (3, "host0:2,host1:1"))


def in_all_worlds(mode):
    with world.hosts(2, slots=5) as here:
        for np, hosts in WORLDS:
            here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "completion", mode).must(0)
        here.must_be_clean()


@world.bound(120)
def test_each_call_is_told_once_with_its_result_in_memory():
    in_all_worlds("callbacks")


@world.bound(120)
def test_a_queue_is_readable_while_it_has_something():
    in_all_worlds("queue")


@world.bound(120)
def test_a_mismatch_is_told():
    in_all_worlds("mismatch")


@world.bound(120)
def test_everything_is_told_before_a_shutdown_returns():
    in_all_worlds("left")


@world.bound(120)
def test_a_wait_with_a_limit_ends_and_can_be_had_again():
    in_all_worlds("waits")


@world.bound(120)
def test_a_call_goes_on_without_its_handle():
    in_all_worlds("released")


@world.bound(120)
def test_an_asynchronous_barrier_does_not_drain():
    in_all_worlds("barriers")


@world.bound(120)
def test_a_blocking_call_with_a_limit_goes_on_behind_a_handle():
    in_all_worlds("timed")


@world.bound(120)
def test_a_death_is_told_with_its_facts():
    with world.hosts(2, slots=5) as here:
        for np, hosts in WORLDS:
            outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "completion", "died")
            assert outcome.code == 137, outcome
            assert outcome.out.count("signal 9") >= np - 1, outcome
        here.must_be_clean()
