# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: faults that would end one epoch after another, and ranks that are waited for in vain."""
import contextlib
import pathlib
import re
import signal

import elastic
import world
from test_elastic import hosts_of
from test_python import ENV, python

ENDLESS = elastic.PROGRAMS / "endless"


@contextlib.contextmanager
def data_cut(here, one, other):
    """The remote shell still connects the two hosts; nothing else does."""
    def rules(verb):
        for host, peer in ((one, other), (other, one)):
            here.run("iptables", verb, "INPUT", "-s", f"10.77.0.{10 + peer}", "-p", "tcp", "-m", "multiport", "!", "--ports", "22", "-j", "DROP",
                     host=host).must(0)
    rules("-I")
    try:
        yield
    finally:
        rules("-D")


@world.bound(300)
def test_hosts_without_a_way_for_data_are_named_and_one_is_left_out():
    """Each try of theirs to connect takes 30 s, so these jobs run beside one another."""
    with world.hosts(2, slots=3) as here, data_cut(here, 0, 1):
        static = here.start_hvdrun("-np", 2, "-H", hosts_of(2, 1), ENDLESS, "fused")
        too_few = elastic.Job(here, ("-np", 2, "--min-np", 2, "-H", hosts_of(2, 1)))
        goes_on = elastic.Job(here, ("-np", 2, "--min-np", 1, "-H", hosts_of(2, 1)))
        outcome = static.wait(90)
        assert outcome.code not in (0, 124) and "rank 1 on host1" in outcome.err, outcome
        outcome = too_few.running.wait(200)
        outcome.must(125, "host host1 is left out: no data passes between host0 and host1: ", "1 of at least 2 ranks are there, and no more can come",
                     "a firewall")
        assert len(re.findall(r"epoch \d+: 2 ranks", outcome.err)) == 3, outcome
        goes_on.wait_for(1, beyond=3, seconds=200)
        goes_on.end()


@world.bound(120)
def test_new_host_whose_ranks_fail_before_they_have_the_state_is_left_out():
    with world.hosts(2, slots=2) as here:
        listed = here.place("listed")
        path = here.hosts[0].root / listed.lstrip("/")
        path.write_text("host0:2\n")
        words = ("-np", 2, "--min-np", 1, "--host-discovery-script", f"cat {listed}", "--blacklist-cooldown-range", 1, 1)
        job = elastic.Job(here, words, ("--fails-on", "host1"))
        job.wait_for(2)
        path.write_text("host0:2\nhost1:1\n")
        world.wait_until(lambda: "host host1 is left out: " in job.running.err(), 60, "host1 to be left out")
        newest = max(job.epochs())
        path.unlink()
        outcome = job.end()
        assert "host host1 is left out: rank 2 on host1 exited with code 9 before it had a part in any commit (time 3 of 3)" in outcome.err, outcome
        said = r"rank 2 on host1 exited with code 9, host1 left; epoch \d+: 2 ranks on 1 host"
        assert len(re.findall(said, outcome.err)) == 3, outcome
        assert "rank 0 has left" not in outcome.err + outcome.out and "rank 1 has left" not in outcome.err + outcome.out, outcome
        assert newest <= 7, outcome


NEW_HOST = """
import os, socket, hvd
hvd.init()
if socket.gethostname() == "host1":
    raise RuntimeError("no data here")
state = hvd.elastic.ObjectState(batch=0)
@hvd.elastic.run
def train(state):
    while not os.path.exists(os.environ["UNTIL"]):
        hvd.allreduce_object(1) if hasattr(hvd, "allreduce_object") else hvd.barrier()
        state.batch += 1
        if state.batch % 20 == 0:
            state.commit()
train(state)
"""


@world.bound(200)
def test_exception_of_a_new_host_names_its_rank():
    python()
    with world.hosts(2, slots=2) as here:
        listed, until = here.place("listed"), here.place("until")
        path = here.hosts[0].root / listed.lstrip("/")
        path.write_text("host0:2\n")
        words = ("-np", 2, "--min-np", 1, "--host-discovery-script", f"cat {listed}", "--blacklist-cooldown-range", 1, 1)
        job = here.start_hvdrun(*words, python(), "-c", NEW_HOST, env=ENV | {"UNTIL": until})
        world.wait_until(lambda: "epoch 1: 2 ranks" in job.err() or job.process.poll() is not None, 60, "the first epoch")
        path.write_text("host0:2\nhost1:1\n")
        world.wait_until(lambda: "host host1 is left out: " in job.err() or job.process.poll() is not None, 90, "host1 to be left out")
        (here.hosts[0].root / until.lstrip("/")).touch()
        outcome = job.wait(40)
        path.unlink()
        (here.hosts[0].root / until.lstrip("/")).unlink()
        outcome.must(0, "rank 2 on host1 exited with code 1", "RuntimeError: no data here")
        assert "rank 0 has left" not in outcome.err and "rank 1 has left" not in outcome.err, outcome


@world.bound(120)
def test_rank_that_never_comes_holds_the_first_epoch_up_for_the_start_timeout_alone():
    with world.hosts(1, slots=2) as here:
        mark = here.place("mark")
        command = f"[ $HVD_RANK = 1 ] && [ ! -e {mark} ] && touch {mark} && kill -STOP $$; exec \"$0\" \"$@\""
        limits = ("--min-np", 1, "--start-timeout", 4, "--elastic-timeout", 12)
        until = here.place("until")
        job = elastic.Job(here, ("-np", 2, *limits), command=["bash", "-c", command, elastic.TRAINING, "--until", until])
        job.until = until
        first = job.wait_for(1)
        job.wait_for(2, beyond=first[0].epoch)
        (here.hosts[0].root / mark.lstrip("/")).unlink()
        outcome = job.end()
        assert "1 rank on localhost has not called hvd.init() within --start-timeout 4 s: the first epoch begins without" in outcome.err, outcome
        assert "has not called hvd.init() within --elastic-timeout 12 s, and is replaced" in outcome.err, outcome


@world.bound(120)
def test_lone_survivor_that_is_stopped_is_replaced_once_another_waits_to_join():
    limits = ("--stall-check-warning-time-seconds", 1, "--stall-check-shutdown-time-seconds", 3)
    with world.hosts(1, slots=2) as here:
        gate, go, until = here.place("gate"), here.place("go"), here.place("until")
        command = f"while [ -e {gate} ] && [ ! -e {go} ]; do sleep 0.1; done; exec \"$0\" \"$@\""
        job = elastic.Job(here, ("-np", 2, "--min-np", 1, *limits), command=["bash", "-c", command, elastic.TRAINING, "--until", until])
        job.until = until
        seats = job.wait_for(2)
        root = here.hosts[0].root
        (root / gate.lstrip("/")).touch()
        job.kill(seats[1])
        alone = job.wait_for(1, beyond=seats[0].epoch)
        job.kill(alone[0], signal.SIGSTOP)
        (root / go.lstrip("/")).touch()
        after = job.wait_for(2, beyond=alone[0].epoch)
        assert alone[0].place not in [seat.place for seat in after], f"{alone} became {after}"
        for name in (gate, go):
            (root / name.lstrip("/")).unlink()
        outcome = job.end()
        assert re.search(r"stalled for \d s: a rank that is to join waits for rank 0\n", outcome.err), outcome
        assert "rank 0 on localhost is held (SIGSTOP, a debugger?) and is replaced after" in outcome.err, outcome


@world.bound(120)
def test_file_of_a_rank_holds_what_was_said_with_that_rank():
    with world.hosts(2, slots=1) as here:
        directory = here.place("out")
        job = elastic.Job(here, ("-np", 2, "--min-np", 1, "-H", hosts_of(2, 1), "--output-filename", directory))
        seats = job.wait_for(2)
        job.kill(seats[0])
        after = job.wait_for(2, beyond=seats[0].epoch)
        assert after[0].place == seats[1].place, f"{seats} became {after}"
        pathlib.Path(f"/proc/{here.hosts[0].init}/root{job.until}").touch()
        job.running.wait(30).must(0)
        for rank in (0, 1):
            said = []
            for host in here.hosts:
                path = host.root / directory.lstrip("/") / f"rank.{rank:04d}" / "stdout"
                said += [elastic.Seat(words) for words in elastic.EPOCH.findall(path.read_text())] if path.exists() else []
            assert {seat.rank for seat in said} == {rank}, said
            assert {seat.epoch for seat in said} >= {seats[0].epoch, after[0].epoch}, said
        here.run("rm", "-rf", directory, job.until).must(0)
        here.run("rm", "-rf", here.own, host=1).must(0)
        here.must_be_clean(within=3)


@world.bound(120)
def test_rank_that_is_stopped_is_replaced_after_the_shutdown_time():
    limits = ("--stall-check-warning-time-seconds", 1, "--stall-check-shutdown-time-seconds", 3)
    for hosts, slots in ((1, 3), (2, 1)):
        with world.hosts(hosts, slots=slots) as here:
            job = elastic.Job(here, ("-np", hosts * slots, "--min-np", 1, "-H", hosts_of(hosts, slots), *limits))
            seats = job.wait_for(hosts * slots)
            job.kill(seats[-1], signal.SIGSTOP)
            after = job.wait_for(hosts * slots, beyond=seats[0].epoch)
            assert [seat.place for seat in after][:-1] == [seat.place for seat in seats][:-1], f"{seats} became {after}"
            assert after[-1].place != seats[-1].place, f"{seats} became {after}"
            outcome = job.end()
            rank = seats[-1]
            assert f"rank {rank.rank} on {rank.host} is held (SIGSTOP, a debugger?) and is replaced after" in outcome.err, outcome


@world.bound(120)
def test_late_survivor_is_named_after_some_seconds():
    with world.hosts(1, slots=3) as here:
        job = elastic.Job(here, ("-np", 3, "--min-np", 2, "-H", "host0:3", "--elastic-timeout", 60))
        seats = job.wait_for(3)
        stopped = job.process_of(seats[1])
        stopped.kill(signal.SIGSTOP)
        job.kill(seats[2])
        world.wait_until(lambda: "rank 1 on host0 has not come back in the " in job.running.err(), 30, "the word on who is late")
        stopped.kill(signal.SIGCONT)
        after = job.wait_for(3, beyond=seats[0].epoch)
        assert seats[1].place in [seat.place for seat in after], after
        job.end()


STAYS = "but its ranks go on: no other host has the state of the job"


@world.bound(120)
def test_ranks_of_the_only_host_go_on_though_it_is_to_go():
    with world.hosts(1, slots=2) as here:
        listed = here.place("listed")
        path = here.hosts[0].root / listed.lstrip("/")
        for text in ("", "host0:0\n", None):
            path.write_text("host0:2\n")
            job = elastic.Job(here, ("-np", 2, "--min-np", 1, "--host-discovery-script", f"cat {listed}"))
            seats = job.wait_for(2)
            if text is None:
                world.roles(here.hosts[0])["hvdd"][0].kill(signal.SIGTERM)
            else:
                path.write_text(text)
            said = f"host host0 is {'to go' if text is None else 'not in the list of hosts any more'}, {STAYS}"
            world.wait_until(lambda: said in job.running.err(), 30, "why they stay")  # noqa: B023
            assert [seat.place for seat in job.newest()] == [seat.place for seat in seats], job.newest()
            path.unlink()
            outcome = job.end()
            assert outcome.err.count(said) == 1 and "its ranks leave" not in outcome.err, outcome
