# SPDX-License-Identifier: Apache-2.0
"""hvdrun in allocations of a real Slurm's: no flag is needed, nothing is left, and who ends the job is named."""
import contextlib
import os
import pathlib
import re
import shutil

import elastic
import world
from world import BIN, HVDRUN

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "slurm"
SLEEPS = ("sh", "-c", "echo up; while :; do sleep 0.1; done")


class Cluster:
    """Simulated hosts under Slurm."""

    def __init__(self, here):
        self.here = here
        self.env = {"SLURM_CONF": str(here.directory / "slurm" / "slurm.conf"), "PATH": f"{BIN}:/usr/bin:/bin:/usr/sbin:/sbin"}

    def run(self, *words, **how):
        return self.here.run(*words, env=self.env, seconds=30, **how)

    def start(self, *words, **how):
        return self.here.start(*words, env=self.env, **how)

    def jobs(self):
        return self.run("squeue", "-h", "-o", "%i").must(0).out.split()

    def submit(self, *options, script, user=None):
        """Starts a batch script; returns where its output comes, which is in the hosts' own directory."""
        out = pathlib.Path(self.here.directory) / "batch.out"
        out.unlink(missing_ok=True)
        out.touch(0o666)
        out.chmod(0o666)
        text = "#!/bin/bash\n" + script
        self.run("sbatch", *options, "-o", out, "--wrap", text, user=user).must(0)
        return out


@contextlib.contextmanager
def cluster(count, slots=2):
    if not all(map(shutil.which, ("slurmctld", "slurmd", "salloc", "srun"))):
        raise world.Skip("there is no Slurm; scripts/setup --schedulers installs it")
    with world.hosts(count, slots=slots, slurm=True) as here:
        yield Cluster(here)


def ranks_of(text):
    return sorted(int(rank) for rank in re.findall(r"rank (\d+) of \d+", text))


@world.bound(60)
def test_an_allocation_says_who_sits_where():
    with cluster(3) as slurm:
        for shape, ranks in ((("-N2", "-n4"), 4), (("-N3", "-n4"), 4), (("-N3",), 3), (("-n1",), 1)):
            job = slurm.run("salloc", "-Q", *shape, HVDRUN, BIN / "hello").must(0, "the hosts are those of Slurm job ", "reached by srun")
            assert ranks_of(job.out) == list(range(ranks)), job
        fewer = slurm.run("salloc", "-Q", "-N2", "-n4", HVDRUN, "-np", 3, BIN / "hello").must(0)
        assert ranks_of(fewer.out) == [0, 1, 2], fewer
        slurm.run("salloc", "-Q", "-N2", "-n4", HVDRUN, "-np", 5, BIN / "hello").must(2, "-np 5 needs 5 slots, but 2 hosts have 4")
        shown = slurm.run("salloc", "-Q", "-N2", "-n4", HVDRUN, "--dry-run", BIN / "hello").must(0)
        assert "4 ranks on 2 hosts (Slurm job " in shown.out, shown
        slurm.here.must_be_clean()


@world.bound(60)
def test_a_batch_script_trains_and_so_does_an_ordinary_user():
    with cluster(2) as slurm:
        for user in (None, 64198):  # "guest"
            out = slurm.submit("-N2", "-n4", script=f"exec {HVDRUN} {BIN / 'hello'}", user=user)
            world.wait_until(lambda: len(ranks_of(out.read_text())) == 4 and not slurm.jobs(), 30, f"the job: {out.read_text()}")
            assert ranks_of(out.read_text()) == [0, 1, 2, 3]
        slurm.here.must_be_clean()


@world.bound(60)
def test_a_shell_outside_of_the_allocation_reaches_its_hosts():
    with cluster(3) as slurm:
        job = slurm.run("salloc", "-Q", "-w", "host1,host2", "-n4", HVDRUN, "--verbose", BIN / "hello").must(0, "host host1: srun", "host host2: srun")
        assert ranks_of(job.out) == [0, 1, 2, 3], job
        slurm.here.must_be_clean()


@world.bound(60)
def test_a_shell_beside_the_job_on_one_of_its_nodes_starts_all_by_srun():
    """salloc's shell is on the first node, but has none of what Slurm gives the job: cores, memory, GPUs. A batch script has."""
    with cluster(2) as slurm:
        slurm.run("salloc", "-Q", "-w", "host0,host1", "-n2", HVDRUN, "--verbose", BIN / "hello").must(0, "host host0: srun", "host host1: srun")
        out = slurm.submit("-w", "host0,host1", "-n2", script=f"exec {HVDRUN} --verbose {BIN / 'hello'}")
        world.wait_until(lambda: len(ranks_of(out.read_text())) == 2 and not slurm.jobs(), 30, f"the job: {out.read_text()}")
        assert "host host0: srun" not in out.read_text() and "host host1: srun" in out.read_text(), out.read_text()
        slurm.here.must_be_clean()


@world.bound(120)
def test_a_cancelled_job_ends_as_one():
    with cluster(2) as slurm:
        for _ in range(3):
            job = slurm.start("salloc", "-Q", "-N2", "-n4", HVDRUN, *SLEEPS).wait_for("up", 4)
            slurm.run("scancel", *slurm.jobs()).must(0)
            job.wait(20).must(143, "stopped by S")
            out = slurm.submit("-N2", "-n4", script=f"{HVDRUN} {' '.join(map(repr, SLEEPS))}")
            world.wait_until(lambda: out.read_text().count("up") == 4, 20, "the ranks")
            slurm.run("scancel", *slurm.jobs()).must(0)
            world.wait_until(lambda: "exit code 143" in out.read_text(), 20, f"the verdict: {out.read_text()}")
            world.wait_until(lambda: not slurm.jobs(), 20, "the end of the job")
            slurm.here.must_be_clean()


@world.bound(120)
def test_a_job_whose_time_is_over_or_that_is_requeued_leaves_nothing_and_begins_anew():
    with cluster(2) as slurm:
        out = slurm.submit("-N2", "-n4", "-t1", script=f"{HVDRUN} {' '.join(map(repr, SLEEPS))}")
        world.wait_until(lambda: out.read_text().count("up") == 4, 20, "the ranks")
        number, = slurm.jobs()
        slurm.run("scontrol", "update", f"jobid={number}", "EndTime=now").must(0)
        world.wait_until(lambda: "exit code 143" in out.read_text(), 90, f"the verdict: {out.read_text()}")
        assert "TIME LIMIT" in out.read_text(), out.read_text()
        world.wait_until(lambda: not slurm.jobs(), 40, "the end of the job")
        slurm.here.must_be_clean()
        out = slurm.submit("-N2", "-n4", "--requeue", script=f"echo restart $SLURM_RESTART_COUNT; exec {HVDRUN} {' '.join(map(repr, SLEEPS))}")
        world.wait_until(lambda: out.read_text().count("up") == 4, 20, "the ranks")
        number, = slurm.jobs()
        slurm.run("scontrol", "requeue", number).must(0)
        world.wait_until(lambda: "PENDING" in slurm.run("squeue", "-h", "-o", "%T").out, 40, "the job to wait for its next run")
        slurm.run("scontrol", "update", f"jobid={number}", "StartTime=now").must(0)  # it would be let wait for two minutes
        # Its output begins anew, too.
        world.wait_until(lambda: "restart 1" in out.read_text() and out.read_text().count("up") == 4, 60, f"the second run: {out.read_text()}")
        assert slurm.jobs() == [number]
        slurm.run("scancel", number).must(0)
        world.wait_until(lambda: not slurm.jobs(), 20, "the end of the job")
        slurm.here.must_be_clean()


@world.bound(120)
def test_the_batch_scripts_to_begin_with():
    with cluster(2) as slurm:
        for script, program in (("train", BIN / "hello"), ("elastic", BIN / "hello")):
            folder = slurm.here.place(script)
            for host in (0, 1):
                slurm.here.run("mkdir", "-p", folder, host=host).must(0)
            slurm.run("sbatch", "-D", folder, "-o", "out", SCRIPTS / f"{script}.sbatch", program).must(0)
            out = slurm.here.hosts[0].root / folder.lstrip("/") / "out"
            world.wait_until(lambda: not slurm.jobs(), 40, f"the end of {script}")
            assert ranks_of(out.read_text()) == [0, 1, 2, 3], out.read_text()
            slurm.run("sbatch", "-W", "-D", folder, "-o", "usage", SCRIPTS / f"{script}.sbatch").must(2)
            assert f"usage: sbatch [options] {script}.sbatch command" in (out.parent / "usage").read_text()
            slurm.run("rm", "-rf", folder).must(0)
            slurm.here.run("rm", "-rf", slurm.here.own, host=1).must(0)
        slurm.here.must_be_clean()


@world.bound(60)
def test_a_rank_has_the_cores_of_its_task():
    with cluster(1) as slurm:
        if (os.cpu_count() or 1) < 2:
            raise world.Skip("one core is all that there is")
        for cores, bound in ((1, r"cores 0\b(?!-)"), (2, r"cores 0-1\b")):
            shown = slurm.run("salloc", "-Q", "-n1", f"-c{cores}", HVDRUN, "--report-bindings", "true").must(0)
            assert re.search(bound, shown.err), shown


@world.bound(120)
def test_an_elastic_job_follows_its_allocation():
    """Without a script of the person's: nodes that are drained, come back, and are given up."""
    with cluster(2) as slurm:
        salloc = ("salloc", "-Q", "--no-kill", "-w", "host0,host1", "-n4", HVDRUN, "--min-np", 2)
        shown = slurm.run(*salloc, "--dry-run", "true").must(0)
        assert re.search(r"each 2s the hosts are those in Slurm job \d+", shown.out), shown
        job = elastic.Job(slurm.here, salloc, start=slurm.start)
        drained = ("scontrol", "update", "nodename=host1", "state=drain", "reason=service")
        seats = job.wait_for(4)
        slurm.run(*drained).must(0)
        seats = job.wait_for(2, beyond=seats[0].epoch)
        assert "no step lost" in job.running.err(), job.running.err()
        slurm.run("scontrol", "update", "nodename=host1", "state=resume").must(0)
        seats = job.wait_for(4, beyond=seats[0].epoch)
        number, = slurm.jobs()
        slurm.run("scontrol", "update", f"jobid={number}", "NumNodes=1").must(0)
        job.wait_for(2, beyond=seats[0].epoch)
        job.end()
        slurm.here.must_be_clean()


@world.bound(60)
def test_a_signal_of_slurms_reaches_the_ranks_and_ends_nothing():
    """As --signal=USR1@60 has it: without B: the steps get it, which are hvdd's; with it, the batch script."""
    trapping = ("sh", "-c", "trap 'echo told' USR1; echo up; while :; do sleep 0.1; done")
    with cluster(3) as slurm:
        for options in ((), ("--min-np", 2)):
            job = slurm.start("salloc", "-Q", "-w", "host1,host2", "-n4", HVDRUN, *options, *trapping).wait_for("up", 4)
            for times in (1, 2):
                slurm.run("scancel", "--signal=USR1", *slurm.jobs()).must(0)
                job.wait_for("told", 4 * times)
            slurm.run("scancel", *slurm.jobs()).must(0)
            job.wait(20).must(143, "stopped by ")
        words = " ".join(map(repr, trapping))
        out = slurm.submit("-w", "host1,host2", "-n4", script=f"trap : USR1\n{HVDRUN} {words}")
        world.wait_until(lambda: out.read_text().count("up") == 4, 20, "the ranks")
        slurm.run("scancel", "--full", "--signal=USR1", *slurm.jobs()).must(0)  # each of its processes, hvdrun's too

        def told():
            return set(re.findall(r"\[(\d)\]<stdout>:told", out.read_text()))

        world.wait_until(lambda: len(told()) == 4, 20, f"all: {out.read_text()}")
        slurm.run("scancel", *slurm.jobs()).must(0)
        world.wait_until(lambda: "exit code 143" in out.read_text(), 20, f"the verdict: {out.read_text()}")
        world.wait_until(lambda: not slurm.jobs(), 20, "the end of the job")
        slurm.here.must_be_clean()


@world.bound(60)
def test_a_step_of_one_task_is_a_job_of_one():
    """Steps of several tasks are one job each: test_adoption."""
    with cluster(2) as slurm:
        one = slurm.run("srun", "-N1", "-n1", BIN / "hello").must(0)
        assert ranks_of(one.out) == [0], one
        slurm.here.must_be_clean()


@world.bound(60)
def test_a_host_that_is_not_of_the_job_is_told_in_slurms_words():
    with cluster(3) as slurm:
        slurm.run("salloc", "-Q", "-w", "host0", HVDRUN, "--rsh-agent", "srun", "-H", "host0:1,host2:1", BIN / "hello").must(
            125, "host2", "scontrol show job")
        slurm.here.must_be_clean()
