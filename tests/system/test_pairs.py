# SPDX-License-Identifier: Apache-2.0
"""Sends and receives between two ranks: of one host through its memory, of two over each transport."""
import world
from world import PROGRAMS

WORLDS = ((2, "host0:2", "tcp"), (5, "host0:5", "tcp"), (4, "host0:2,host1:2", "tcp"), (4, "host0:2,host1:2", "ucx"))


def in_all_worlds(*modes):
    with world.hosts(2, slots=5) as here:
        for np, hosts, transport in WORLDS:
            for mode in modes:
                outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "pairs", mode, env={"HVD_TRANSPORT": transport}, seconds=60)
                assert outcome.out.count(f"{mode} is right") == np, f"{hosts} {transport}: {outcome.must(0)}"
                outcome.must(0)
        here.must_be_clean()


@world.bound(240)
def test_neighbours_both_send_first():
    in_all_worlds("ring")


@world.bound(240)
def test_many_at_once_in_any_order_beside_collectives():
    in_all_worlds("storm")


@world.bound(240)
def test_within_process_sets():
    in_all_worlds("set")


@world.bound(120)
def test_what_does_not_fit_is_said_on_both_sides():
    in_all_worlds("mismatch", "refused")


@world.bound(120)
def test_a_peer_that_joins_or_leaves_is_named():
    in_all_worlds("joined", "left")


@world.bound(120)
def test_their_ends_are_told():
    in_all_worlds("told")


@world.bound(120)
def test_a_death_ends_them_with_its_cause():
    with world.hosts(2, slots=5) as here:
        for np, hosts, transport in WORLDS:
            outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "pairs", "died", env={"HVD_TRANSPORT": transport})
            assert outcome.code == 137 and outcome.out.count("signal 9") >= np - 1, f"{hosts} {transport}: {outcome}"
        here.must_be_clean()


@world.bound(120)
def test_one_that_waits_for_ever_is_a_stall_and_is_named():
    with world.hosts(2, slots=5) as here:
        for np, hosts, transport in WORLDS:
            outcome = here.hvdrun("-np", np, "-H", hosts, "--stall-check-warning-time-seconds", 1, "--stall-check-shutdown-time-seconds", 2,
                                  PROGRAMS / "pairs", "stalled", env={"HVD_TRANSPORT": transport})
            last = np - 1
            outcome.must(124, f"'send from rank {last} to rank 0 with tag 9' (receive float32 [1000]) waits for rank {last}\n")
        here.must_be_clean()
