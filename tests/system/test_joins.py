# SPDX-License-Identifier: Apache-2.0
"""Ranks that join: with something pending, which is done while nobody waits for it; and without a thread that waits."""
import world
from world import PROGRAMS


@world.bound(120)
def test_joining_with_something_pending_on_one_host():
    with world.hosts() as here:
        for np in world.rows(3, 4, with_all=(2,)):
            outcome = here.hvdrun("-np", np, PROGRAMS / "joins", seconds=35).must(0)
            assert outcome.out.count("joins right") == np, outcome
        here.must_be_clean()


@world.bound(120)
def test_joining_with_something_pending_on_two_hosts():
    with world.hosts(2) as here:
        for np, hosts in ((2, "host0:1,host1:1"), (3, "host0:2,host1:1"), (4, "host0:2,host1:2")):
            outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "joins", seconds=35).must(0)
            assert outcome.out.count("joins right") == np, outcome
        here.must_be_clean()


WORLDS = ((2, "host0:2"), (3, "host0:3"), (2, "host0:1,host1:1"), (4, "host0:2,host1:2"))


def asynchronous_in_all_worlds(mode):
    with world.hosts(2, slots=4) as here:
        for np, hosts in WORLDS:
            yield np, here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "joins_async", mode, seconds=35)
        here.must_be_clean()


@world.bound(120)
def test_the_rest_works_on_while_no_thread_of_those_who_have_joined_is_inside():
    for _, outcome in asynchronous_in_all_worlds("together"):
        outcome.must(0)


@world.bound(120)
def test_a_rank_that_has_joined_can_ask_for_nothing_until_its_join_is_done():
    for _, outcome in asynchronous_in_all_worlds("refused"):
        outcome.must(0)


@world.bound(120)
def test_an_asynchronous_join_is_one_in_all_process_sets():
    for _, outcome in asynchronous_in_all_worlds("sets"):
        outcome.must(0)


@world.bound(120)
def test_a_shutdown_ends_a_join_that_is_under_way():
    for np, outcome in asynchronous_in_all_worlds("shutdown"):
        assert outcome.out.count("rank 0 has called shutdown before its join has returned") >= np - 1, outcome


@world.bound(120)
def test_a_join_is_told_of_a_death():
    for np, outcome in asynchronous_in_all_worlds("died"):
        assert outcome.code == 137, outcome
        assert outcome.out.count("told: ") == np - 1 and outcome.out.count("signal 9") >= np - 1, outcome
