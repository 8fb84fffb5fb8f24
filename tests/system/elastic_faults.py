# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs with faults at random moments, drawn from a seed; see scripts/elastic-faults."""
import contextlib
import os
import random
import signal
import time

import elastic
import world

SHAPES = ((1, 2), (1, 3), (2, 1), (2, 2))  # hosts, slots


class Faults:
    """The faults that one run does to its job."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.hosts, self.slots = self.random.choice(SHAPES)
        self.count = self.random.randint(1, 4)
        self.min_np = self.random.choice((1, self.hosts * self.slots)) if self.hosts == 1 else 1
        self.done = []
        self.struck = []  # processes that end by a fault

    def words(self):
        np = self.hosts * self.slots
        hosts = ",".join(f"host{index}:{self.slots}" for index in range(self.hosts))
        return ("-np", np, "--min-np", self.min_np, "-H", hosts, "--blacklist-cooldown-range", 1, 1)

    def program(self):
        return ("--mb", self.random.choice((1, 1, 8)), "--commit-every", self.random.choice((1, 3, 10)), "--show-commits")

    def strike(self, here):
        """One fault, on whoever lives now."""
        kind = self.random.choices(("kill", "two", "stop", "hvdd", "drain"), (8, 3, 2, 2, 1))[0]
        if self.hosts == 1 and kind in ("hvdd", "drain"):
            kind = "kill"
        self.done.append(kind)
        with contextlib.suppress(ProcessLookupError, KeyError, FileNotFoundError, IndexError):
            if kind == "drain":
                world.roles(here.hosts[1])["hvdd"][0].kill(signal.SIGTERM)
            elif kind == "hvdd":
                self.kill_hvdd(here.hosts[1])
            else:
                self.hit(here, kind)

    def kill_hvdd(self, host):
        world.roles(host)["hvdd"][0].kill()
        self.struck += ranks_of(host)  # they end with it

    def hit(self, here, kind):
        ranks = [process for host in here.hosts for process in ranks_of(host)]
        chosen = self.random.sample(ranks, min(len(ranks), 2 if kind == "two" else 1))
        if kind != "stop":
            self.struck += chosen
        for process in chosen:
            process.kill(signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
        if kind == "stop":
            time.sleep(self.random.uniform(0, 0.3))
            for process in chosen:
                process.kill(signal.SIGCONT)


def ranks_of(host):
    return [process for process in host.processes() if process.name == elastic.TRAINING.name]


def wait_for_new_commit(job, faults):
    """Three deaths of a share without a commit in between leave it out, which is not what is tried here."""
    job.wait_until_whole(faults.hosts * faults.slots, faults.struck)
    out, said = job.running.out(), "<stdout>:commit "
    job.running.wait_for(said, count=out.count(said) + 2 * faults.hosts * faults.slots)


def run(seed, here):
    """One job; fails if its state differs anywhere, a commit is lost, it does not get on again, or something is left."""
    faults = Faults(seed)
    job = elastic.Job(here, faults.words(), faults.program())
    try:
        for number in range(faults.count):
            if number == 2:
                wait_for_new_commit(job, faults)
            # At any moment: before the first epoch, inside a recovery, long after one.
            time.sleep(faults.random.choice((0, 0.05, 0.3)) * faults.random.random())
            if job.running.process.poll() is None:
                faults.strike(here)
        job.wait_until_whole(faults.hosts * faults.slots, faults.struck)
        job.end()
    except AssertionError as error:
        job.running.process.kill()
        raise AssertionError(f"seed {seed} ({faults.hosts} hosts of {faults.slots}, min {faults.min_np}, {faults.done}): {error}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(f"/proc/{here.hosts[0].init}/root{job.until}")
    return faults.done


def run_many(first, last):
    """Runs these seeds on hosts of their own; returns how many faults there were of each kind."""
    counts = {}
    with world.hosts(2, slots=3) as here:
        for seed in range(first, last + 1):
            for kind in run(seed, here):
                counts[kind] = counts.get(kind, 0) + 1
    return counts
