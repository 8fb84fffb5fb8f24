# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: survivors live on, nothing committed is lost, hosts come and go."""
import json
import os
import re
import signal
import statistics
import time

import elastic
import elastic_faults
import world

ROUNDS = min(world.ROUNDS, 5)


def hosts_of(count, slots):
    return ",".join(f"host{index}:{slots}" for index in range(count))


def same_but(before, after, lost):
    """Survivors keep process, slot and order; exactly the slots of the lost have new processes."""
    gone = {seat.place for seat in lost}
    kept = [seat.place for seat in before if seat.place not in gone]
    assert [seat.place for seat in after if seat.place in kept] == kept, f"{before} became {after}"
    new = sorted((seat.host, seat.slot) for seat in after if seat.place not in kept)
    assert new == sorted((seat.host, seat.slot) for seat in lost), f"{lost} became {after}"


def kill_again_and_again(victim, hosts, slots, rounds=ROUNDS, megabytes=100, words=()):
    """Kills victim(seats) so many times in one job; returns how long the survivors took from result to result, in ms."""
    np = hosts * slots
    took = []
    with world.hosts(hosts, slots=slots) as here:
        job = elastic.Job(here, ("-np", np, "--min-np", 1, "-H", hosts_of(hosts, slots)), ("--mb", megabytes, *words))
        seats = job.wait_for(np)
        for _ in range(rounds):
            dead = victim(seats)
            job.kill(dead)
            after = job.wait_for(np, beyond=seats[0].epoch)
            same_but(seats, after, [dead])
            took += [max(job.pauses_us(epoch)) / 1000 for epoch in range(seats[0].epoch + 1, after[0].epoch + 1) if job.pauses_us(epoch)][:1]
            seats = after
        job.end()
    print(json.dumps({"hosts": hosts, "slots": slots, "rounds": len(took), "median_ms": statistics.median(took), "most_ms": max(took)}))
    return took


VICTIMS = {"rank_0": lambda seats: seats[0], "last": lambda seats: seats[-1],
           "leader": lambda seats: [seat for seat in seats if seat.host == seats[-1].host][0]}


@world.bound(240)
def test_rank_0_dies_on_one_host():
    kill_again_and_again(VICTIMS["rank_0"], 1, 2)


@world.bound(240)
def test_last_rank_dies_on_one_host():
    kill_again_and_again(VICTIMS["last"], 1, 3)


@world.bound(240)
def test_rank_0_dies_on_two_hosts():
    kill_again_and_again(VICTIMS["rank_0"], 2, 2)


@world.bound(240)
def test_leader_of_another_host_dies():
    kill_again_and_again(VICTIMS["leader"], 2, 2)


@world.bound(240)
def test_rank_dies_whose_child_holds_its_output():
    kill_again_and_again(VICTIMS["last"], 1, 2, words=("--child",))
    kill_again_and_again(VICTIMS["last"], 2, 2, words=("--child",))


@world.bound(120)
def test_survivors_wait_for_the_replacement_below_min_np():
    with world.hosts(1, slots=2) as here:
        job = elastic.Job(here, ("-np", 2, "--min-np", 2, "-H", "host0:2"))
        seats = job.wait_for(2)
        job.kill(seats[0])
        after = job.wait_for(2, beyond=seats[0].epoch)
        same_but(seats, after, seats[:1])
        assert after[0].epoch == seats[0].epoch + 1, after
        assert {seat.rank for seat in after if seat.new} == {1}, f"rank 0 is to be one that has the state: {after}"
        job.end()


@world.bound(120)
def test_two_die_at_once_and_all_of_one_host():
    with world.hosts(2, slots=2) as here:
        job = elastic.Job(here, ("-np", 4, "--min-np", 1, "-H", hosts_of(2, 2)))
        seats = job.wait_for(4)
        for dead in ([seats[0], seats[3]], [seats[2], seats[3]], [seats[0], seats[1], seats[2]]):
            dead = [next(seat for seat in seats if seat.rank == each.rank) for each in dead]
            victims = [job.process_of(seat) for seat in dead]
            for process in victims:
                process.kill()
            after = job.wait_for(4, beyond=seats[0].epoch)
            same_but(seats, after, dead)
            seats = after
        job.end()


@world.bound(120)
def test_all_ranks_die_and_the_hosts_still_have_the_commit():
    with world.hosts(1, slots=2) as here:
        job = elastic.Job(here, ("-np", 2, "--min-np", 2, "-H", "host0:2"), ("--show-commits",))
        seats = job.wait_for(2)
        job.running.wait_for("commit ", 6)
        for process in [job.process_of(seat) for seat in seats]:
            process.kill()
        returned = max(map(int, re.findall(r"commit (\d+) step", job.running.out(), re.M)))
        after = job.wait_for(2, beyond=seats[0].epoch)
        assert all(seat.new and seat.commit >= returned for seat in after), f"{after} after commit {returned}"
        job.end()


@world.bound(180)
def test_slots_2_4_1_by_discovery_without_a_step_lost():
    with world.hosts(2, slots=4) as here:
        listed = here.place("listed")
        host0 = here.hosts[0].root
        def lists(text):
            path = host0 / listed.lstrip("/")
            path.with_name("next").write_text(text)
            path.with_name("next").rename(path)
        lists("host0:2\n")
        job = elastic.Job(here, ("-np", 2, "--min-np", 1, "--max-np", 4, "--host-discovery-script", f"cat {listed}"), ("--mb", 8))
        two = job.wait_for(2)
        lists("host0:2\nhost1:2\n")
        four = job.wait_for(4, beyond=two[0].epoch)
        assert [seat.place for seat in four][:2] == [seat.place for seat in two], f"{two} became {four}"
        assert not any(seat.back for seat in four), four
        lists("host0:1\n")
        one = job.wait_for(1, beyond=four[0].epoch)
        assert one[0].place == two[0].place and not one[0].back, f"{four} became {one}"
        job.running.wait_for("removed pid", 3)  # those who have left may still be on their way out when the others go on
        os.unlink(host0 / listed.lstrip("/"))
        outcome = job.end()
        assert "no step lost" in outcome.err, outcome


@world.bound(120)
def test_term_to_hvdd_drains_its_host():
    with world.hosts(2, slots=2) as here:
        job = elastic.Job(here, ("-np", 4, "--min-np", 2, "-H", hosts_of(2, 2)), ("--mb", 8))
        four = job.wait_for(4)
        world.roles(here.hosts[1])["hvdd"][0].kill(signal.SIGTERM)
        two = job.wait_for(2, beyond=four[0].epoch)
        assert [seat.place for seat in two] == [seat.place for seat in four][:2] and not any(seat.back for seat in two), two
        world.wait_until(lambda: not here.hosts[1].processes(), 15, "host1 to be left")
        job.end()


@world.bound(180)
def test_host_is_cut_off_silently():
    lease, took = 3, []
    for _ in range(max(1, ROUNDS // 4)):
        with world.hosts(2, slots=2) as here:
            job = elastic.Job(here, ("-np", 4, "--min-np", 2, "-H", hosts_of(2, 2), "--lease", lease), ("--mb", 8))
            four = job.wait_for(4)
            here.sim_hosts("kill", 1, "--silent")
            two = job.wait_for(2, beyond=four[0].epoch)
            took += [max(job.pauses_us(two[0].epoch)) / 1e6]
            outcome = job.end()
            assert "host1 lost" in outcome.err or "lost host host1" in outcome.err, outcome
    assert max(took) < world.patient(lease + 3), took
    print(json.dumps({"rounds": len(took), "median_s": statistics.median(took), "most_s": max(took)}))


@world.bound(120)
def test_hvdd_is_killed_and_its_host_comes_back():
    with world.hosts(2, slots=2) as here:
        job = elastic.Job(here, ("-np", 4, "--min-np", 2, "-H", hosts_of(2, 2), "--blacklist-cooldown-range", 1, 2), ("--mb", 8))
        four = job.wait_for(4)
        world.roles(here.hosts[1])["hvdd"][0].kill()
        two = job.wait_for(2, beyond=four[0].epoch)
        assert [seat.place for seat in two] == [seat.place for seat in four][:2], two
        again = job.wait_for(4, beyond=two[0].epoch)
        assert [seat.place for seat in again][:2] == [seat.place for seat in two], again
        job.end()


@world.bound(120)
def test_programs_own_fault_ends_the_job_and_blames_no_host():
    with world.hosts(2, slots=1) as here:
        job = elastic.Job(here, ("-np", 2, "--min-np", 1, "-H", hosts_of(2, 1)), ("--raise-at", 12))
        outcome = job.check(job.running.wait(60), 7)
        assert "a fault of the program's own at step 12" in outcome.err, outcome


@world.bound(120)
def test_killed_ranks_of_which_the_shims_say_nothing_are_no_fault_of_the_programs():
    with world.hosts(2, slots=1) as here:
        job = elastic.Job(here, ("-np", 2, "--min-np", 1, "-H", hosts_of(2, 1)), ("--show-commits",))
        seats = job.wait_for(2)
        for _ in range(3):
            job.wait_for_commit(seats)
            shims = [world.roles(host)["shim"][0] for host in here.hosts]
            victims = [job.process_of(seat) for seat in seats]
            for process in shims:
                process.kill(signal.SIGSTOP)
            for process in victims:
                process.kill()
            world.wait_until(lambda: not any(map(elastic.lives, victims)), 10, "the deaths")
            time.sleep(0.5)  # longer than hvdd waits for the shim's word
            for process in shims:
                assert elastic.lives(process), f"{process} has ended: {job.running.out()[-3000:]}{job.running.err()[-3000:]}"
                process.kill(signal.SIGCONT)
            seats = job.wait_for(2, beyond=seats[0].epoch)
        job.end()


@world.bound(120)
def test_fault_of_one_share_is_survived_by_the_others():
    with world.hosts(1, slots=3) as here:
        job = elastic.Job(here, ("-np", 3, "--min-np", 2, "-H", "host0:3"), ("--raise-at", 12, "--raise-slot", 2))
        # Its replacements fail at the same step as long as nothing is committed beyond it; then they find it done.
        job.wait_for(3, beyond=1)
        job.end()


NEVER = ("--commit-every", 1000000)


def kill_a_share(job, times):
    """Ranks of the last share, one after the other, with no commit in between."""
    newest = 0
    for _ in range(times):
        seats = job.wait_for(3, beyond=newest)
        newest = seats[0].epoch
        job.kill(next(seat for seat in seats if seat.slot == 2))
    return newest


@world.bound(120)
def test_share_whose_ranks_die_again_and_again_is_left_out():
    with world.hosts(1, slots=3) as here:
        job = elastic.Job(here, ("-np", 3, "--min-np", 2, "-H", "host0:3", "--membership-change", "now"), NEVER)
        two = job.wait_for(2, beyond=kill_a_share(job, 3))
        assert {seat.slot for seat in two} == {0, 1}, two
        assert "host host0: share 2 is left out: 3 ranks have died there" in job.end().err


@world.bound(120)
def test_job_that_needs_a_share_which_is_left_out_ends_at_once():
    with world.hosts(1, slots=3) as here:
        job = elastic.Job(here, ("-np", 3, "--min-np", 3, "-H", "host0:3"), NEVER)
        kill_a_share(job, 3)
        outcome = job.check(job.running.wait(30), 137)
        assert "2 of at least 3 ranks are there, and no more can come: shares are left out" in outcome.err, outcome
        assert "was killed by signal 9 (Killed), as 2 others did in its place" in outcome.err, outcome


@world.bound(120)
def test_too_few_ranks_for_too_long_ends_the_job():
    with world.hosts(2, slots=1) as here:
        job = elastic.Job(here, ("-np", 2, "--min-np", 2, "-H", hosts_of(2, 1), "--elastic-timeout", 2, "--blacklist-cooldown-range", 100, 200))
        job.wait_for(2)
        world.roles(here.hosts[1])["hvdd"][0].kill()
        outcome = job.check(job.running.wait(60), 125)
        assert "host1" in outcome.err and "--elastic-timeout" in outcome.err, outcome


@world.bound(120)
def test_reset_limit_says_the_history():
    with world.hosts(1, slots=2) as here:
        job = elastic.Job(here, ("-np", 2, "--min-np", 2, "-H", "host0:2", "--reset-limit", 1))
        seats = job.wait_for(2)
        job.kill(seats[0])
        after = job.wait_for(2, beyond=seats[0].epoch)
        job.kill(after[0])
        outcome = job.check(job.running.wait(60), 125)
        assert "--reset-limit 1" in outcome.err and "signal 9" in outcome.err, outcome


@world.bound(120)
def test_survivor_that_does_not_come_is_named_and_replaced():
    with world.hosts(1, slots=3) as here:
        job = elastic.Job(here, ("-np", 3, "--min-np", 2, "-H", "host0:3", "--elastic-timeout", 2))
        seats = job.wait_for(3)
        job.kill(seats[1], signal.SIGSTOP)
        job.kill(seats[2])
        after = job.wait_for(3, beyond=seats[0].epoch)
        assert after[0].place == seats[0].place and {seat.pid for seat in after} & {seats[1].pid, seats[2].pid} == set(), after
        outcome = job.end()
        assert "rank 1 on host0 is ended" in outcome.err, outcome


@world.bound(120)
def test_survivor_in_a_long_step_is_waited_for():
    with world.hosts(1, slots=2) as here:
        busy = here.place("busy")
        inside = here.hosts[0].root / busy.lstrip("/")
        job = elastic.Job(here, ("-np", 2, "--min-np", 1, "-H", "host0:2"), ("--forward-while", busy))
        seats = job.wait_for(2)
        inside.touch()
        world.await_still(job.process_of(seats[1]))
        job.kill(seats[1])
        world.wait_until(lambda: len(world.roles(here.hosts[0])["elastic"]) == 2, 20, "the replacement")
        assert list(job.epochs()) == [seats[0].epoch], job.running.out()
        inside.unlink()
        after = job.wait_for(2, beyond=seats[0].epoch)
        same_but(seats, after, seats[1:])
        job.end()


@world.bound(120)
def test_hvdrun_dies_and_nothing_is_left():
    for role in ("console", "driver", "spawner"):
        with world.hosts(2, slots=2) as here:
            job = elastic.Job(here, ("-np", 4, "--min-np", 1, "-H", hosts_of(2, 2)))
            job.wait_for(4)
            world.roles(here.hosts[0])[role][0].kill()
            outcome = job.running.wait(30)
            assert outcome.code != 0, outcome
            here.must_be_clean(within=3)


@world.bound(120)
def test_train_digits_elastic_survives():
    with world.hosts(1, slots=2) as here:
        program = (world.BIN / "train_digits", "--elastic", "--epochs", 100000)  # it goes on until it is interrupted
        job = here.start_hvdrun("-np", 2, "--min-np", 1, "-H", "host0:2", *program)
        job.wait_for("accuracy", 1)
        ranks = world.wait_until(lambda: world.roles(here.hosts[0]).get("train_digits") or job.process.poll() is not None, 20, "the ranks")
        assert job.process.poll() is None, job.wait()
        ranks[-1].kill()
        world.wait_until(lambda: "epoch 3: 2 ranks" in job.err(), 30, "the replacement")
        said = job.out().count("accuracy")
        job.wait_for("accuracy", said + 1)
        world.console_of(here).kill(signal.SIGINT)
        job.wait(30).must(130, "epoch 2: 1 rank on 1 host")
        here.must_be_clean(within=3)


@world.bound(300)
def test_faults_at_random_moments():
    print(json.dumps(elastic_faults.run_many(1, 12)))
