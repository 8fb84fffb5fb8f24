"""hvdrun as a shell and a terminal have it: stdin, stdout, signals."""
import os
import signal
import time

import world
from world import PROGRAMS

VICTIM = PROGRAMS / "victim"


def test_stdin_goes_to_rank_0():
    with world.hosts() as here:
        given = here.directory / "given"
        given.write_text("one\ntwo\n")
        with open(given, "rb") as stdin:
            outcome = here.hvdrun("-np", 2, "sh", "-c", "wc -l", stdin=stdin).must(0)
        assert sorted(outcome.out.splitlines()) == ["[0]<stdout>:2", "[1]<stdout>:0"], outcome


def test_closed_standard_descriptors_are_as_good_as_dev_null():
    with world.hosts() as here:
        for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"):
            here.run("sh", "-c", f"exec {world.HVDRUN} -np 1 cat {closed}", seconds=10).must(0)
        here.must_be_clean()


def test_an_answer_that_cannot_be_written_is_told():
    with world.hosts() as here:
        for asked in ("--help", "--version", "-np 1 --dry-run true", "--check-build"):
            here.run("sh", "-c", f"exec {world.HVDRUN} {asked} >/dev/full").must(1, "cannot write to stdout: No space left on device")


def test_a_prompt_is_shown_before_its_answer():
    with world.hosts() as here:
        stdin, keyboard = os.pipe()
        job = here.start_hvdrun("-np", 2, "python3", "-c", "import os\nif os.environ['RANK'] == '0': print('hello', input('name? '))", stdin=stdin)
        os.close(stdin)
        job.wait_for("[0]<stdout>:name? ")
        os.write(keyboard, b"you\n")
        os.close(keyboard)
        outcome = job.wait().must(0)
        assert outcome.out == "[0]<stdout>:name? hello you\n", outcome
        here.must_be_clean()


def test_no_line_of_a_flood_is_lost():
    with world.hosts() as here:
        lines = 200000
        outcome = here.hvdrun("-np", 2, VICTIM, "flood", lines, seconds=60).must(0)
        for rank in (0, 1):
            found = [line for line in outcome.out.splitlines() if line.startswith(f"[{rank}]<stdout>:line ")]
            assert len(found) == lines, f"{len(found)} of {lines} lines of rank {rank}"
            assert found[-1].startswith(f"[{rank}]<stdout>:line {lines - 1:07}"), found[-1]
        here.must_be_clean()


def test_ctrl_c():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, VICTIM, "loop").wait_for("joined", 2)
        world.console_of(here).kill(signal.SIGINT)
        outcome = job.wait(8)
        assert outcome.code == 130, outcome
        here.must_be_clean()


def test_ctrl_c_twice_does_not_wait_for_the_grace():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, "--grace", 30, VICTIM, "term-proof").wait_for("joined", 2)
        console = world.console_of(here)
        console.kill(signal.SIGINT)
        time.sleep(0.5)  # a person's second thought
        console.kill(signal.SIGINT)
        outcome = job.wait(8)
        assert outcome.code == 130, outcome
        here.must_be_clean()


def test_term():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, VICTIM, "loop").wait_for("joined", 2)
        world.console_of(here).kill(signal.SIGTERM)
        outcome = job.wait(8)
        assert outcome.code == 143, outcome
        here.must_be_clean()


def hang_up(here, command):
    """Runs a shell's command on a terminal of its own, and closes that when both ranks have joined."""
    job = here.start("script", "-qfec", command, "/dev/null").wait_for("joined", 2)
    next(process for process in here.hosts[0].processes() if process.name == "script").kill()
    job.wait(10)


def test_a_hang_up_ends_the_job():
    with world.hosts() as here:
        hang_up(here, f"exec {world.HVDRUN} -np 2 {VICTIM} loop")
        here.must_be_clean()
        hang_up(here, f"{world.HVDRUN} -np 2 --grace 1 {VICTIM} term-proof; true")
        here.must_be_clean(within=4)


def test_nohup_outlives_the_terminal():
    with world.hosts() as here:
        told = here.place("told")
        hang_up(here, f"trap '' HUP; {world.HVDRUN} -np 2 {VICTIM} steps 60 50 | tee {told}")
        world.wait_until(lambda: here.run("cat", told).out.count("stepped") == 2, 20, "the end of the job")
        here.run("rm", told).must(0)
        here.must_be_clean()


@world.bound(90)
def test_ctrl_z_pauses_the_console_only():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, VICTIM, "steps", 170, 100).wait_for("joined", 2)
        console = world.console_of(here)
        console.kill(signal.SIGTSTP)
        time.sleep(15)  # longer than the lease
        console.kill(signal.SIGCONT)
        outcome = job.wait(30)
        assert outcome.code == 0 and outcome.out.count("stepped") == 2, outcome
        here.must_be_clean()


def test_other_signals_go_to_the_ranks():
    names = ("HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT")
    ways = "".join(f"trap 'echo got {name}' {name}; " for name in names)
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, "sh", "-c", f"{ways} trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done")
        job.wait_for("up", 2)
        console = world.console_of(here)
        for name in names:
            console.kill(getattr(signal, f"SIG{name}"))
            job.wait_for(f"got {name}", 2)
        console.kill(signal.SIGTERM)
        job.wait(8).must(143, "stopped by SIGTERM")
        here.must_be_clean()


def test_a_closed_stdout_ends_the_job():
    with world.hosts() as here:
        outcome = here.run("sh", "-c", f"{world.HVDRUN} -np 2 yes | head -1", seconds=10)
        assert outcome.out.count("\n") == 1 and "<stdout>:y" in outcome.out, outcome
        here.must_be_clean()
