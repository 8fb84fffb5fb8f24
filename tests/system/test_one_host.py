# SPDX-License-Identifier: Apache-2.0
"""Jobs on one host: what the user sees, and the exit codes."""
import json
import os
import signal
import time

import world
from world import BIN, PROGRAMS

ALL_OPS = PROGRAMS / "all_ops"
VICTIM = PROGRAMS / "victim"


@world.bound(180)
def test_all_ops_are_right_on_any_number_of_ranks():
    with world.hosts() as here:
        for np in (1, 2, 3, 5):
            outcome = here.hvdrun("-np", np, ALL_OPS, seconds=120).must(0)
            assert outcome.out.count("all ops right") == np, outcome
        here.must_be_clean()


@world.bound(180)
def test_all_ops_are_right_in_memory_that_the_ranks_share():
    with world.hosts() as here:
        for np, memory in ((2, "arena"), (3, "mixed"), (5, "arena")):
            outcome = here.hvdrun("-np", np, ALL_OPS, memory, seconds=120).must(0)
            assert outcome.out.count("all ops right") == np, outcome
        here.must_be_clean()


def test_losses_do_not_depend_on_the_number_of_ranks():
    def train(here, np):
        out = here.hvdrun("-np", np, BIN / "train_digits", "--json", "--epochs", 20).must(0).out
        return json.loads(out.strip().splitlines()[-1].partition("<stdout>:")[2])

    with world.hosts() as here:
        reference = train(here, 1)
        assert reference["np"] == 1 and reference["test_accuracy"] >= 0.95, reference
        for np in (2, 3, 5):
            result = train(here, np)
            assert result["np"] == np and len(result["losses"]) == 20, result
            worst = max(abs(a - b) for a, b in zip(reference["losses"], result["losses"]))
            assert worst <= 1e-3, f"np={np}: losses differ by {worst}"
            assert result["test_accuracy"] >= 0.95, result
        here.must_be_clean()


def test_localhost_with_more_slots_than_ranks():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, "-H", "localhost:4", BIN / "hello").must(0)
        assert outcome.out.count("of 2") == 2 + 2, outcome  # "rank r of 2 (l of 2 on its host)"
        here.must_be_clean()


def test_exit_code_is_the_culprits():
    with world.hosts() as here:
        here.hvdrun("-np", 3, VICTIM, "exit", 7, 1).must(7, "rank 1", "7")
        here.must_be_clean()
        here.hvdrun("-np", 2, "sh", "-c", "exit 7").must(7)
        here.must_be_clean()


def test_bytes_that_are_no_utf8():
    """In the environment, the arguments, the output, the last lines and job.json."""
    with world.hosts() as here:
        place = here.directory / "files"
        outcome = here.hvdrun("-np", 2, "--output-filename", place, "sh", "-c", 'printf "$0$ODD\\n"; exit $RANK', "\udcff",
                              env={"ODD": "\udce9t\udce9"}).must(1, "rank 1", "exited with code 1", r"| \xff\xe9t\xe9")
        assert "[1]<stdout>:\ufffd\ufffdt\ufffd\n" in outcome.out, outcome  # rank 0 may be stopped before its own
        assert (place / "rank.0001" / "stdout").read_bytes() == b"\xff\xe9t\xe9\n"
        assert json.loads((place / "job.json").read_text())["ranks"][1]["last_lines"] == ["\ufffd\ufffdt\ufffd"]
        here.hvdrun("-np", 1, "head", "-c", "100000", "/dev/urandom").must(0)
        here.must_be_clean()


def test_segfault():
    with world.hosts() as here:
        here.hvdrun("-np", 3, VICTIM, "segv", 2).must(139, "rank 2", "Segmentation fault")
        here.must_be_clean()


def test_sigterm_proof_worker_is_killed_after_the_grace():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, VICTIM, "term-proof", "exit").must(7, "rank 0")
        assert outcome.seconds < world.patient(6), outcome
        here.must_be_clean(within=1)


def test_leaving_while_others_wait():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, VICTIM, "leave")
        assert outcome.code != 0, outcome
        assert "rank 0" in outcome.err and outcome.err.count("was told") >= 1, outcome
        here.must_be_clean()


def test_an_exception_is_not_held_back_by_what_is_in_flight():
    with world.hosts() as here:
        for what in ("handle", "gather", "gradients"):
            outcome = here.hvdrun("-np", 3, PROGRAMS / "thrown", what, seconds=15).must(3, "rank 1")
            assert "rank 1: bad batch" in outcome.out, outcome
            # By one at least: the other may be stopped before it says so.
            assert "was told HVD_ERR_ABORTED: " in outcome.out and "rank 1 has left" in outcome.out, outcome
            here.must_be_clean()
        assert here.hvdrun("-np", 2, PROGRAMS / "thrown", "caught").must(0).out.count("goes on") == 2
        here.must_be_clean()


def test_a_rank_that_throws_is_the_culprit_though_its_victims_end_first():
    with world.hosts() as here:
        for np in (2, 3):
            outcome = here.hvdrun("-np", np, VICTIM, "throw", 3, 1).must(3, "rank 1 on", "exited with code 3", "| out of cheese",
                                                                         "exited with code 1 afterwards")
            assert "hvdrun: rank 1" in outcome.err, outcome
        here.must_be_clean()


def test_a_rank_that_cannot_go_on_is_the_culprit_though_its_victims_end_first():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, VICTIM, "give-up", 3, 1).must(3, "rank 1 on", "exited with code 3",
                                                                      "exited with code 1 afterwards")
        assert "hvdrun: rank 1" in outcome.err, outcome
        here.must_be_clean()


def test_init_and_shutdown_again_and_again():
    with world.hosts() as here:
        assert here.hvdrun("-np", 2, VICTIM, "reinit", 50).must(0).out.count("50 sessions") == 2
        here.must_be_clean()


def test_mismatches_give_every_rank_the_same_error_and_hurt_nobody():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, VICTIM, "mismatch").must(0)
        errors = {}
        for line in outcome.out.splitlines():
            rank, _, text = line.partition("<stdout>:")
            if text.startswith("error:"):
                errors.setdefault(rank, []).append(text)
        assert len(errors) == 3 and all(len(texts) == 4 for texts in errors.values()), outcome
        assert len({tuple(texts) for texts in errors.values()}) == 1, outcome
        for word in ("dtype", "shape", "op", "root"):
            assert any(f"bad.{word}" in text for text in errors["[0]"]), outcome
        assert outcome.out.count("alive") == 3, outcome


def test_a_pending_name_is_refused():
    with world.hosts() as here:
        assert here.hvdrun("-np", 3, VICTIM, "duplicate").must(0).out.count("refused") == 3


def test_python_may_stand_between():
    with world.hosts() as here:
        code = f"import subprocess, sys; sys.exit(subprocess.run([{str(BIN / 'hello')!r}]).returncode)"
        outcome = here.hvdrun("-np", 2, "/usr/bin/python3", "-c", code).must(0)
        assert "rank 0 of 2" in outcome.out and "rank 1 of 2" in outcome.out, outcome
        here.must_be_clean()


def test_workers_find_what_they_were_promised():
    with world.hosts() as here:
        names = ["HVD_RANK", "HVD_SIZE", "HVD_LOCAL_RANK", "HVD_LOCAL_SIZE", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
                 "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME", "RANK", "WORLD_SIZE",
                 "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GIVEN", "PYTHONUNBUFFERED", "HOME", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
                 "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                 "TORCHELASTIC_MAX_RESTARTS", "HVD_JOB_MARK"]
        outcome = here.hvdrun("-np", 2, "-x", "GIVEN=some thing", "sh", "-c",
                              " ; ".join(f'echo "{name}=${name}"' for name in names) + "; pwd; umask").must(0)
        values = dict(line.partition(":")[2].split("=", 1) for line in outcome.out.splitlines()
                      if line.startswith("[1]") and "=" in line)
        wanted = {"HVD_RANK": "1", "HVD_SIZE": "2", "HVD_LOCAL_RANK": "1", "HVD_LOCAL_SIZE": "2", "HOROVOD_RANK": "1",
                  "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_RANK": "1", "HOROVOD_LOCAL_SIZE": "2", "HOROVOD_CROSS_RANK": "0",
                  "HOROVOD_CROSS_SIZE": "1", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                  "GIVEN": "some thing", "PYTHONUNBUFFERED": "1", "HOME": "/root", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1",
                  "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "2", "ROLE_NAME": "default", "MASTER_ADDR": values["HOROVOD_HOSTNAME"],
                  "MASTER_PORT": "", "TORCHELASTIC_RUN_ID": values["HVD_JOB_MARK"], "TORCHELASTIC_RESTART_COUNT": "0",
                  "TORCHELASTIC_MAX_RESTARTS": "0"}
        for name, value in wanted.items():
            assert values.get(name) == value, f"{name} must be {value!r}: {outcome}"
        assert values["HOROVOD_HOSTNAME"], outcome
        assert f"[1]<stdout>:{world.REPOSITORY}\n" in outcome.out, outcome


def test_ranks_are_process_groups_and_bound_ones_are_scheduling_groups():
    """Ranks on all cores share one scheduling group, else none lets another pass; bound ones have their own, else the kernel starves others."""
    command = "cut -d' ' -f5,6 /proc/self/stat; cat /proc/self/autogroup 2>/dev/null || true"
    with world.hosts() as here:
        for bind, sessions_wanted in (("none", 1), ("cores", 2)):
            lines = here.hvdrun("-np", 2, "--bind", bind, "sh", "-c", command).must(0).out.splitlines()
            words = [line.partition("<stdout>:")[2].split() for line in lines]
            groups, sessions = zip(*(pair for pair in words if pair[0].isdigit()))
            autogroups = {pair[0] for pair in words if not pair[0].isdigit()}
            assert len(set(groups)) == 2 and len(set(sessions)) == sessions_wanted, (bind, lines)
            assert len(autogroups) in (0, sessions_wanted), (bind, lines)
        here.must_be_clean()


def test_output_files():
    with world.hosts() as here:
        place = here.directory / "files"
        here.hvdrun("-np", 2, "--output-filename", place, "sh", "-c", "echo out $RANK; echo err $RANK >&2").must(0)
        for rank in (0, 1):
            assert (place / f"rank.{rank:04}" / "stdout").read_text() == f"out {rank}\n"
            assert (place / f"rank.{rank:04}" / "stderr").read_text() == f"err {rank}\n"
        assert json.loads((place / "job.json").read_text())["exit_code"] == 0
        here.hvdrun("-np", 2, "--output-filename", place, "sh", "-c", "exit 3").must(3)
        assert json.loads((place / "job.json").read_text())["exit_code"] == 3


def test_time_is_up():
    with world.hosts() as here:
        here.hvdrun("-np", 2, "--timeout", "1s", VICTIM, "loop").must(124)
        here.must_be_clean()


def test_sigchld_may_be_ignored_by_whoever_starts_us():
    """Such a process gets no child's end, and it is inherited by exec."""
    with world.hosts() as here:
        ignore = ("env", "--ignore-signal=CHLD")
        here.run(*ignore, world.HVDRUN, "-np", 2, "sh", "-c", "exit $((RANK * 3))").must(3, "rank 1", "code 3")
        here.must_be_clean()
        outcome = here.run(*ignore, world.HVDRUN, "-np", 1, "-H", "far", "--rsh-agent", "false", "true").must(125, "false exited with code 1")
        assert outcome.seconds < world.patient(4), outcome
        agent = here.place("agent")
        here.run("sh", "-c", f"printf '#!/bin/sh\\nexec {' '.join(ignore)} sh -c \"$2\"\\n' >{agent}; chmod +x {agent}").must(0)
        here.hvdrun("-np", 1, "-H", "far", "--rsh-agent", agent, "sh", "-c", "exit 3").must(3)
        here.run("rm", agent).must(0)
        here.must_be_clean()


def test_without_a_launcher_the_size_is_one():
    with world.hosts() as here:
        assert "rank 0 of 1" in here.run(BIN / "hello").must(0).out
        stray = here.run("env", "HVD_RANK=0", BIN / "hello")
        assert stray.code == 1 and "HVD_" in stray.err, stray


@world.alone
def test_an_idle_rank_costs_nothing():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, VICTIM, "wait").wait_for("joined", 2)
        victims = [process for process in here.hosts[0].processes() if process.name == "victim"]
        assert len(victims) == 2, victims

        for victim in victims:
            world.await_still(victim)
        began, before = time.monotonic(), [world.state_and_time(victim)[1] for victim in victims]
        time.sleep(1)
        spent = sum(world.state_and_time(victim)[1] - old for victim, old in zip(victims, before)) / os.sysconf("SC_CLK_TCK")
        passed = time.monotonic() - began
        assert spent <= 0.02 * passed, f"two waiting ranks used {spent} s of CPU in {passed:.2f} s"
        world.console_of(here).kill(signal.SIGINT)
        job.wait(8)
