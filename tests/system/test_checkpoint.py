# SPDX-License-Identifier: Apache-2.0
"""A job that is taken away: TERM to hvdrun, and its ranks agree on a last checkpoint before they end."""
import os
import re
import signal
import sys

import world
from world import PROGRAMS, REPOSITORY

PROGRAM = PROGRAMS / "checkpoint"
EXAMPLE = REPOSITORY / "examples" / "python" / "checkpoint_on_term.py"
PLACES = ("host0:2", "host0:1,host1:1")
NUMPY_PYTHON = str(REPOSITORY / ".cache" / "python" / "bin" / "python")


def python():
    return NUMPY_PYTHON if os.path.exists(NUMPY_PYTHON) else sys.executable


def steps(outcome, words, count=2):
    """The step after which each rank says that it did what `words` say; the same for all."""
    found = re.findall(words + r" after step (\d+)", outcome.out)
    assert len(found) == count and len(set(found)) == 1, outcome
    return int(found[0])


def tell(here, number):
    world.console_of(here).kill(number)


@world.bound(120)
def test_ranks_agree_after_a_signal_to_hvdrun():
    """TERM and Ctrl-C end the job, with their codes though every rank ends with 0; after USR1 it ends as its ranks do."""
    with world.hosts(2, slots=2) as here:
        for place in PLACES:
            for options in ((), ("--min-np", 1)):
                for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 0)):
                    job = here.start_hvdrun("-np", 2, "-H", place, *options, PROGRAM).wait_for("training", 2)
                    tell(here, number)
                    outcome = job.wait().must(code)
                    assert steps(outcome, "saved") > 0, outcome
                    here.must_be_clean()


def test_ranks_behind_a_shell_that_dies_of_term_agree_too():
    with world.hosts(2) as here:
        for place in PLACES:
            job = here.start_hvdrun("-np", 2, "-H", place, "sh", "-c", f"{PROGRAM}; exit 5").wait_for("training", 2)
            tell(here, signal.SIGTERM)
            assert steps(job.wait().must(143), "saved") > 0
            here.must_be_clean()


@world.bound(120)
def test_the_example_goes_on_from_its_checkpoint():
    with world.hosts(2, slots=2) as here:
        for place in PLACES:
            path = here.place("model.npz")
            here.hosts[0].clean.add(path)
            command = ("-np", 2, "-H", place, python(), EXAMPLE, path)
            env = {"PYTHONPATH": str(REPOSITORY / "python")}
            job = here.start_hvdrun(*command, env=env).wait_for("begins after step 0", 2)
            tell(here, signal.SIGTERM)
            stopped = steps(job.wait().must(143, "stopped by SIGTERM"), "stopped")
            again = here.start_hvdrun(*command, "--steps", stopped + 5, env=env).wait_for(f"begins after step {stopped}", 2)
            assert steps(again.wait().must(0), "stopped") == stopped + 5
            here.run("rm", path).must(0)
            here.must_be_clean()


def test_who_waits_for_a_busy_peer_agrees_too():
    """Rank 1 computes for a second, and runs its handler then; rank 0 is in the allreduce all the while."""
    busy = """
import signal, sys, time
import numpy as np
import hvd
heard = []
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
hvd.init()
step = 0
while True:
    if hvd.rank() == 1:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            pass
    hvd.allreduce(np.ones(1000), name="gradient")
    step += 1
    if step == 1:
        print("training", flush=True)
    if hvd.allreduce(np.array([len(heard)], np.int32), op=hvd.Max, name="stop")[0]:
        break
print(f"rank {hvd.rank()} saved after step {step}", flush=True)
"""
    with world.hosts(2) as here:
        for place in PLACES:
            job = here.start_hvdrun("-np", 2, "-H", place, "--grace", 30, python(), "-c", busy, env={"PYTHONPATH": str(REPOSITORY / "python")})
            job.wait_for("training", 2)
            tell(here, signal.SIGTERM)
            outcome = job.wait(40).must(143)
            assert steps(outcome, "saved") >= 2 and "Traceback" not in outcome.err, outcome
            here.must_be_clean()


@world.bound(120)
def test_a_program_asks_for_a_longer_grace_and_the_person_has_the_last_word():
    """Saving takes 6 s."""
    with world.hosts(2) as here:
        for place in PLACES:
            for words, options, env, saves in ((("6", "60"), (), {}, True), (("6",), (), {}, False), (("6",), (), {"HVD_GRACE": "60"}, True),
                                               (("6", "60"), ("--grace", 1), {}, False)):
                job = here.start_hvdrun("-np", 2, "-H", place, *options, PROGRAM, *words, env=env).wait_for("training", 2)
                tell(here, signal.SIGTERM)
                outcome = job.wait(40).must(143)
                assert outcome.out.count("hears") == 2 and outcome.out.count("saved") == (2 if saves else 0), (words, options, env, outcome)
                here.must_be_clean()
        here.hvdrun("-np", 1, "true", env={"HVD_GRACE": "soon"}).must(2, "HVD_GRACE")


def test_a_second_ctrl_c_kills_whoever_saves():
    with world.hosts(2) as here:
        for place in PLACES:
            job = here.start_hvdrun("-np", 2, "-H", place, PROGRAM, 1000, 2000).wait_for("training", 2)
            tell(here, signal.SIGINT)
            job.wait_for("hears", 2)
            tell(here, signal.SIGINT)
            outcome = job.wait(8).must(130, "killing all ranks")
            assert "saved" not in outcome.out, outcome
            here.must_be_clean()


def test_ranks_that_ignore_term_train_on_until_the_grace_is_over():
    with world.hosts(2) as here:
        for place in PLACES:
            for options in ((), ("--min-np", 1)):
                job = here.start_hvdrun("-np", 2, "-H", place, *options, "--grace", 2, PROGRAM, "deaf").wait_for("training", 2)
                tell(here, signal.SIGTERM)
                outcome = job.wait(12).must(143, "stopped by SIGTERM")
                assert outcome.seconds > 2 and "is told" not in outcome.out, outcome
                here.must_be_clean()


def test_a_rank_that_dies_of_term_is_told_to_the_others():
    with world.hosts(2) as here:
        for place in PLACES:
            job = here.start_hvdrun("-np", 2, "-H", place, "--grace", 60, PROGRAM, "lost").wait_for("training", 2)
            tell(here, signal.SIGTERM)
            outcome = job.wait(30).must(143)
            assert "rank 0 is told: stopped by SIGTERM; rank 1 on " in outcome.out and "signal 15" in outcome.out, outcome
            here.must_be_clean()


def test_the_grace_ends_with_hvdrun():
    """Whoever asked for an hour to save has hvdd's 5 s when hvdrun is killed."""
    with world.hosts(2) as here:
        for place in PLACES:
            job = here.start_hvdrun("-np", 2, "-H", place, PROGRAM, 1000, 3600).wait_for("training", 2)
            tell(here, signal.SIGTERM)
            job.wait_for("hears", 2)
            tell(here, signal.SIGKILL)
            job.wait().must(137)
            here.must_be_clean(8)
