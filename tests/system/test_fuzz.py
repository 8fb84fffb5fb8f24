# SPDX-License-Identifier: Apache-2.0
"""Rounds of random calls, some of which ranks ask for otherwise, with joins, barriers, threads and sets: each ends as the plan says (programs/fuzz)."""
import world
from world import PROGRAMS

WORLDS = ((2, "host0:2"), (3, "host0:3"), (4, "host0:4"), (6, "host0:6"), (4, "host0:2,host1:2"))
SEEDS = 60 if world.ALL else 4  # of each world


@world.bound(3000 if world.ALL else 300)
def test_each_call_ends_as_planned():
    with world.hosts(2, slots=6) as here:
        for index, (np, hosts) in enumerate(WORLDS):
            first = 1 + index * SEEDS
            outcome = here.hvdrun("-np", np, "-H", hosts, "-x", "HVD_TRANSPORT=tcp", "--stall-check-shutdown-time-seconds", 60, PROGRAMS / "fuzz",
                                  first, first + SEEDS - 1, seconds=600 if world.ALL else 60)
            assert outcome.must(0).out.count("no fault") == np, outcome
        here.must_be_clean()
