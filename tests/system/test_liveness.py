# SPDX-License-Identifier: Apache-2.0
"""Ranks that stand still inside a collective, data that does not come through, inits that fail: found, named, ended."""
import contextlib
import pathlib
import re
import signal

import world
from world import PROGRAMS

ENDLESS = PROGRAMS / "endless"
KINDS = ("tiny", "staged", "arena", "fused", "small", "gather", "set", "sends")
LIMITS = ("--stall-check-warning-time-seconds", "1", "--stall-check-shutdown-time-seconds", "3")


def worker_of(host, rank):
    """The process of a global rank on a host."""
    for process in world.roles(host)["endless"]:
        environment = pathlib.Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        if f"HVD_RANK={rank}".encode() in environment:
            return process
    raise AssertionError(f"no rank {rank} on host {host.index}")


@world.bound(240)
def test_a_stopped_rank_ends_the_job_as_a_stall_and_is_named():
    with world.hosts(slots=3) as here:
        for kind in KINDS:
            job = here.start_hvdrun("-np", 3, *LIMITS, ENDLESS, kind).wait_for("joined", 2, seconds=40)
            worker_of(here.hosts[0], 1).kill(signal.SIGSTOP)
            outcome = job.wait(40)
            outcome.must(124, "stalled for", "rank 1 on localhost: stopped by a signal (SIGSTOP?); ")
            # One collective waits for it, or, when it was stopped between two submissions, several do.
            assert re.search(r"waits? for rank 1\n", outcome.err), f"{kind}: {outcome}"
            here.must_be_clean()


@world.bound(240)
def test_a_stopped_rank_of_another_host_ends_the_job_as_a_stall_and_is_named():
    with world.hosts(2, slots=2) as here:
        for kind in ("staged", "fused", "small", "sends"):
            job = here.start_hvdrun("-np", 4, "--hostfile", here.hostfile, *LIMITS, ENDLESS, kind).wait_for("joined", 4, seconds=40)
            worker_of(here.hosts[1], 2).kill(signal.SIGSTOP)
            outcome = job.wait(40)
            outcome.must(124, "stalled for", "rank 2 on host1: stopped by a signal (SIGSTOP?); ")
            assert re.search(r"waits? for rank 2\n", outcome.err), f"{kind}: {outcome}"
            here.must_be_clean()


@world.bound(120)
def test_a_stopped_rank_for_whose_end_the_others_wait_is_named():
    for hosts in (1, 2):
        with world.hosts(hosts, slots=2) as here:
            for end in ("join", "shutdown"):
                outcome = here.start_hvdrun("-np", 2 * hosts, "--hostfile", here.hostfile, *LIMITS, ENDLESS, end).wait(40)
                outcome.must(124, "others wait in join or shutdown for rank 1\n", "rank 1 on host0: stopped by a signal (SIGSTOP?); ")
                here.must_be_clean()


def test_a_stopped_rank_is_only_warned_of_when_no_end_is_asked_for_and_may_go_on():
    with world.hosts(slots=2) as here:
        job = here.start_hvdrun("-np", 2, "--stall-check-warning-time-seconds", "1", ENDLESS, "staged").wait_for("joined", 2)
        victim = worker_of(here.hosts[0], 1)
        victim.kill(signal.SIGSTOP)
        world.wait_until(lambda: "stopped by a signal" in job.err(), 20, f"the notice in {job.err()}")
        victim.kill(signal.SIGCONT)
        used = world.state_and_time(victim)[1]
        world.wait_until(lambda: world.state_and_time(victim)[1] > used + 5, 20, "the rank to work again")
        assert job.process.poll() is None, job.wait()
        job.process.send_signal(signal.SIGTERM)
        job.wait()
        here.must_be_clean()


def test_a_rank_in_its_own_code_is_said_to_be_there():
    with world.hosts(slots=2) as here:
        outcome = here.hvdrun("-np", 2, *LIMITS, ENDLESS, "alone").must(124, "'alone'", "waits for rank 1")
        assert "rank 1 on localhost: outside any collective, last allreduce 'together'" in outcome.err, outcome


@world.bound(240)
def test_a_rank_that_is_killed_inside_a_collective_was_in_it():
    """Rank 0 is stopped; rank 1, once it waits for it, is inside a call for sure, and is killed there."""
    with world.hosts(slots=2) as here:
        for kind in ("tiny", "staged", "arena", "fused", "small", "gather"):
            for _ in range(2):
                job = here.start_hvdrun("-np", 2, ENDLESS, kind).wait_for("joined", 2, seconds=40)
                stopped, victim = (worker_of(here.hosts[0], rank) for rank in (0, 1))
                stopped.kill(signal.SIGSTOP)
                world.await_still(victim)
                victim.kill()
                outcome = job.wait(20).must(137, "rank 1 on localhost was killed by signal 9")
                doing = [line for line in outcome.err.splitlines() if line.startswith("  it was pid ")]
                assert len(doing) == 1 and "'endless" in doing[0], f"{kind}: {outcome}"
                assert " there, in " in doing[0] or " there, waiting in " in doing[0], f"{kind}: {outcome}"


@contextlib.contextmanager
def cut(here, one, other):
    """No packet passes between two hosts."""
    def route(verb):
        for host, peer in ((one, other), (other, one)):
            here.run("ip", "route", verb, "blackhole", f"10.77.0.{10 + peer}", host=host).must(0)
    route("add")
    try:
        yield
    finally:
        with contextlib.suppress(AssertionError):
            route("del")


@world.bound(300)
def test_a_cut_between_two_hosts_is_named():
    """hvdrun's own host still reaches both."""
    with world.hosts(3, slots=1) as here:
        for kind in ("staged", "fused", "gather"):  # what goes around a ring
            job = here.start_hvdrun("-np", 3, "--hostfile", here.hostfile, *LIMITS, ENDLESS, kind).wait_for("joined", 3, seconds=40)
            with cut(here, 1, 2):
                outcome = job.wait(40)
            outcome.must(124, "stalled for", "no data passes between host1 and host2 any more, though both hosts live")
            assert "waits for rank" not in outcome.err, f"{kind}: {outcome}"


def test_a_failed_init_is_named_whether_its_rank_ends_or_goes_on():
    with world.hosts(2, slots=1) as here:
        before = ("HVD_SEGMENT_BYTES", "many")  # is refused before the rank meets the others
        within = ("HVD_NET_DEVICES", "nosuch0")
        for setting in (before, within):
            outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, ENDLESS, "failing", *setting, 3)
            outcome.must(3, "rank 1 on host1 exited with code 3", "its hvd_init failed: ", setting[0])
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, "--start-timeout", 4, ENDLESS, "failing", *before)
        outcome.must(125, "hvd_init of rank 1 on host1 failed: ", before[0])
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, ENDLESS, "failing", *within)
        assert outcome.code != 0 and "signal 15" not in outcome.err, outcome
        outcome.must(outcome.code, "rank 1 on host1", "hvd_init", within[1])
        here.must_be_clean()


def test_survivors_hear_the_signal_that_killed_a_rank():
    with world.hosts(slots=3) as here:
        for kind in ("tiny", "staged", "fused"):
            job = here.start_hvdrun("-np", 3, ENDLESS, kind, "stays").wait_for("joined", 3, seconds=40)
            worker_of(here.hosts[0], 1).kill()
            outcome = job.wait(20).must(137)
            heard = [line for line in outcome.err.splitlines() if "endless: rank" in line]
            assert len(heard) == 2 and all("rank 1 on localhost was killed by signal 9" in line for line in heard), f"{kind}: {outcome}"
