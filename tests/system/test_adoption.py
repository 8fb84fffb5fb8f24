# SPDX-License-Identifier: Apache-2.0
"""Ranks that other launchers have started are one job: with their numbers, their end, and nothing left."""
import contextlib
import json
import re
import shutil
import signal

import test_python
import test_slurm
import world
from world import BIN, PROGRAMS

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SLEEPS = (BIN / "train_digits", "--epochs", "100000")


def needs(program):
    if shutil.which(program) is None:
        raise world.Skip(f"there is no {program}; scripts/setup --schedulers installs it")


def mpirun(count, hosts):
    """Open MPI's."""
    needs("mpirun.openmpi")
    places = ",".join(f"host{host}:{count // hosts}" for host in range(hosts))
    # Its own daemons are quick to give up on a host whose login is slow.
    return ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-H", places, "-n", count]


def mpiexec(count, hosts):
    """MPICH's Hydra."""
    needs("mpiexec.hydra")
    return ["mpiexec.hydra", "-hosts", ",".join(f"host{host}" for host in range(hosts)), "-ppn", count // hosts, "-n", count]


LAUNCHERS = {"mpirun": mpirun, "mpiexec": mpiexec}


def ranks_of(text):
    return sorted(int(rank) for rank in re.findall(r"rank (\d+) of \d+", text))


@world.bound(90)
def test_processes_of_a_launcher_are_the_ranks_of_one_job():
    for launcher in LAUNCHERS.values():
        with world.hosts(2) as here:
            for count, hosts in ((2, 1), (4, 2), (1, 1)):
                job = here.run(*launcher(count, hosts), BIN / "hello", env=ROOT).must(0)
                assert ranks_of(job.out) == list(range(count)), job
                assert f"1 + ... + {count} = {count * (count + 1) // 2}" in job.out or count == 1, job
            # Their numbers are the launcher's.
            say = 'echo "$OMPI_COMM_WORLD_RANK$PMI_RANK is $(%s)"' % (BIN / "hello")
            job = here.run(*launcher(4, 2), "sh", "-c", say, env=ROOT).must(0)
            assert sorted(re.findall(r"(\d) is rank (\d) of 4", job.out)) == [(str(rank), str(rank)) for rank in range(4)], job
            here.must_be_clean()


@world.bound(90)
def test_ranks_in_turn_over_the_hosts_keep_their_numbers():
    """Random calls give what the plan says, also where a host's ranks are no neighbours."""
    needs("mpirun.openmpi"), needs("mpiexec.hydra")
    by_node = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--map-by", "node", "-H"]
    with world.hosts(2) as here:
        for words, count in (([*by_node, "host0:2,host1:2", "-n", 4], 4), ([*by_node, "host0:4,host1:1", "-n", 5], 5),
                             (["mpiexec.hydra", "-hosts", "host0,host1", "-ppn", 1, "-n", 4], 4)):
            say = 'echo "$OMPI_COMM_WORLD_RANK$PMI_RANK is $(%s)"' % (BIN / "hello")
            job = here.run(*words, "sh", "-c", say, env=ROOT).must(0)
            assert sorted(re.findall(r"(\d) is rank (\d) of", job.out)) == [(str(rank), str(rank)) for rank in range(count)], job
            env = {**ROOT, "HVD_TRANSPORT": "tcp", "HVD_RUN_OPTIONS": "--stall-check-shutdown-time-seconds 60 --report-bindings"}
            job = here.run(*words, PROGRAMS / "fuzz", 1, 12, env=env, seconds=60).must(0, "rank 1: host host1, adopted from")
            assert job.out.count("no fault") == count, job
        here.must_be_clean()


ENDS = """
import os, sys, time, hvd
hvd.init()
try:
    hvd.barrier()
    if hvd.rank() == 1:
        {how}
    hvd.barrier()
except hvd.AbortedError as error:  # some may be in the first one still
    time.sleep(20)  # for the launcher to see who was first
"""


@world.bound(120)
def test_the_end_of_a_rank_of_a_launcher_is_told():
    """The launcher has ended the others, and itself, at once: hvdrun's words may come too late for a pipe, but not for its file."""
    python = test_python.python()
    with world.hosts(2) as here:
        for name, launcher in LAUNCHERS.items():
            for how, key, value in (("os.kill(os.getpid(), 9)", "signal", 9), ("sys.exit(3)", "exit_code", 3), ("os._exit(4)", "exit_code", 4)):
                report = here.place("out")
                env = {**ROOT, **test_python.ENV, "HVD_RUN_OPTIONS": f"--output-filename {report}"}
                forward = ["-x", "PYTHONPATH"] if name == "mpirun" else []
                job = here.run(*launcher(4, 2), *forward, python, "-c", ENDS.format(how=how), env=env)
                assert job.code != 0, job
                world.wait_until(lambda: here.run("test", "-e", f"{report}/job.json").code == 0, 10, f"the report: {job}")
                told = json.loads(here.run("cat", f"{report}/job.json").must(0).out)
                culprit = told["ranks"][told["culprit"]["rank"]]
                assert culprit["rank"] == 1 and culprit[key] == value, (name, how, told)
                assert told["adopted_from"] == name, told
                here.run("rm", "-rf", report).must(0)
                here.must_be_clean(within=3)


def role(here, name):
    """Every process of that name in the job, of all hosts."""
    return [process for host in here.hosts for process in host.processes() if process.name == name]


@world.bound(180)
def test_whoever_dies_nothing_is_left():
    with world.hosts(2) as here:
        for name, launcher in LAUNCHERS.items():
            starter = launcher(4, 2)[0]
            for victim in ("train_digits", "hvdrun", "hvdd", starter):
                job = here.start(*launcher(4, 2), *SLEEPS, env=ROOT)
                world.wait_until(lambda: "epoch 1" in job.out(), 30, f"the training under {name}: {job.out()} {job.err()}")
                victims = role(here, victim[:15])
                assert victims, f"{name}: there is no {victim}"
                victims[0].kill(signal.SIGKILL)
                assert job.wait(20).code != 0, f"{name} without {victim}"
                here.run("sh", "-c", "rm -rf /tmp/ompi.*").must(0)  # Open MPI's own, of an mpirun that was killed
                here.must_be_clean(within=3)


@world.bound(180)
def test_workers_of_torchrun_are_the_ranks_of_one_job():
    torchrun = test_python.python().with_name("torchrun")
    with world.hosts(2) as here:
        for hosts in (1, 2):
            # A host has a network of its own, so that this port is free.
            words = [torchrun, "--nnodes", hosts, "--nproc-per-node", 2, "--master-addr", "host0", "--master-port", 29500, "--no-python", "--node-rank"]
            say = 'echo "$RANK is $(%s)"' % (BIN / "hello")
            jobs = [here.start(*words, host, "sh", "-c", say, host=host, env=test_python.ENV) for host in range(hosts)]
            said = "".join(job.wait(120).must(0).out for job in jobs)
            assert sorted(re.findall(r"(\d) is rank (\d) of", said)) == [(str(rank), str(rank)) for rank in range(2 * hosts)], said
        # As people try several hosts: two of torchrun's on one machine, which is one host.
        both = [here.start(*words[:2], 2, *words[3:], agent, "sh", "-c", say, env=test_python.ENV) for agent in range(2)]
        said = "".join(agent.wait(120).must(0).out for agent in both)
        assert sorted(re.findall(r"(\d) is rank (\d) of", said)) == [(str(rank), str(rank)) for rank in range(4)], said
        for host in range(2):
            here.run("sh", "-c", "rm -rf /tmp/torchelastic_*", host=host).must(0)  # torchrun's own
        test_python.must_be_clean(here)


@world.bound(90)
def test_ranks_whose_launcher_or_daemon_is_gone_are_ended_whatever_they_ignore():
    with world.hosts(1) as here:
        job = here.start(*mpirun(2, 1), "sh", "-c", f"trap '' TERM; exec {SLEEPS[0]} --epochs 100000", env={**ROOT, "HVD_RUN_OPTIONS": "--grace 1"})
        world.wait_until(lambda: "epoch" in job.out(), 30, "the training")
        role(here, "mpirun.openmpi")[0].kill(signal.SIGKILL)
        job.wait(20)
        here.run("sh", "-c", "rm -rf /tmp/ompi.*").must(0)
        here.must_be_clean(within=5)
        # Nobody is left who could end them, and hvdrun has given them up.
        job = here.start(*mpirun(2, 1), *SLEEPS, env=ROOT)
        world.wait_until(lambda: "epoch" in job.out(), 30, "the training")
        for name in ("hvdd", "hvd-shim"):
            for process in role(here, name):
                with contextlib.suppress(ProcessLookupError):
                    process.kill(signal.SIGKILL)
        assert job.wait(20).code != 0
        here.must_be_clean(within=5)


@world.bound(60)
def test_programs_one_after_the_other_are_jobs_one_after_the_other():
    twice = f"{BIN / 'hello'}; {BIN / 'hello'}"
    with world.hosts(1) as here:
        for launcher in LAUNCHERS.values():
            assert ranks_of(here.run(*launcher(2, 1), "sh", "-c", twice, env=ROOT).must(0).out) == [0, 0, 1, 1]
        here.must_be_clean()


@world.bound(60)
def test_options_that_hvdrun_refuses_end_every_rank():
    """Without a word of rank 0's they would wait for their daemon until nobody comes."""
    with world.hosts(2) as here:
        for launcher in LAUNCHERS.values():
            for hosts in (1, 2):
                job = here.run(*launcher(4, hosts), BIN / "hello", env={**ROOT, "HVD_RUN_OPTIONS": "--bogus"}, seconds=20)
                assert job.code != 0 and 'unknown option "--bogus"' in job.err, job
        here.must_be_clean()


@world.bound(60)
def test_who_means_one_process_gets_one():
    with world.hosts(1) as here:
        for launcher in LAUNCHERS.values():
            job = here.run(*launcher(2, 1), BIN / "hello", env={**ROOT, "HVD_STANDALONE": "1"}).must(0)
            assert ranks_of(job.out) == [0, 0], job
        here.must_be_clean()


@world.bound(120)
def test_tasks_of_a_step_are_the_ranks_of_one_job():
    with test_slurm.cluster(2) as slurm:
        for shape, ranks in ((("-N2", "-n4"), 4), (("-N2", "-n3"), 3), (("-N1", "-n2"), 2), (("-N2", "-n4", "--mpi=pmi2"), 4)):
            job = slurm.run("srun", *shape, BIN / "hello").must(0)
            assert ranks_of(job.out) == list(range(ranks)), job
        for how in ("cyclic", "plane=1"):
            job = slurm.run("srun", "-N2", "-n5", "-O", "-m", how, "sh", "-c", f'echo "$SLURM_PROCID is $({BIN / "hello"})"').must(0)
            assert sorted(re.findall(r"(\d) is rank (\d) of 5", job.out)) == [(str(rank), str(rank)) for rank in range(5)], job
            fuzz = slurm.run("srun", "-N2", "-n5", "-O", "-m", how, PROGRAMS / "fuzz", 1, 3).must(0)
            assert fuzz.out.count("no fault") == 5, fuzz
        # A launcher that a task starts knows best: mpiexec within a step of one task, and torchrun in one for each node.
        inner = slurm.run("srun", "-N1", "-n1", "mpiexec.hydra", "-launcher", "fork", "-n", 2, BIN / "hello").must(0)
        assert ranks_of(inner.out) == [0, 1], inner
        torchrun = f"{test_python.python().with_name('torchrun')} --nnodes 2 --nproc-per-node 2 --node-rank $SLURM_PROCID --master-addr host0 --master-port 29500 --no-python {BIN / 'hello'}"
        inner = slurm.run("srun", "-N2", "-n2", "--ntasks-per-node=1", "sh", "-c", torchrun).must(0)
        assert ranks_of(inner.out) == [0, 1, 2, 3], inner
        for host in range(2):
            slurm.here.run("sh", "-c", "rm -rf /tmp/torchelastic_*", host=host).must(0)
        for _ in range(2):
            job = slurm.start("srun", "-N2", "-n4", *SLEEPS)
            world.wait_until(lambda: "epoch 1" in job.out(), 30, f"the training: {job.out()} {job.err()}")
            slurm.run("scancel", *slurm.jobs()).must(0)
            assert job.wait(20).code != 0
            slurm.here.must_be_clean(within=3)
