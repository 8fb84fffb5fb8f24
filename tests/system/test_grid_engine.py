# SPDX-License-Identifier: Apache-2.0
"""hvdrun in jobs of a real Grid Engine's: hosts and ranks are those of the parallel environment, and nothing is left."""
import contextlib
import pathlib
import re
import shutil

import world
from world import BIN, HVDRUN

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "grid-engine"
GUEST = 64198  # an ordinary user: Grid Engine signals root's jobs in part only
SLEEPS = "sh -c 'echo up; while :; do sleep 0.1; done'"


class Job:
    """A job that qsub waits for."""

    def __init__(self, engine, running, out):
        self.engine, self.running, self.out = engine, running, out
        self.number = running.wait_for("has been submitted").out().split()[2]

    def text(self):
        return self.out.read_text(errors="replace")

    def wait_for(self, text, count=1):
        def said():
            return self.text().count(text) >= count

        world.wait_until(lambda: said() or self.running.process.poll() is not None, 20, f"{count} times {text!r} in {self.out}")
        assert said(), f"ended before saying {text!r}: {self.running.wait()}\n{self.text()}"
        return self

    def said(self, *texts):
        for text in texts:
            assert text in self.text(), f"the output must say {text!r}: {self.text()}"
        return self.text()

    def must(self, code, *texts):
        ended = self.running.wait(30)
        assert ended.code == code, f"expected exit code {code}: {ended}\n{self.text()}"
        return self.said(*texts)

    def delete(self, *texts):
        """By qdel; its exit code is nobody's then, but what hvdrun says of it."""
        self.engine.run("qdel", self.number).must(0)
        self.running.wait(30)
        self.said(*texts)

    def forget(self, *texts):
        self.engine.run("qdel", "-f", self.number).must(0)
        self.running.wait(30)
        self.said(*texts)


class Cluster:
    """Simulated hosts under Grid Engine."""

    def __init__(self, here):
        self.here = here
        self.env = {"SGE_ROOT": str(here.directory / "sge"), "SGE_CELL": "sim", "SGE_QMASTER_PORT": "6444", "SGE_EXECD_PORT": "6445",
                    "PATH": f"{BIN}:/usr/bin:/bin:/usr/sbin:/sbin"}
        self.shared = here.directory / "shared"  # as all hosts see it
        self.shared.mkdir()
        self.shared.chmod(0o777)
        profile = here.directory / "host0" / "guest" / ".profile"  # Grid Engine's shells are those of a login
        profile.write_text(f"PATH=$PATH:{BIN}\n")

    def run(self, *words, host=0):
        return self.here.run(*words, host=host, env=self.env)

    def submit(self, *options, script=None, words=(), user=GUEST):
        """Starts a job whose first host is host 0: a file, or what /bin/sh is to do."""
        if isinstance(script, str):
            text, script = f"#!/bin/sh\n#$ -S /bin/sh\n{script}\n", self.shared / "job"
            script.write_text(text)
        out = self.shared / "job.out"
        out.unlink(missing_ok=True)
        fixed = ("-sync", "y", "-wd", self.shared, "-j", "y", "-o", out, "-masterq", "all.q@host0")
        out.touch()
        out.chmod(0o666)
        return Job(self, self.here.start("stdbuf", "-oL", "qsub", *fixed, *options, script, *words, env=self.env, user=user), out)

    def jobs(self):
        return self.run("qstat", "-u", "*").must(0).out

    def must_be_clean(self):
        world.wait_until(lambda: not self.jobs(), 20, "the end of the jobs")
        self.here.must_be_clean()


@contextlib.contextmanager
def cluster(count):
    if not all(map(shutil.which, ("sge_qmaster", "sge_execd", "qsub", "qrsh"))):
        raise world.Skip("there is no Grid Engine; scripts/setup --schedulers installs it")
    with world.hosts(count, sge=True) as here:
        yield Cluster(here)


def ranks_of(text):
    return sorted(int(rank) for rank in re.findall(r"rank (\d+) of \d+", text))


def test_a_job_on_three_hosts_with_uneven_slots_tells_its_results():
    with cluster(3) as engine:
        text = engine.submit("-pe", "hvd", 5, script=f"exec {HVDRUN} --verbose {BIN / 'hello'}").must(
            0, "the hosts are those of Grid Engine job ", "3 hosts, 5 slots, reached by qrsh")
        assert ranks_of(text) == [0, 1, 2, 3, 4], text
        assert sorted(re.findall(r"host (\w+): (hvdd|qrsh -inherit \w+ hvdd)$", text, re.MULTILINE)) == [
            ("host0", "hvdd"), ("host1", "qrsh -inherit host1 hvdd"), ("host2", "qrsh -inherit host2 hvdd")], text
        seven = f"exec {HVDRUN} sh -c 'test $HVD_RANK != 4 || exit 7; while :; do sleep 0.1; done'"
        text = engine.submit("-pe", "hvd", 5, script=seven).must(7)
        assert re.search(r"^hvdrun: rank 4 on host\d exited with code 7", text, re.MULTILINE), text
        engine.must_be_clean()


def test_the_job_script_to_begin_with():
    """It is notified, and so its ranks may save."""
    with cluster(2) as engine:
        engine.here.run(SCRIPTS / "train.sh").must(2, "usage: qsub [options] train.sh command")
        job = engine.submit(script=SCRIPTS / "train.sh", words=(BIN / "hello",))
        assert ranks_of(job.must(0, "2 hosts, 4 slots")) == [0, 1, 2, 3]
        assert len(list((engine.shared / f"ranks-{job.number}").glob("**/stdout"))) == 4
        saves = ("sh", "-c", "trap : USR2; trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done")
        job = engine.submit(script=SCRIPTS / "train.sh", words=saves).wait_for("up", 4)
        job.delete(f"stopped by SIGUSR2, which Grid Engine job {job.number} gets before it is killed (qdel, or out of time)", "exit code 143")
        assert job.text().count("saved") == 4, job.text()
        engine.must_be_clean()


def test_a_job_that_is_deleted_leaves_nothing():
    """KILL comes to all of its processes on all hosts, and nobody can say a word, or USR2 before it."""
    with cluster(3) as engine:
        for _ in range(2):
            engine.submit("-pe", "hvd", 5, script=f"{HVDRUN} {SLEEPS}").wait_for("up", 5).delete()
            engine.must_be_clean()
        job = engine.submit("-pe", "hvd", 5, "-notify", script=f"exec {HVDRUN} {SLEEPS}").wait_for("up", 5)
        job.delete(f"stopped by SIGUSR2, which Grid Engine job {job.number} gets before it is killed (qdel, or out of time)", "exit code 143")
        engine.must_be_clean()
        # Each host looks at the time for itself, and the others may be before hvdrun's.
        job = engine.submit("-pe", "hvd", 5, "-notify", "-l", "h_rt=2", script=f"exec {HVDRUN} {SLEEPS}").wait_for("exit code 143")
        job.said(f"stopped by SIGUSR2, which Grid Engine job {job.number} gets before it is killed (qdel, or out of time)")
        engine.must_be_clean()


def test_a_queue_that_ends_jobs_by_term_is_named():
    """TERM comes to each process several times."""
    with cluster(3) as engine:
        engine.run("qconf", "-mattr", "queue", "terminate_method", "SIGTERM", "all.q").must(0)
        for _ in range(3):
            job = engine.submit("-pe", "hvd", 5, script=f"exec {HVDRUN} {SLEEPS}").wait_for("up", 5)
            job.delete(f"stopped by SIGTERM, which Grid Engine job {job.number} gets when it is cancelled", "exit code 143")
            assert "killing all ranks" not in job.text(), job.text()
            engine.must_be_clean()


def test_what_grid_engine_refuses_or_loses_is_told_in_words():
    with cluster(3) as engine:
        other = f"exec {HVDRUN} --rsh-agent qrsh -H host0:1,host2:1 {BIN / 'hello'}"
        engine.submit("-pe", "hvd", 1, script=other).must(125, "cannot start on host host2", "a slot on host2 that is free (qstat -g t)?")
        waits = f"echo up; until [ -e go ]; do sleep 0.1; done; exec {HVDRUN} {BIN / 'hello'}"
        job = engine.submit("-pe", "hvd", 6, script=waits).wait_for("up")
        engine.run("pkill", "-KILL", "-x", "sge_execd", host=1).must(0)
        (engine.shared / "go").touch()
        # The master waits long for what its lost daemon could tell of the job.
        job.wait_for("exit code 125").forget("cannot start on host host1: Grid Engine's daemon there does not answer", "is sge_execd up on host1 (qhost -h host1)?")
        job = engine.submit("-pe", "hvd", 4, "-q", "all.q@host0,all.q@host2", script=f"exec {HVDRUN} {SLEEPS}").wait_for("up", 4)
        engine.here.sim_hosts("kill", 2)
        job.wait_for("exit code 125").forget("lost host host2: the connection to its hvdd closed; the connection of qrsh broke", "is host2 up (qhost -h host2)?")
        engine.here.must_be_clean()
