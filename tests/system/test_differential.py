# SPDX-License-Identifier: Apache-2.0
"""Random operations, the same on every rank, against results computed one element at a time."""
import world
from world import PROGRAMS


def must_be_as_planned(here, np, hosts, first, last):
    outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "differential", first, last, seconds=55)
    assert outcome.must(0).out.count("all as planned") == np, outcome


@world.bound(120)
def test_random_operations_on_one_host():
    with world.hosts() as here:
        for np, seed in ((2, 1), (5, 4)):
            must_be_as_planned(here, np, f"host0:{np}", seed, seed + 2)
        here.must_be_clean()


@world.bound(180)
def test_random_operations_on_two_hosts():
    with world.hosts(2) as here:
        must_be_as_planned(here, 2, "host0:1,host1:1", 1, 5)
        must_be_as_planned(here, 3, "host0:2,host1:1", 6, 7)
        must_be_as_planned(here, 5, "host0:2,host1:3", 8, 9)
        here.must_be_clean()
