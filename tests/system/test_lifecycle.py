# SPDX-License-Identifier: Apache-2.0
"""Calls that begin, change or end a rank's part in the job, beside one another: each ends, and the next job begins anew."""
import world
from world import PROGRAMS


def all_pairs_end(here, how, np, rounds, *words):
    """The program names a pair that does not end within its bound, and exits with 3."""
    outcome = here.hvdrun("-np", np, *words, PROGRAMS / "lifecycle", how, rounds, seconds=150).must(0)
    assert outcome.out.count("pairs ended") == np, outcome


def all_pairs_end_here(here, how, np, rounds, *words):
    timeline = here.place("timeline.json")
    all_pairs_end(here, how, np, rounds, "-x", f"LIFECYCLE_TIMELINE={timeline}", *words)
    here.run("rm", timeline).must(0)
    here.must_be_clean()


@world.bound(600)
def test_all_pairs_on_two_threads_of_each_rank_end():
    with world.hosts() as here:
        for np in (2, 3):
            all_pairs_end_here(here, "threads", np, 6)


@world.bound(600)
def test_all_pairs_on_different_ranks_end():
    with world.hosts() as here:
        for np in (2, 3):
            all_pairs_end_here(here, "ranks", np, 6)


@world.bound(600)
def test_all_pairs_on_two_hosts_end():
    with world.hosts(2) as here:
        for how in ("threads", "ranks"):
            all_pairs_end_here(here, how, 3, 1, "-H", "host0:2,host1:1")


@world.bound(120)
def test_a_set_is_added_beside_a_shutdown():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, PROGRAMS / "lifecycle", "threads", 300, "add", "shutdown", seconds=100).must(0)
        assert outcome.out.count("pairs ended") == 3, outcome
        here.must_be_clean()
