# SPDX-License-Identifier: Apache-2.0
"""Where results go: allgathers and reduce-scatters in place, and into memory that the caller gives when the rows are known."""
import world
from world import PROGRAMS

WORLDS = ((1, "host0:1"), (2, "host0:2"), (3, "host0:3"), (5, "host0:5"), (2, "host0:1,host1:1"), (3, "host0:2,host1:1"), (4, "host0:2,host1:2"))


def in_all_worlds(program):
    with world.hosts(2, slots=5) as here:
        for np, hosts in WORLDS:
            here.hvdrun("-np", np, "-H", hosts, PROGRAMS / program, seconds=60).must(0)
        here.must_be_clean()


@world.bound(180)
def test_gathers_and_scatters_in_place():
    in_all_worlds("in_place")


@world.bound(180)
def test_results_go_to_memory_that_the_caller_gives():
    in_all_worlds("results")
