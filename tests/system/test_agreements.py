# SPDX-License-Identifier: Apache-2.0
"""Ranks ask in another order, for other types, or with nothing: what comes of barriers, groups, empty tensors."""
import world
from world import PROGRAMS

WORLDS = ((2, "host0:2", "tcp"), (3, "host0:3", "tcp"), (4, "host0:2,host1:2", "tcp"), (2, "host0:1,host1:1", "ucx"))


def in_all_worlds(program, *modes):
    with world.hosts(2, slots=3) as here:
        for np, hosts, transport in WORLDS:
            for mode in modes:
                outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / program, *mode, env={"HVD_TRANSPORT": transport}, seconds=60)
                assert outcome.out.count(" right\n") == np, f"{hosts} {transport} {mode}: {outcome.must(0)}"
                outcome.must(0)
        here.must_be_clean()


@world.bound(240)
def test_a_barrier_is_announced_before_what_came_earlier_is_waited_for():
    in_all_worlds("barriers", ["gather"], ["pair"], ["threads"])


@world.bound(120)
def test_a_barrier_waits_for_what_its_rank_has_submitted_before():
    in_all_worlds("barriers", ["drains"])


@world.bound(240)
def test_one_mismatch_ends_a_group_whatever_types_each_rank_has_in_it():
    in_all_worlds("groups", ["differ"])


@world.bound(120)
def test_a_group_of_many_types_goes_on_beside_a_rank_that_has_joined():
    in_all_worlds("groups", ["joined"])


@world.bound(120)
def test_tensors_without_elements_need_no_address():
    in_all_worlds("empty", [])


@world.bound(120)
def test_a_stall_compares_whole_names_and_names_all_types_of_a_group():
    with world.hosts(2, slots=2) as here:
        for hosts in ("host0:2", "host0:1,host1:1"):
            outcome = here.hvdrun("-np", 2, "-H", hosts, "--stall-check-warning-time-seconds", 1, "--stall-check-shutdown-time-seconds", 4,
                                  PROGRAMS / "groups", "stalled")
            outcome.must(124, "nnn.one' (allreduce float32 [8] sum)", "nnn.two' (allreduce float32 [8] sum) waits for rank 0\n",
                         "'of two types' (grouped allreduce int32 1 tensors with elements [8] and tensors of 1 more type sum, grouped allreduce float32 1")
        here.must_be_clean()
