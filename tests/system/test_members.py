# SPDX-License-Identifier: Apache-2.0
"""Process sets that only their members make."""
import world
from world import PROGRAMS

WORLDS = ((2, "host0:2", "tcp"), (5, "host0:5", "tcp"), (4, "host0:2,host1:2", "tcp"), (4, "host0:2,host1:2", "ucx"))


def in_all_worlds(*modes):
    with world.hosts(2, slots=5) as here:
        for np, hosts, transport in WORLDS:
            for mode in modes:
                outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "members", mode, env={"HVD_TRANSPORT": transport}, seconds=60)
                assert outcome.out.count(f"{mode} is right") == np, f"{hosts} {transport}: {outcome.must(0)}"
                outcome.must(0)
        here.must_be_clean()


@world.bound(240)
def test_neighbours_on_two_threads():
    in_all_worlds("pairs")


@world.bound(240)
def test_many_of_the_same_ranks():
    in_all_worlds("keys")


@world.bound(240)
def test_made_and_removed_beside_sets_of_all_ranks():
    in_all_worlds("again")


@world.bound(240)
def test_what_cannot_be():
    in_all_worlds("refused", "joined")
