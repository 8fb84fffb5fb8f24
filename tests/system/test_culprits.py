# SPDX-License-Identifier: Apache-2.0
"""Culprits that are none of those that fail first or loudest: wrappers, ranks that never came, a paused hvdrun, logins."""
import contextlib
import os
import re
import signal
import time

import world
from world import PROGRAMS

VICTIM = PROGRAMS / "victim"


def test_a_worker_that_dies_behind_a_wrapper_is_named():
    with world.hosts() as here:
        for number, wrapper in ((signal.SIGKILL, "bash"), (signal.SIGSEGV, "sh"), (signal.SIGKILL, "bash")):
            # Not the last command: a shell would become the sleep itself, and hvdrun would then name that.
            job = here.start_hvdrun("-np", 2, wrapper, "-c", f"{VICTIM} loop; sleep 30; exit 9").wait_for("joined", 2)
            world.roles(here.hosts[0])["victim"][-1].kill(number)
            outcome = job.wait(10)
            # Whether hvdd still learns how it ended depends on who is faster, hvdd or the wrapper that reaps it.
            said = r"hvdrun: rank \d on localhost: its worker \(pid \d+\) (died|was killed by signal (\d+) \(.*\)); " \
                   rf"its wrapper {wrapper} \(pid \d+\) lived on"
            found = re.search(said, outcome.err)
            assert found, outcome
            if found[1] == "died":
                outcome.must(1)
            else:
                outcome.must(128 + number)
                assert int(found[2]) == number, outcome
            here.must_be_clean()


def test_a_wrapper_that_ends_with_its_worker_speaks_for_itself():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, "sh", "-c", f"{VICTIM} loop; exit 3").wait_for("joined", 2)
        world.roles(here.hosts[0])["victim"][-1].kill()
        job.wait(10).must(3, "exited with code 3")
        here.must_be_clean()


def test_a_rank_that_ends_well_before_init_is_named_by_those_who_wait():
    with world.hosts(2, slots=1) as here:
        for wait in (f"exec {VICTIM} loop", f"sleep 0.7; exec {VICTIM} loop", f"sleep 0.7; {VICTIM} loop; exit 0"):
            for hosts in (("-H", "host0:2"), ("--hostfile", here.hostfile)):
                job = here.start_hvdrun("-np", 2, *hosts, "sh", "-c", f'[ "$HVD_RANK" = 1 ] && exit 0; {wait}')
                job.wait(20).must(1, "hvdrun: rank 1 on host", "exited (code 0) without hvd's init while others still needed it")
        here.must_be_clean()


def test_ranks_that_use_no_hvd_may_end_when_they_like():
    with world.hosts() as here:
        here.hvdrun("-np", 2, "sh", "-c", '[ "$HVD_RANK" = 1 ] && exit 0; sleep 0.5').must(0)
        here.hvdrun("-np", 2, "sh", "-c", '[ "$HVD_RANK" = 1 ] && exit 0; sleep 0.5; exit 7').must(7, "rank 0 on localhost exited with code 7")
        here.must_be_clean()


def of_hvdrun(here):
    found = world.roles(here.hosts[0])
    return [process for role in ("console", "driver", "spawner") for process in found[role]]


def test_a_paused_hvdrun_blames_itself():
    with world.hosts(2, slots=1) as here:
        job = here.start_hvdrun("-np", 2, "--hostfile", here.hostfile, "--lease", 3, "--grace", 1, VICTIM, "loop").wait_for("joined", 2)
        paused = of_hvdrun(here)
        for process in paused:
            process.kill(signal.SIGSTOP)
        world.wait_until(lambda: not any(process.name == "victim" for host in here.hosts for process in host.processes()), 20, "the end of the lease")
        time.sleep(1)  # however short the rest of the pause was
        for process in [*paused, job.process]:  # nsenter stops itself with what it runs
            with contextlib.suppress(ProcessLookupError):  # those that went on first may have ended them all
                os.kill(process.pid, signal.SIGCONT)
        outcome = job.wait(10).must(125, "hvdrun itself was paused for ", "--lease 3 s", "next: ")
        assert "lost host" not in outcome.err, outcome
        here.must_be_clean()


def test_a_driver_that_stays_paused_ends_all_the_same():
    with world.hosts() as here:
        for by in ("itself", "the console's death", "TERM"):
            job = here.start_hvdrun("-np", 2, "--lease", 3, "--grace", 1, VICTIM, "loop").wait_for("joined", 2)
            console, driver, spawner = of_hvdrun(here)
            driver.kill(signal.SIGSTOP)
            spawner.kill(signal.SIGSTOP)
            if by == "itself":
                job.wait(20).must(125, "hvdrun itself was paused for ")
            elif by == "TERM":
                console.kill(signal.SIGTERM)
                job.wait(20).must(143, "stopped by SIGTERM")
            else:
                console.kill()
                job.wait(20)
            here.must_be_clean(within=10)


def login_of(here, text, command=(VICTIM, "steps", 30, 100)):
    """The outcome of a job on two hosts, of which the second has a login that begins with `text`."""
    start_up = here.hosts[1].root / "root/.bashrc"
    start_up.write_text(text)
    outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, *command)
    start_up.unlink()
    here.must_be_clean()
    return outcome


def test_what_a_login_does_to_a_link_is_told_as_such():
    with world.hosts(2, slots=1) as here:
        login_of(here, "(sleep 1; echo hello from a backup) &\n").must(125, "lost host host1: ", "not hvdd's: something else there prints", "next: look for a background job in the shell start-up files of host1")
        login_of(here, "ulimit -n 20\n").must(125, "cannot start on host host1: its limit of open files is too low", "next: raise its hard limit")
        login_of(here, "ulimit -n 64\n").must(125, "ulimit -Hn")


def test_an_hvdd_that_is_killed_before_its_hello_is_no_failed_login():
    with world.hosts(2, slots=1) as here:
        fake = here.directory / "host1" / "home" / "hvdd"
        fake.write_text("#!/bin/sh\nkill -9 $$\n")
        fake.chmod(0o755)
        here.run("mount", "--bind", "/root/hvdd", world.BIN / "hvdd", host=1).must(0)
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, "true").must(125, "cannot start on host host1: the login worked, but hvdd was killed there", "next: ")
        assert "could not log in" not in outcome.err and "hvdrun-is-logged-in" not in outcome.err, outcome
        here.run("umount", world.BIN / "hvdd", host=1).must(0)
        fake.unlink()
        here.must_be_clean()
