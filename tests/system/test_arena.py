# SPDX-License-Identifier: Apache-2.0
"""Tensors in memory that all ranks of a host see: right everywhere, and gone with the job."""
import os
import re

import world
from world import PROGRAMS

ARENA = PROGRAMS / "arena"


def arenas():
    """The processes, of any job, that have an arena open or mapped."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
                if any("hvd-arena" in line for line in maps):
                    found.add(int(pid))
        except OSError:
            pass
    return found


@world.bound(120)
def test_arena_buffers_on_one_host():
    with world.hosts() as here:
        for np in (1, 2, 3):
            outcome = here.hvdrun("-np", np, ARENA, "check", seconds=60).must(0)
            assert outcome.out.count("arena right") == np, outcome
            here.must_be_clean()


@world.bound(120)
def test_arena_buffers_over_two_hosts():
    with world.hosts(2, slots=2) as here:
        outcome = here.hvdrun("-np", 4, "--hostfile", here.hostfile, ARENA, "check", seconds=100).must(0)
        assert outcome.out.count("arena right") == 4, outcome
        here.must_be_clean()


def test_a_rank_without_room_for_the_others_arenas():
    """Where a rank may use little address space, it and its peers go on without theirs in place."""
    with world.hosts() as here:
        limited = "[ $HVD_RANK = 0 ] && ulimit -v 4000000; exec \"$0\" check"
        outcome = here.hvdrun("-np", 3, "sh", "-c", limited, ARENA, seconds=50).must(0)
        assert outcome.out.count("arena right") == 3, outcome
        here.must_be_clean()


def test_a_killed_rank_leaves_no_arena():
    with world.hosts() as here:
        for victim in (0, 2):
            job = here.start_hvdrun("-np", 3, ARENA, "loop").wait_for("joined", 3)
            ranks = world.roles(here.hosts[0])["arena"]
            assert len(ranks) == 3 and {rank.pid for rank in ranks} <= arenas(), ranks
            ranks[victim].kill()
            job.wait(10).must(137, "signal 9")
            here.must_be_clean(within=2)
            assert not {rank.pid for rank in ranks} & arenas()


@world.bound(120)
def test_address_space_grows_with_the_tensors():
    """It is not reserved: batch systems count it."""
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, ARENA, "grow", seconds=100).must(0)
        for what, least, most in (("small", 1, 500), ("large", 2 * 1024, 3 * 1024)):
            taken = [int(mb) for mb in re.findall(rf"rank \d: {what}: (\d+) MB", outcome.out)]
            assert len(taken) == 2 and least <= min(taken) and max(taken) <= most, outcome
        here.must_be_clean()


def test_a_rank_without_address_space_for_a_tensor_goes_on_with_smaller_ones():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, ARENA, "scarce", seconds=50).must(0)
        assert re.search(r"rank 1: was told: .*hvd_alloc: cannot map memory for 1024 MB: 1024 MB of address space are needed, and \d+ MB of this process's "
                         r"\d+ MB are in use \(ulimit -v \d+\); raise that limit", outcome.out), outcome
        assert outcome.out.count("went on") == 2, outcome
        here.must_be_clean()


def test_a_rank_without_address_space_for_anothers_tensor_ends_the_epoch_for_all():
    """The others count on it. A limit that was there at the start would have been agreed on."""
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, ARENA, "unseen", seconds=50)
        assert outcome.code == 1, outcome
        told = re.findall(r"rank (\d): was told: .*rank 1 cannot map a tensor of 200 MB of rank 0: 200 MB of address space are needed.*ulimit -v",
                          outcome.out)
        assert set(told) == {"0", "1"}, outcome
        here.must_be_clean()
