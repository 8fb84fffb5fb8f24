# SPDX-License-Identifier: Apache-2.0
"""Jobs over several simulated hosts, reached by ssh."""
import json
import signal
import time

import world
from world import BIN, PROGRAMS

VICTIM = PROGRAMS / "victim"


@world.bound(180)
def test_all_ops_are_right_over_two_hosts_of_four():
    with world.hosts(3, slots=4) as here:
        outcome = here.hvdrun("-np", 8, "-H", "host1:4,host2:4", PROGRAMS / "all_ops", seconds=170).must(0)
        assert outcome.out.count("all ops right") == 8, outcome
        here.must_be_clean()


@world.bound(120)
def test_all_ops_are_right_over_uneven_hosts():
    with world.hosts(3, slots=2) as here:
        outcome = here.hvdrun("-np", 4, "-H", "host0:1,host1:2,host2:1", PROGRAMS / "all_ops", seconds=110).must(0)
        assert outcome.out.count("all ops right") == 4, outcome
        here.must_be_clean()


def test_the_programs_signals_come_to_its_own_threads():
    with world.hosts(2) as here:
        for hosts in ("host0:2", "host0:1,host1:1"):
            outcome = here.hvdrun("-np", 2, "-H", hosts, PROGRAMS / "signals").must(0)
            assert outcome.out.count("signals taken") == 2, outcome
        here.must_be_clean()


def test_a_network_interface_that_no_host_has():
    with world.hosts(2) as here:
        outcome = here.hvdrun("-np", 2, "-H", "host0:1,host1:1", "--network-interfaces", "nope0", PROGRAMS / "all_ops").must(1)
        assert "network devices nope0 (--network-interfaces" in outcome.err and "it has lo, eth0" in outcome.err, outcome
        here.must_be_clean()


def test_two_by_two_trains_to_the_same_loss():
    def losses(outcome):
        return json.loads(outcome.must(0).out.strip().splitlines()[-1].partition("<stdout>:")[2])["losses"]

    with world.hosts(2, slots=2) as here:
        train = (BIN / "train_digits", "--json")
        alone = losses(here.hvdrun("-np", 1, *train))
        four = losses(here.hvdrun("-np", 4, "--hostfile", here.hostfile, *train))
        assert max(abs(a - b) for a, b in zip(alone, four)) <= 1e-3, (alone, four)
        here.must_be_clean()


def test_exit_code_and_culprit_from_another_host():
    with world.hosts(2, slots=2) as here:
        here.hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, "exit", 7, 3).must(7, "rank 3", "host1")
        here.must_be_clean()


def test_missing_command_on_another_host():
    with world.hosts(2, slots=1) as here:
        here.hvdrun("-np", 1, "-H", "host1:1", "/no/such/program").must(127, "/no/such/program")
        here.must_be_clean()


def test_a_host_that_is_off():
    with world.hosts(2, slots=1) as here:
        here.sim_hosts("kill", 1)
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, BIN / "hello").must(125, "host1")
        assert "refused" in outcome.err.lower(), outcome
        here.must_be_clean()


def test_a_host_that_nobody_knows():
    with world.hosts(2, slots=1) as here:
        here.hvdrun("-np", 2, "-H", "host0:1,hostess:1", BIN / "hello").must(125, "hostess")
        here.must_be_clean()


def test_a_wrong_host_key():
    with world.hosts(2, slots=1) as here:
        known = here.directory / "host0" / "ssh" / "ssh_known_hosts"
        lines = known.read_text().splitlines()
        other = next(line for line in lines if line.startswith("host0,")).partition(" ")[2]
        known.write_text("\n".join(line.partition(" ")[0] + " " + other if line.startswith("host1,") else line for line in lines) + "\n")
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, BIN / "hello").must(125, "host1")
        assert "host key" in outcome.err.lower(), outcome
        here.must_be_clean()


def test_noise_before_the_hello_is_skipped():
    with world.hosts(2, slots=1) as here:
        noisy = here.directory / "host1" / "home" / ".bashrc"
        noisy.write_text("echo welcome to the machine; echo of noise >&2\n")
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, BIN / "hello").must(0)
        assert "rank 1 of 2" in outcome.out and "welcome" not in outcome.out, outcome
        noisy.unlink()
        here.must_be_clean()


def test_a_given_remote_shell():
    with world.hosts(2, slots=1) as here:
        agent = here.directory / "agent"
        agent.write_text("#!/bin/sh\nhost=$1; shift\nexec ssh -o BatchMode=yes $host \"$*\"\n")
        agent.chmod(0o755)
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, "--rsh-agent", agent, BIN / "hello").must(0)
        assert "rank 1 of 2" in outcome.out, outcome
        here.must_be_clean()


def test_one_host_by_two_names():
    """This machine's names are merged; another's are known when it answers, and refused."""
    with world.hosts(2, slots=2) as here:
        show = ("sh", "-c", "echo $HVD_RANK of $HVD_SIZE: $HVD_LOCAL_RANK of $HVD_LOCAL_SIZE")
        own = here.run("sh", "-c", "hostname -I || true").out.split()
        for names in ("localhost:1,127.0.0.1:1", "host0:1,localhost:1", *(f"localhost:1,{address}:1" for address in own if ":" not in address)):
            outcome = here.hvdrun("-H", names, *show).must(0)
            assert sorted(outcome.out.splitlines()) == ["[0]<stdout>:0 of 2: 0 of 2", "[1]<stdout>:1 of 2: 1 of 2"], (names, outcome)
        address = here.run("getent", "hosts", "host1").must(0).out.split()[0]
        outcome = here.hvdrun("-H", f"host1:1,{address}:1", *show).must(125, "it is the same host as", "name it once, with the slots of both: ")
        assert "host1" in outcome.err and address in outcome.err, outcome
        outcome = here.hvdrun("-H", "host1:1,host0:1", *show).must(0)
        here.must_be_clean()


def test_hung_logins_end_with_the_launch():
    with world.hosts(1) as here:
        agent = here.directory / "agent"
        agent.write_text("#!/bin/sh\n[ $1 != refused ] || exit 1\nsleep 1000\n")
        agent.chmod(0o755)
        slow = ("--rsh-agent", agent, "--grace", 20, "true")
        here.hvdrun("-H", "far1,refused,far2", *slow).must(125, "cannot start on host refused")
        here.must_be_clean()
        job = here.start_hvdrun("-H", "far1,far2", *slow)
        world.wait_until(lambda: len(world.roles(here.hosts[0]).get("sleep", [])) == 2, 10, "the logins")
        world.roles(here.hosts[0])["console"][0].kill(signal.SIGINT)
        job.wait(5).must(130)
        here.must_be_clean()


def test_many_hosts_need_few_allowed_files():
    with world.hosts(1) as here:
        agent = here.directory / "agent"
        agent.write_text("#!/bin/sh\nexec unshare --uts sh -c \"$2\"\n")  # so that they are many
        agent.chmod(0o755)

        def hvdrun(limit):
            return here.run("sh", "-c", f"ulimit {limit}; exec \"$@\"", "sh", world.HVDRUN, "-H", "h[1-24]", "--rsh-agent", agent, "sh", "-c",
                            "ulimit -n")

        outcome = hvdrun("-Sn 50").must(0)
        assert outcome.out.count("<stdout>:50\n") == 24, outcome  # the person's own limit
        hvdrun("-n 50").must(125, "a job of 24 hosts needs", "raise the hard limit (ulimit -Hn)")
        here.must_be_clean()


def test_a_rank_that_leaves_its_process_sets_while_their_members_wait_elsewhere():
    with world.hosts(2) as here:
        outcome = here.hvdrun("-np", 3, "-H", "host0:2,host1:1", VICTIM, "leave-sets", seconds=20)
        assert "was told: rank 0 has left the job" in outcome.err, outcome  # by one: the other may be stopped before it says so
        here.must_be_clean()


def test_a_rank_that_throws_is_the_culprit_of_victims_on_all_hosts():
    with world.hosts(2) as here:
        here.hvdrun("-np", 3, "-H", "host0:2,host1:1", VICTIM, "throw", 3, 1).must(3, "hvdrun: rank 1 on host0", "| out of cheese")
        here.must_be_clean()


def test_a_rank_that_leaves_while_others_are_inside_a_sum():
    with world.hosts(2, slots=2) as here:
        for _ in range(3):
            outcome = here.hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, "shutdown-in-join", seconds=10).must(0)
            assert outcome.out.count("rank 0 has called shutdown before its join has returned") == 4, outcome
        here.must_be_clean()


def test_a_host_dies_under_the_job():
    with world.hosts(2, slots=2) as here:
        job = here.start_hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, "loop").wait_for("joined", 4)
        here.sim_hosts("kill", 1)
        job.wait(10).must(125, "host1")
        here.must_be_clean()


@world.alone
def test_a_cable_is_cut_under_the_job():
    with world.hosts(2, slots=2) as here:
        job = here.start_hvdrun("-np", 4, "--lease", "2s", "--hostfile", here.hostfile, VICTIM, "loop").wait_for("joined", 4)
        here.sim_hosts("kill", 1, "--silent")
        began = time.monotonic()
        job.wait(15).must(125, "host1")
        took = time.monotonic() - began
        assert took < 2 + world.patient(0.5 + 3), f"given up after {took:.1f} s with a lease of 2 s"
        here.must_be_clean()


@world.bound(120)
def test_a_flood_over_a_thin_link_costs_no_lease():
    with world.hosts(2, slots=1, rate="1mbit") as here:
        lines = 20000  # 1.3 MB: ten seconds of this link
        outcome = here.hvdrun("-np", 1, "-H", "host1:1", "--lease", "1500ms", VICTIM, "flood", lines, seconds=100).must(0)
        assert outcome.out.count("[0]<stdout>:line ") == lines, outcome.err
        here.must_be_clean()


def test_two_jobs_at_once():
    with world.hosts(2, slots=2) as here:
        jobs = [here.start_hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, "steps", 10, 20) for _ in range(2)]
        for job in jobs:
            assert job.wait(20).must(0).out.count("stepped") == 4
        here.must_be_clean()


@world.bound(60)
def test_a_host_that_comes_later_is_waited_for():
    """Its name is known only some time after hvdrun has begun: as pods are that an operator starts."""
    with world.hosts(2) as here:
        job = here.start_hvdrun("-H", "host0:1,late:1", "--start-timeout", 60, BIN / "hello")
        words = "host late: unknown host name; it may only be starting, and is tried until --start-timeout 60 s is over"
        world.wait_until(lambda: words in job.err(), 20, "the word of what is waited for")
        known = (here.directory / "known_hosts").read_text()
        key = next(line.split(" ", 1)[1] for line in known.splitlines() if line.startswith("host1,"))
        with open(here.directory / "host0" / "ssh" / "ssh_known_hosts", "a") as keys:
            keys.write(f"late {key}\n")
        with open(here.directory / "hosts", "a") as names:
            names.write("10.77.0.11 late\n")
        job.wait(60).must(0)
        here.must_be_clean()


@world.bound(60)
def test_a_host_that_never_comes_is_told_with_its_reason():
    with world.hosts(1) as here:
        outcome = here.hvdrun("-H", "host0:1,nowhere:1", "--start-timeout", 2, BIN / "hello")
        outcome.must(125, "nowhere", "unknown host name, for --start-timeout 2 s", "/etc/hosts, DNS")
        typo = here.hvdrun("-H", "host0:1,nowhere:1", BIN / "hello").must(125, "nowhere", "unknown host name")
        assert "it may only be starting" not in typo.err, typo
        here.must_be_clean()
