# SPDX-License-Identifier: Apache-2.0
"""hvd.torch.elastic in jobs whose ranks come and go; without changes it is tested with the others of python/tests."""
import os
import pathlib
import re
import shutil

import elastic_python_faults
import world
from elastic_python_faults import PROGRAM as FAULT
from elastic_python_faults import RESULT
from test_python import ENV, TESTS, must_be_clean, python
from test_torch_distributed import EXAMPLE as DDP_EXAMPLE

PROGRAM = TESTS / "programs" / "elastic_training.py"
HOROVOD = TESTS / "programs" / "horovod_elastic_documentation.py"
EXAMPLE = DDP_EXAMPLE.parent / "torch_digits_elastic.py"
CAME = re.compile(r"epoch (\d+) rank (\d+) size (\d+) pid (\S+) share (\d+) done (\d+) hash (\w+)$", re.M)
COMMIT = re.compile(r"commit (\d+) (\d+) hash (\w+)$", re.M)


class Job:
    """One of PROGRAM."""

    def __init__(self, here, words, *options):
        self.here = here
        self.until = pathlib.Path(str(here.hosts[0].root) + here.place("until"))
        self.running = here.start_hvdrun(*words, python(), PROGRAM, "--until", here.place("until"), *options, env=ENV)

    def epochs(self):
        """Number → its ranks' (host:pid, share, done, hash), where all have come into it."""
        found = {}
        for epoch, rank, size, *rest in CAME.findall(self.running.out()):
            found.setdefault((int(epoch), int(size)), {})[int(rank)] = rest
        return {epoch: [ranks[rank] for rank in sorted(ranks)] for (epoch, size), ranks in sorted(found.items()) if len(ranks) == size}

    def wait_for(self, size, beyond=0, seconds=40):
        """The newest epoch of that size, once it has come and committed."""
        def there():
            assert self.running.process.poll() is None, f"the job has ended: {self.running.wait()}"
            found = [(epoch, ranks) for epoch, ranks in self.epochs().items() if epoch > beyond and len(ranks) == size]
            committed = {int(epoch) for epoch, _, _ in COMMIT.findall(self.running.out())}
            return found[-1] if found and found[-1][0] in committed else None
        return world.wait_until(there, seconds, f"an epoch of {size} ranks beyond {beyond}")

    def kill(self, place):
        name, pid = place.split(":")
        for host in self.here.hosts:
            for process in host.processes() if name == f"host{host.index}" else ():
                if "python" not in process.name:
                    continue
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                if re.search(rf"^NSpid:.*\t{pid}$", status, re.M):
                    process.kill()
                    return
        raise AssertionError(f"no process calls itself {pid} on {name}")

    def end(self, ranks):
        """Lets it end; all ranks have had the same behind each commit, and no sample was lost."""
        self.until.touch()
        outcome = self.running.wait(40).must(0)
        self.until.unlink()
        assert outcome.out.count(" done\n") == ranks and "SAMPLES LOST" not in outcome.err and "WORKERS DIED" not in outcome.err, outcome
        hashes = {}
        for epoch, step, digest in COMMIT.findall(outcome.out):
            hashes.setdefault((epoch, step), set()).add(digest)
        assert hashes and all(len(one) == 1 for one in hashes.values()), (hashes, outcome)
        for ranks in self.epochs().values():
            assert len({digest for *_, digest in ranks}) == 1, (ranks, outcome)
        must_be_clean(self.here)
        return outcome


def pids(ranks):
    return {pid for pid, *_ in ranks}


@world.bound(300)
def test_a_rank_is_killed_and_replaced():
    python()
    for words in ((), ("--workers",)):
        killed_and_replaced(words)


@world.bound(200)
def test_torch_distributed_goes_on_when_a_rank_is_killed():
    python()
    killed_and_replaced(("--distributed",))


def killed_and_replaced(words):
    with world.hosts(2) as here:
        job = Job(here, ("-np", 4, "--min-np", 2, "-H", "host0:2,host1:2"), *words)
        epoch, before = job.wait_for(4)
        for victim in (3, 0):
            job.kill(before[victim][0])
            epoch, after = job.wait_for(4, beyond=epoch)
            survivors = pids(before) - {before[victim][0]}
            assert survivors < pids(after), (before, after)
            assert int(after[0][2]) > 0, after  # some samples were done already
            before = after
        job.end(4)


@world.bound(200)
def test_a_rank_that_dies_within_a_step():
    python()
    with world.hosts(2) as here:
        place = here.place("die")
        file = pathlib.Path(str(here.hosts[0].root) + place)
        file.touch()
        job = Job(here, ("-np", 3, "--min-np", 2, "-H", "host0:3"), "--die", place)
        _, before = job.wait_for(3)
        epoch = next(iter(job.epochs()))
        world.wait_until(lambda: not file.exists(), 30, "a rank that kills itself")
        _, after = job.wait_for(3, beyond=epoch)
        assert len(pids(before) & pids(after)) >= 2, (before, after)
        job.end(3)


@world.bound(300)
def test_hosts_come_and_go_by_discovery():
    python()
    with world.hosts(3) as here:
        listed, script = (pathlib.Path(str(here.hosts[0].root) + here.place(name)) for name in ("listed", "hosts.sh"))
        def say(*hosts):
            fresh = listed.with_suffix(".new")
            fresh.write_text("".join(f"{host}\n" for host in hosts))
            os.replace(fresh, listed)
        say("host0:2")
        script.write_text(f"#!/bin/sh\ncat {here.place('listed')}\n")
        script.chmod(0o755)
        job = Job(here, ("-np", 2, "--min-np", 1, "--max-np", 6, "--host-discovery-script", here.place("hosts.sh")))
        epoch, first = job.wait_for(2)
        say("host0:2", "host1:2")
        epoch, grown = job.wait_for(4, beyond=epoch)
        assert pids(first) < pids(grown), (first, grown)
        say("host0:2", "host2:1")
        epoch, moved = job.wait_for(3, beyond=epoch)
        assert pids(first) < pids(moved), (first, moved)
        say("host0:1")
        _, left = job.wait_for(1, beyond=epoch)
        assert pids(left) < pids(first), (first, left)
        listed.unlink()
        script.unlink()
        job.end(1)


@world.bound(200)
def test_a_host_whose_ranks_come_one_after_another():
    """The second's coming is told in the sync by which the first gets the state: the first has all of it, the optimizer's too."""
    python()
    with world.hosts(2) as here:
        listed, script = (pathlib.Path(str(here.hosts[0].root) + here.place(name)) for name in ("listed", "hosts.sh"))
        listed.write_text("host0:1\n")
        script.write_text(f"#!/bin/sh\ncat {here.place('listed')}\n")
        script.chmod(0o755)
        job = Job(here, ("-np", 1, "--min-np", 1, "--max-np", 3, "--host-discovery-script", here.place("hosts.sh")),
                  "--second", here.place("second"))
        epoch, _ = job.wait_for(1)
        folder = pathlib.Path(str(here.hosts[1].root) + here.place(""))
        folder.mkdir()  # for the file
        fresh = listed.with_suffix(".new")
        fresh.write_text("host0:1\nhost1:2\n")
        os.replace(fresh, listed)
        job.wait_for(3, beyond=epoch)
        shutil.rmtree(folder)
        listed.unlink()
        script.unlink()
        job.end(3)


# Horovod skips these four: a program that fails everywhere, all ranks at once, all hosts, too few of them for too long.
@world.bound(200)
def test_exceptions_of_all_ranks_end_the_job_with_their_code():
    python()
    raises = "import hvd as h, time; h.init(); h.barrier(); time.sleep(0.2); raise SystemExit(3 + h.elastic.slot())"
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, "--min-np", 2, "-H", "host0:2", python(), "-c", raises, env=ENV, seconds=60)
        assert outcome.code in (3, 4) and "the program fails by itself" in outcome.err, outcome
        must_be_clean(here)


def fail_by(here, *words, np=2, min_np=2, marks=None, **how):
    """The outcome of a job with a fault of the program's own; nothing is left, but for the program's own file or folder `marks`."""
    outcome = here.hvdrun("-np", np, "--min-np", min_np, "-H", f"host0:{np}", *words, env=ENV, seconds=90, **how)
    if marks:
        here.run("rm", "-rf", marks).must(0)
    must_be_clean(here)
    return outcome


@world.bound(300)
def test_a_rank_that_fails_at_the_same_step_each_time_ends_the_job():
    with world.hosts() as here:
        for kind, code in (("raise", 1), ("exit-3", 3), ("segv", 139)):
            for more in ((), ("--anew",)):
                outcome = fail_by(here, python(), FAULT, "--kind", kind, "--where", "train", "--at", 14, "--rank", 1, *more).must(code)
                assert outcome.err.count("hvdrun: the program fails by itself: rank 1 on host0 ") == 1, outcome
                verdict = outcome.err.rpartition("hvdrun: the program fails by itself")[2]
                assert kind != "raise" or verdict.count("ValueError: a fault of the program's own") == 1, outcome


@world.bound(300)
def test_a_rank_that_exits_with_0_early_is_a_lost_one():
    with world.hosts(slots=3) as here:
        for kind, where in (("exit-0", "train"), ("_exit-0", "train"), ("exit-0", "import"), ("_exit-0", "done")):
            once = here.place("once")
            outcome = fail_by(here, python(), FAULT, "--kind", kind, "--where", where, "--at", 24 if where == "done" else 14, "--rank", 1,
                              "--once", once, np=3, marks=once).must(0)
            # The others may be at the end before another has come in its place.
            assert outcome.out.count(f"{RESULT}\n") >= 2, outcome
            if where == "train":
                assert "exited (code 0)" in outcome.err and "while other ranks went on" in outcome.err, outcome


@world.bound(300)
def test_ranks_that_exit_with_0_early_each_time_are_to_blame():
    with world.hosts() as here:
        for kind in ("exit-0", "_exit-0"):
            for where in ("import", "train"):
                outcome = fail_by(here, python(), FAULT, "--kind", kind, "--where", where, "--at", 14, "--rank", 1).must(1)
                assert re.search(r"hvdrun: the program fails by itself: .* on host0.* exited \(code 0\)", outcome.err), outcome
                assert "member" not in outcome.err, outcome


@world.bound(200)
def test_a_replacement_that_cannot_start_leaves_the_others_alone():
    with world.hosts(slots=3) as here:
        # It starts once; who comes later fails before it has called init.
        program = ["bash", "-c", f"[ $HVD_RANK = 2 ] && ! mkdir {here.place('first')} 2>/dev/null && exit 9; exec \"$@\"", "-"]
        outcome = fail_by(here, *program, python(), FAULT, "--kind", "kill", "--at", 14, "--slot", 2, np=3, marks=here.place("first")).must(0)
        assert outcome.out.count(f"{RESULT}\n") == 2 and "member" not in outcome.err, outcome


@world.bound(200)
def test_each_epochs_line_begins_with_why_and_when():
    with world.hosts() as here:
        once = here.place("once")
        outcome = fail_by(here, "--prefix-timestamp", python(), FAULT, "--kind", "kill", "--at", 14, "--rank", 1, "--once", once, marks=once).must(0)
        said = r"^[-\d]{10} [:.\d]{12} hvdrun: rank 1 on host0 was killed by signal 9 \(Killed\); epoch 2: 2 ranks on 1 host"
        assert re.search(said, outcome.err, re.M), outcome


@world.bound(400)
def test_faults_at_random_places():
    counts, failures = elastic_python_faults.run_many(1, 12)
    assert not failures, "\n".join(failures)
    print(counts)


@world.bound(200)
def test_all_ranks_are_killed_and_the_commit_is_there_still():
    python()
    with world.hosts() as here:
        job = Job(here, ("-np", 2, "--min-np", 2, "-H", "host0:2"))
        epoch, before = job.wait_for(2)
        for place, *_ in before:
            job.kill(place)
        _, after = job.wait_for(2, beyond=epoch)
        assert not pids(before) & pids(after) and int(after[0][2]) > 0, (before, after)
        job.end(2)


def lose_hosts(lost, *words):
    """Returns the outcome of a job of two hosts that loses these for good."""
    python()
    with world.hosts(2) as here:
        job = Job(here, ("-np", 2, "-H", "host0:1,host1:1", "--blacklist-cooldown-range", 1000, 1000, *words))
        job.wait_for(2)
        for host in lost:
            world.roles(here.hosts[host])["hvdd"][0].kill()
        outcome = job.running.wait(80).must(125)
        for host in lost:
            assert f"host host{host}: " in outcome.err, outcome
        must_be_clean(here)
        return outcome


@world.bound(200)
def test_the_loss_of_all_hosts_ends_the_job_and_says_what_is_lost():
    outcome = lose_hosts((0, 1), "--min-np", 1)
    assert "is lost" in outcome.err, outcome


@world.bound(200)
def test_too_few_hosts_are_waited_for_as_long_as_asked():
    outcome = lose_hosts((1,), "--min-np", 2, "--elastic-timeout", 20)
    assert "1 of at least 2 ranks are there, after --elastic-timeout 20 s" in outcome.err, outcome


@world.bound(200)
def test_horovods_elastic_program_runs_unchanged():
    python()
    assert "hvd.elastic.run" in HOROVOD.read_text() and "hvd.compat" not in HOROVOD.read_text()
    bare = {name: value for name, value in ENV.items() if name != "PYTHONPATH"}
    with world.hosts() as here:
        for words in (("-np", 2), ("-np", 2, "--min-np", 1, "-H", "host0:2")):
            outcome = here.hvdrun(*words, "--compat", "horovod", python(), HOROVOD, env=bare, seconds=80).must(0)
            assert outcome.out.count("Test set: Average loss") == 1, outcome
            must_be_clean(here)


@world.bound(200)
def test_the_elastic_example_learns():
    python()
    with world.hosts() as here:
        for words in (("-np", 2), ("-np", 2, "--min-np", 1, "-H", "host0:2")):
            outcome = here.hvdrun(*words, python(), EXAMPLE, "--device", "cpu", "--epochs", 3, env=ENV, seconds=60).must(0)
            losses = [float(line.split("loss ")[1].split()[0]) for line in outcome.out.splitlines() if "loss " in line]
            assert len(losses) == 3 and losses[-1] < losses[0], outcome
            must_be_clean(here)
