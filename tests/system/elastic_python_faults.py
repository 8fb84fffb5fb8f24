# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs of Python programs with one fault each, drawn from a seed; see scripts/elastic-faults."""
import random
import re
import time

import world
from test_python import ENV, TESTS, python

PROGRAM = TESTS / "programs" / "elastic_fault.py"
SHAPES = ((1, 2), (1, 3), (2, 1), (2, 2))  # hosts, slots
CODES = {"raise": 1, "exit-3": 3, "exit-0": 1, "_exit-3": 3, "_exit-0": 1, "segv": 139, "kill": 137}
ENDS = {"raise": "exited with code 1", "exit-3": "exited with code 3", "exit-0": "exited (code 0)", "_exit-3": "exited with code 3",
        "_exit-0": "exited (code 0)", "segv": "was killed by signal 11", "kill": "was killed by signal 9"}
WHERES = ("import", "begin", "train", "saves", "saved", "syncs", "synced", "done")
STEPS, EVERY = 24, 4
RESULT = f"result {STEPS} {STEPS * (STEPS + 1) // 2}"


class Fault:
    """One of a job: where, of which kind, how often."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.hosts, self.slots = chance.choice(SHAPES)
        self.kind = chance.choice(tuple(CODES))
        self.where = chance.choice((*WHERES, "train", "train", "saves", "saved"))
        self.rank = chance.randrange(self.size)
        step = chance.randrange(STEPS)
        # The first commit is a sync's; those of the program come every EVERY steps.
        self.at = {"train": step, "saves": step // EVERY * EVERY, "saved": step // EVERY * EVERY, "done": STEPS}.get(self.where, 0)
        self.again = chance.random() < 0.5
        # The others suffice: the job goes on without the slot that fails each time.
        self.spare = self.again and self.hosts == 1 and self.slots > 2 and self.where != "import" and chance.random() < 0.5
        self.anew = chance.random() < 0.25

    @property
    def ends_well(self):
        """It is none: the rank has done its work, and only does not say so."""
        return self.where == "done" and self.kind in ("exit-0", "_exit-0")

    @property
    def size(self):
        return self.hosts * self.slots

    def words(self):
        hosts = ",".join(f"host{index}:{self.slots}" for index in range(self.hosts))
        return ("-np", self.size, "--min-np", self.size - self.spare, "-H", hosts, "--blacklist-cooldown-range", 1, 1)

    def program(self, once):
        who = ["--slot", self.rank] if self.spare else ["--rank", self.rank]
        if self.where == "import":  # nobody has a rank of the job yet
            who = ["--rank", self.rank % self.slots, "--host", f"host{self.rank // self.slots}"]
        words = ["--steps", STEPS, "--every", EVERY, "--kind", self.kind, "--where", self.where, "--at", self.at, *who]
        return (*words, *(() if self.again else ("--once", once)), *(("--anew",) if self.anew else ()))

    def __repr__(self):
        often = "each time" if self.again else "once"
        return (f"{self.kind} in {self.where} at {self.at} by rank {self.rank} {often}, {self.hosts} hosts of {self.slots}"
                f"{', one to spare' if self.spare else ''}{', commits anew' if self.anew else ''}")


def check(fault, outcome):
    """Checks that the job came to what it must."""
    assert "Fatal Python error" not in outcome.err or fault.kind == "segv", outcome
    if fault.again and not fault.spare and not fault.ends_well:
        outcome.must(CODES[fault.kind])
        begins = "the program fails by itself: " if fault.kind != "kill" else ".* others did in its place, "
        assert len(re.findall(f"^hvdrun: {begins}", outcome.err, re.M)) == 1 and outcome.err.count("\n  exit code ") == 1, outcome
        verdict = outcome.err[outcome.err.rindex("\nhvdrun: ") if "\nhvdrun: " in outcome.err else 0:]
        assert re.search(rf"rank .*{re.escape(ENDS[fault.kind])}", verdict), outcome
        assert fault.kind != "raise" or verdict.count("ValueError: a fault of the program's own") == 1, outcome
        assert " member " not in outcome.err, outcome
        return
    outcome.must(0)
    results = re.findall(r"result .*$", outcome.out, re.M)
    assert results and set(results) == {RESULT}, outcome
    assert len(results) >= fault.size - (fault.spare or fault.ends_well), outcome


def leftovers(here):
    """Processes and files; control groups are the machine's, and those of other tests come and go."""
    return [one for host in here.hosts for one in host.left() if not one.startswith("/sys/fs/cgroup/")]


def run(seed, here):
    """One job; returns its fault."""
    fault = Fault(seed)
    once = f"/tmp/once-{seed}"
    try:
        outcome = here.hvdrun(*fault.words(), python(), PROGRAM, *fault.program(once), env=ENV, seconds=world.patient(90))
        for host in here.hosts:
            (host.root / once.lstrip("/")).unlink(missing_ok=True)
        check(fault, outcome)
        world.wait_until(lambda: not leftovers(here), 5, "nothing to be left")
    except AssertionError as error:
        raise AssertionError(f"seed {seed} ({fault}): {error}") from None
    return fault


def run_many(first, last, tell=None):
    """Runs these seeds on hosts of their own; returns what was done, counted, and the failures."""
    counts, failures = {}, []
    with world.hosts(2, slots=3) as here:
        for seed in range(first, last + 1):
            began = time.monotonic()
            try:
                fault = run(seed, here)
                for name in (fault.kind, fault.where, "again" if fault.again else "once"):
                    counts[name] = counts.get(name, 0) + 1
            except AssertionError as error:
                failures.append(str(error))
            if tell:
                tell(seed, Fault(seed), time.monotonic() - began, len(failures))
    return counts, failures
