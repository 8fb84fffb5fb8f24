# SPDX-License-Identifier: Apache-2.0
"""As many tensors pending at once as a program likes: the ranks' orders, the memory for it, and the limit."""
import re

import world
from world import PROGRAMS

PENDING = PROGRAMS / "pending"


def memory_of(outcome, ranks):
    """The most that each rank's process had, in MB; all results were right."""
    told = re.findall(r"rank (\d+): all right with (\d+) MB", outcome.must(0).out)
    assert {rank for rank, _ in told} == {str(rank) for rank in range(ranks)}, outcome
    return max(int(megabytes) for _, megabytes in told)


@world.bound(300)
def test_100000_tensors_pending_in_opposite_orders_come_to_their_end():
    with world.hosts(2, slots=2) as here:
        two_hosts = ("-np", 2, "-H", "host0:1,host1:1")
        for place in (("-np", 2), two_hosts):
            few = memory_of(here.hvdrun(*place, PENDING, "all", 1000, seconds=40), 2)
            many = memory_of(here.hvdrun(*place, PENDING, "all", 100000, seconds=100), 2)
            # The shared memory counts in both; each has half a GB for itself at most.
            assert many < few + 700, f"{place}: {few} MB for 1000 tensors, {many} MB for 100000"
        # First-time messages of more than 16 MB, in both directions.
        memory_of(here.hvdrun(*two_hosts, PENDING, "long", 100000, seconds=100), 2)
        here.must_be_clean()


def test_the_timeline_needs_little_memory_for_few_of_them():
    with world.hosts() as here:
        without = memory_of(here.hvdrun("-np", 2, PENDING, "all", 1000), 2)
        with_it = memory_of(here.hvdrun("-np", 2, "--timeline-filename", here.place("timeline.json"), PENDING, "all", 1000), 2)
        assert with_it < without + 50, f"{with_it} MB with the timeline, {without} MB without"
        here.run("rm", here.place("timeline.json")).must(0)
        here.must_be_clean()


@world.bound(200)
def test_process_sets_have_as_many():
    with world.hosts(2, slots=2) as here:
        for np, ranks, place in ((3, 2, "host0:3"), (3, 2, "host0:1,host1:2")):
            memory_of(here.hvdrun("-np", np, "-H", place, PENDING, "all", 40000, ranks, seconds=100), ranks)
        here.must_be_clean()


def told_why(here, limit, *words):
    """The ranks that have been told that the limit is passed, and what they were told."""
    outcome = here.hvdrun("-x", f"HVD_MAX_PENDING={limit}", *words, seconds=50)
    assert outcome.code == 1, outcome
    told = re.findall(r"rank (\d+): ended: (.*)", outcome.out)
    for _, why in told:
        assert re.search(rf"rank \d+ has no room for 'tensor \d+'.*: more than {limit} tensors would be pending at once on its host "
                         r"\(HVD_MAX_PENDING\); wait for some of them, or set it higher, the same on all ranks", why), outcome
    return {rank for rank, _ in told}


@world.bound(120)
def test_more_than_may_be_pending_ends_the_job_for_all_and_says_so():
    with world.hosts(2, slots=2) as here:
        for place in (("-np", 2), ("-np", 2, "-H", "host0:1,host1:1"), ("-np", 4, "-H", "host0:2,host1:2")):
            assert told_why(here, 3000, *place, PENDING, "over", 20000) == {str(rank) for rank in range(place[1])}
        assert told_why(here, 3000, "-np", 3, "-H", "host0:3", PENDING, "over", 20000, 2) == {"0", "1"}
        # All of it at once is no more than that.
        memory_of(here.hvdrun("-np", 2, "--max-pending", 20000, PENDING, "all", 20000), 2)
        here.must_be_clean()
