# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs under the eyes of a test: who is a member where, who dies, how long the others take to go on."""
import contextlib
import os
import pathlib
import re

import world
from world import PROGRAMS

TRAINING = PROGRAMS / "elastic"
EPOCH = re.compile(r"epoch (\d+) rank (\d+) size (\d+) pid (\d+) slot (\d+) new ([01]) commit (\d+) back ([01]) host (\S+)$", re.M)
COMMIT = re.compile(r"^\[(\d+)\]<stdout>:commit (\d+) step \d+$", re.M)
RESUMED = re.compile(r"resumed rank (\d+) epoch (\d+) after_us (\d+)$", re.M)
# Words that must never be said.
WRONG = ("LOST COMMIT", "STATE DIFFERS", "STEP LOST", "comes twice")


class Seat:
    """A member in an epoch, as it has said itself."""

    def __init__(self, words):
        self.epoch, self.rank, self.size, self.pid, self.slot, self.new, self.commit, self.back = map(int, words[:8])
        self.host = words[8]

    @property
    def place(self):
        return self.host, self.pid

    def __repr__(self):
        return f"rank {self.rank} (pid {self.pid}, slot {self.slot} of {self.host}) in epoch {self.epoch}"


def lives(process):
    """Whether this process has still to end; another with its number does not count."""
    now = world.read_process(process.pid)
    return now is not None and now.command == process.command and now.parent == process.parent


def inner_pid(process):
    """How the process calls itself, in a namespace of its own."""
    told = re.findall(r"^NSpid:(.*)$", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.M)
    return int(told[0].split()[-1])


class Job:
    """An elastic job of the training program on simulated hosts; ends when it is told to."""

    def __init__(self, here, hvdrun_words, training_words=(), command=None, start=None, **how):
        self.here = here
        self.until = here.place("until")
        program = command or [TRAINING, "--until", self.until, *training_words]
        self.running = (start or here.start_hvdrun)(*hvdrun_words, *program, **how)

    def epochs(self):
        """By number: the seats of those who have said that they are in it."""
        seats = {}
        for words in EPOCH.findall(self.running.out()):
            seat = Seat(words)
            seats.setdefault(seat.epoch, []).append(seat)
        return seats

    def newest(self):
        """The newest epoch that all its members have resumed in, as a list of seats by rank; None before the first."""
        out = self.running.out()
        resumed = {}
        for rank, epoch, _ in RESUMED.findall(out):
            resumed.setdefault(int(epoch), set()).add(int(rank))
        for number, seats in sorted(self.epochs().items(), reverse=True):
            if len(resumed.get(number, ())) == seats[0].size == len(seats):
                return sorted(seats, key=lambda seat: seat.rank)
        return None

    def wait_for(self, size, beyond=0, seconds=30):
        """Until an epoch beyond that number, of that size, gets on, and none after it has been said; returns its seats."""
        def there():
            assert self.running.process.poll() is None, f"the job has ended: {self.running.wait()}"
            seats = self.newest()
            return seats if seats and seats[0].size == size and seats[0].epoch > beyond else None
        try:
            return world.wait_until(there, seconds, f"an epoch of {size} ranks beyond {beyond}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- stdout\n{self.running.out()[-6000:]}\n--- stderr\n{self.running.err()[-6000:]}") from None

    def wait_for_commit(self, seats, seconds=30):
        """Until each of the epoch's ranks has had a part in a commit of it; they say so by --show-commits."""
        def there():
            assert self.running.process.poll() is None, f"the job has ended: {self.running.wait()}"
            newest = {int(rank): int(number) for rank, number in COMMIT.findall(self.running.out())}
            return all(newest.get(seat.rank, 0) > seat.commit for seat in seats)
        world.wait_until(there, seconds, f"a commit of {seats}")

    def wait_until_whole(self, size, struck, seconds=30):
        """Until none of the struck processes lives and the newest epoch has that size and living processes: no fault has still to be seen."""
        def whole():
            assert self.running.process.poll() is None, f"the job has ended: {self.running.wait()}"
            seats = self.newest()
            return (not any(map(lives, struck)) and seats and seats[0].size == size and all(map(self.find_process, seats)))
        try:
            world.wait_until(whole, seconds, f"a whole epoch of {size} ranks")
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- stdout\n{self.running.out()[-6000:]}\n--- stderr\n{self.running.err()[-6000:]}") from None

    def find_process(self, seat):
        """The process of a seat, as this machine sees it; None if there is none."""
        host = next(host for host in self.here.hosts if f"host{host.index}" == seat.host)
        with contextlib.suppress(OSError):  # one that ends while it is looked at
            for process in host.processes():
                if process.name == TRAINING.name and inner_pid(process) == seat.pid:
                    return process
        return None

    def process_of(self, seat):
        """The process of a seat that must have one."""
        process = self.find_process(seat)
        assert process, f"no process of {seat}"
        return process

    def kill(self, seat, number=9):
        self.process_of(seat).kill(number)

    def pauses_us(self, epoch):
        """How long those who had been in the epoch before took to their first result in this one."""
        return [int(took) for _, number, took in RESUMED.findall(self.running.out()) if int(number) == epoch and int(took) > 0]

    def end(self, code=0, seconds=30):
        """Lets the training end; checks that nothing was lost and nothing is left."""
        pathlib.Path(f"/proc/{self.here.hosts[0].init}/root{self.until}").touch()
        outcome = self.running.wait(seconds)
        os.unlink(f"/proc/{self.here.hosts[0].init}/root{self.until}")
        return self.check(outcome, code)

    def check(self, outcome, code):
        for wrong in WRONG:
            assert wrong not in outcome.out + outcome.err, outcome
        outcome.must(code)
        self.here.must_be_clean(within=3)
        return outcome
