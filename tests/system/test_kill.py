# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each kind of process, many times: nothing is left, the exit code and the culprit are right."""
import contextlib
import itertools
import json
import os
import re
import signal
import statistics
import time

import world
from world import PROGRAMS, ROUNDS

VICTIM = PROGRAMS / "victim"
LOST = 125


def start(here, *options, command=(VICTIM, "loop"), ranks=2, **how):
    return here.start_hvdrun("-np", ranks, *options, *command, **how).wait_for("joined", ranks)


def kill_many(role, check, ranks=2, hosts=1, on=0, options=(), command=(VICTIM, "loop"), rounds=ROUNDS, **how):
    """Kills the last process of a role on host `on` in so many jobs; check(outcome) judges each."""
    with world.hosts(hosts, slots=ranks // hosts) as here:
        for _ in range(rounds):
            job = start(here, "--hostfile", here.hostfile, *options, command=command, ranks=ranks, **how)
            found = world.roles(here.hosts[on])
            assert role in found, f"no {role} among {found}"
            found[role][-1].kill()
            outcome = job.wait(10)
            here.must_be_clean(within=2)
            check(outcome)


def lost(host):
    def check(outcome):
        assert outcome.code == LOST and host in outcome.err, outcome
    return check


def killed(outcome):
    outcome.must(137, "rank ", "signal 9")


def any_failure(outcome):
    assert outcome.code not in (0, 2), outcome


@world.bound(300)
def test_rank():
    kill_many("victim", killed)


@world.bound(300)
def test_hvdd():
    kill_many("hvdd", lost("host0"))


@world.bound(300)
def test_shim():
    kill_many("shim", lost("host0"))


@world.bound(300)
def test_console():
    kill_many("console", lambda outcome: outcome.must(137))


@world.bound(300)
def test_driver():
    kill_many("driver", lambda outcome: outcome.must(LOST))


@world.bound(300)
def test_spawner():
    kill_many("spawner", any_failure)


@world.bound(300)
def test_ssh():
    kill_many("ssh", lost("host1"), ranks=4, hosts=2)


@world.bound(300)
def test_hvdd_of_another_host():
    kill_many("hvdd", lost("host1"), ranks=4, hosts=2, on=1)


@world.bound(300)
def test_rank_of_another_host():
    kill_many("victim", killed, ranks=4, hosts=2, on=1)


def told(text, outcome):
    """By rank: when it said that, in ns of the monotonic clock, and what else it said."""
    found = re.findall(rf"{text}(.*) at (\d+) rank (\d+)$", outcome.out, re.MULTILINE)
    return {int(rank): (int(ns), words) for words, ns, rank in found}


@world.bound(300)
def test_survivors_hear_of_a_leader_whose_child_holds_its_stdout():
    # Rank 2 leads its host, so no other rank there can tell the other host; and its output ends long after it.
    took = []
    with world.hosts(2, slots=2) as here:
        for _ in range(min(ROUNDS, 5)):
            job = start(here, "--hostfile", here.hostfile, command=(VICTIM, "hold", 2), ranks=4)
            victims = world.roles(here.hosts[1])["victim"]
            holder = {process.parent for process in victims} & {process.pid for process in victims}
            assert len(holder) == 1, victims
            killed_at = time.monotonic_ns()
            os.kill(holder.pop(), signal.SIGKILL)
            outcome = job.wait(20).must(137, "rank 2 on host1 was killed by signal 9")
            heard, asked = told("told: ", outcome), told("asked to end", outcome)
            assert set(heard) == set(asked) == {0, 1, 3}, outcome
            for rank, (at, cause) in heard.items():
                assert "rank 2 on host1 was killed by signal 9 (Killed)" in cause, outcome
                # The job is stopped when the output has ended, or was waited for long enough; a survivor's call does not wait for that.
                assert at - killed_at < asked[rank][0] - at, outcome
            took += [(at - killed_at) / 1e6 for at, _ in heard.values()]
            here.must_be_clean(within=2)
    print(json.dumps({"survivors": len(took), "median_ms": statistics.median(took), "most_ms": max(took)}))


def test_rank_and_hvdd_of_another_host_inside_an_alltoall():
    trading = dict(ranks=4, hosts=2, on=1, command=(VICTIM, "alltoall"), rounds=min(ROUNDS, 4))
    kill_many("victim", killed, **trading)
    kill_many("hvdd", lost("host1"), **trading)


@world.bound(300)
def test_worker_behind_a_shell_that_goes_on():
    def check(outcome):
        assert outcome.code != 0 and "rank " in outcome.err, outcome
    kill_many("victim", check, command=("sh", "-c", f"{VICTIM} loop; true"))


@world.bound(300)
def test_term_proof_workers_when_hvdrun_dies():
    with world.hosts() as here:
        for _ in range(3):
            job = start(here, command=(VICTIM, "term-proof"))
            world.roles(here.hosts[0])["console"][0].kill()
            job.wait(10)
            here.must_be_clean(within=6)


def kill_at_level(level):
    """A worker whose helpers leave its group, its session and its parent; each kind of process killed under it."""
    helpers = "(setsid sh -c 'sleep 1000 & setsid sleep 1000' &) ; sleep 1000 & "
    with world.hosts() as here:
        tried = here.hvdrun("-np", 1, "--containment", level, "true")
        if tried.code != 0:
            raise world.Skip(f"no containment by {level} on this machine: {tried.err.strip().splitlines()[0]}")
        for role in ("victim", "hvdd", "shim", "console"):
            job = start(here, "--containment", level, command=("sh", "-c", helpers + f"{VICTIM} loop"))
            world.roles(here.hosts[0])[role][-1].kill()
            any_failure(job.wait(10))
            here.must_be_clean(within=2)


def test_contained_by_namespace():
    kill_at_level("namespace")


@world.alone  # a host sees the groups of all
def test_contained_by_cgroup():
    kill_at_level("cgroup")


def test_contained_by_subreaper():
    kill_at_level("subreaper")


@world.bound(300)
def test_as_an_ordinary_user():
    with world.hosts() as here:
        if here.run("test", "-x", world.HVDRUN, user=64198).code != 0:
            raise world.Skip(f"an ordinary user cannot reach {world.HVDRUN}")
        for role in ("victim", "hvdd", "shim", "console"):
            job = start(here, user=64198)
            world.roles(here.hosts[0])[role][-1].kill()
            any_failure(job.wait(10))
            here.must_be_clean(within=2)


def test_hvdd_that_is_told_to_end_is_a_lost_host():
    with world.hosts(2, slots=1) as here:
        for number in (signal.SIGTERM, signal.SIGHUP):
            job = start(here, "--hostfile", here.hostfile)
            world.roles(here.hosts[1])["hvdd"][0].kill(number)
            job.wait(10).must(LOST, f"lost host host1: hvdd got signal {number}")
            here.must_be_clean()


def test_death_of_hvdd_is_seen_at_once():
    with world.hosts(2, slots=1) as here:
        lease = 60
        for _ in range(5):
            job = start(here, "--hostfile", here.hostfile, "--lease", lease)
            daemon = world.roles(here.hosts[1])["hvdd"][0]
            began = time.monotonic()
            daemon.kill()
            job.wait(lease).must(LOST)
            # 50 ms to see it, 200 ms of settling, and the stop of the workers.
            assert time.monotonic() - began < lease, "the death was learnt from the lease"


# ---- who is stopped (SIGSTOP) can neither hear nor end anything ----

def stopped_then_ended(here, stopped, number, on, options=(), user=None):
    """Stops processes of a job by their roles (those of a host's hvdd on host `on`), then sends hvdrun a signal."""
    job = start(here, "--hostfile", here.hostfile, "--lease", 3, "--grace", 1, *options, command=("sh", "-c", f"sleep 1000 & {VICTIM} loop"),
                ranks=len(here.hosts), user=user)
    near, far = world.roles(here.hosts[0]), world.roles(here.hosts[on])
    for role in stopped:
        (near if role in ("driver", "spawner") else far)[role][0].kill(signal.SIGSTOP)
    near["console"][0].kill(number)
    outcome = job.wait(20)
    try:
        here.must_be_clean(within=10)  # those that are stopped on another host live on for the length of the lease
    except AssertionError as left:
        raise AssertionError(f"{stopped} stopped, hvdrun got {number!r}: {left}") from None
    return outcome


PAIRS = [("shim",), ("hvdd",), ("shim", "hvdd"), ("spawner",), ("driver",), ("driver", "spawner"), ("shim", "spawner"), ("shim", "driver"),
         ("hvdd", "spawner"), ("hvdd", "driver"), ("shim", "hvdd", "driver", "spawner")]


@world.bound(600)
def test_nothing_is_left_when_hvdrun_gets_term_whoever_is_stopped():
    with world.hosts(2, slots=1) as here:
        for stopped in PAIRS:
            outcome = stopped_then_ended(here, stopped, signal.SIGTERM, on=1)
            assert outcome.code in (143, 125), f"{stopped}: {outcome}"
            if "driver" not in stopped:
                outcome.must(143, "stopped by SIGTERM")


@world.bound(600)
def test_nothing_is_left_when_hvdrun_is_killed_whoever_is_stopped():
    with world.hosts(2, slots=1) as here:
        for stopped in PAIRS:
            stopped_then_ended(here, stopped, signal.SIGKILL, on=1)


@world.alone  # a host sees the groups of all
@world.bound(600)
def test_a_stopped_shim_keeps_nothing_alive_at_any_level():
    with world.hosts() as here:
        for level, user in itertools.product(("namespace", "cgroup", "subreaper"), (None, 64198)):
            works = here.hvdrun("-np", 1, "--containment", level, "true", user=user).code == 0
            if works:
                for stopped in (("shim",), ("shim", "hvdd")):
                    for number in (signal.SIGTERM, signal.SIGKILL):
                        stopped_then_ended(here, stopped, number, 0, ("--containment", level), user)


@world.bound(120)
def test_term_at_any_of_hvdruns_processes_is_a_stop():
    """Managers signal each process of a job: one of them alone, or all at once."""
    with world.hosts(2, slots=1) as here:
        for roles in (("driver",), ("spawner",), ("console", "driver", "spawner"), ("console", "driver", "spawner", "hvdd", "victim")):
            job = start(here, "--hostfile", here.hostfile)
            found = world.roles(here.hosts[0])
            for process in itertools.chain.from_iterable(found[role] for role in roles):
                with contextlib.suppress(ProcessLookupError):  # the one before may have stopped it already
                    process.kill(signal.SIGTERM)
            job.wait(20).must(143, "stopped by SIGTERM", "exit code 143")
            here.must_be_clean()
