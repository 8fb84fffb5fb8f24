# SPDX-License-Identifier: Apache-2.0
"""Promises that must hold whatever carries tensors between hosts: the same programs over our own TCP and over UCX; and strangers."""
import world
from world import BIN, PROGRAMS

VICTIM = PROGRAMS / "victim"
TRANSPORTS = ("tcp", "ucx")


def on_each(hosts, check, slots=2):
    """check(here, environment) on fresh hosts for each transport."""
    for transport in TRANSPORTS:
        with world.hosts(hosts, slots=slots) as here:
            try:
                check(here, {"HVD_TRANSPORT": transport})
                here.must_be_clean()
            except AssertionError as wrong:
                raise AssertionError(f"over {transport}: {wrong}") from wrong


@world.bound(240)
def test_all_ops_are_right():
    def check(here, env):
        outcome = here.hvdrun("-np", 4, "--hostfile", here.hostfile, PROGRAMS / "all_ops", env=env, seconds=110).must(0)
        assert outcome.out.count("all ops right") == 4, outcome
    on_each(2, check)


@world.bound(240)
def test_random_operations():
    def check(here, env):
        for np, hosts, seeds in ((2, "host0:1,host1:1", (11, 13)), (5, "host0:2,host1:3", (14, 15))):
            outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "differential", *seeds, env=env, seconds=55).must(0)
            assert outcome.out.count("all as planned") == np, outcome
    on_each(2, check, slots=3)


def test_epochs_follow_one_another():
    def check(here, env):
        outcome = here.hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, "reinit", 5, env=env).must(0)
        assert outcome.out.count("5 sessions") == 4, outcome
    on_each(2, check)


@world.bound(120)
def test_a_killed_rank_is_the_culprit():
    def check(here, env):
        for mode in (("loop",), ("alltoall",)):
            job = here.start_hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, *mode, env=env).wait_for("joined", 4)
            world.roles(here.hosts[1])["victim"][-1].kill()
            job.wait(10).must(137, "rank ", "on host1", "signal 9")
            here.must_be_clean()
    on_each(2, check)


def test_a_host_dies():
    def check(here, env):
        job = here.start_hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, "loop", env=env).wait_for("joined", 4)
        here.sim_hosts("kill", 1)
        job.wait(10).must(125, "host1")
    on_each(2, check)


def test_a_rank_that_leaves_while_others_are_inside_a_sum():
    def check(here, env):
        outcome = here.hvdrun("-np", 4, "--hostfile", here.hostfile, VICTIM, "shutdown-in-join", env=env, seconds=10).must(0)
        assert outcome.out.count("rank 0 has called shutdown before its join has returned") == 4, outcome
    on_each(2, check)


def test_ranks_that_chose_different_transports_are_named():
    with world.hosts(2, slots=1) as here:
        choose = 'HVD_TRANSPORT=$([ "$HVD_RANK" = 0 ] && echo tcp || echo ucx) exec "$@"'
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, "sh", "-c", choose, "sh", PROGRAMS / "all_ops")
        assert outcome.code != 0, outcome
        assert "HVD_TRANSPORT is tcp on rank 0" in outcome.err and "ucx on rank 1" in outcome.err, outcome
        here.hvdrun("-np", 1, "-H", "host0:1", "true", env={"HVD_TRANSPORT": "tpc"}).must(2, "auto, tcp, ucx", "did you mean tcp?")
        here.must_be_clean()


def test_the_choice_is_said():
    with world.hosts(2, slots=1) as here:
        job = ("-np", 2, "--hostfile", here.hostfile, "--verbose", BIN / "hello")
        said = here.hvdrun(*job, env={"HVD_LOG_LEVEL": "info"}).must(0)
        assert "transport between hosts: tcp (no RDMA port is active)" in said.err, said
        said = here.hvdrun(*job, env={"HVD_LOG_LEVEL": "info", "HVD_TRANSPORT": "ucx"}).must(0, "HVD_TRANSPORT ucx")
        assert "transport between hosts: ucx (HVD_TRANSPORT says so)" in said.err, said
        here.must_be_clean()


def listening(host):
    """The ports that ranks listen at on a host, as ADDRESS:PORT; sshd is not among them."""
    found = []
    table = world.pathlib.Path(f"/proc/{host.init}/net/tcp").read_text().splitlines()[1:]
    for words in map(str.split, table):
        address, port = words[1].split(":")
        if words[3] == "0A" and int(port, 16) != 22:
            octets = bytes.fromhex(address)[::-1]
            found.append(".".join(map(str, octets)) + f":{int(port, 16)}")
    return found


def probes_of(here, env, askers):
    """Runs 50 probes of each asker (host, user) against all ports of a 2x2 job; what they say. The job must not notice."""
    stop = here.place("stop")
    job = here.start_hvdrun("-np", 4, "-H", "host0:2,host1:2", VICTIM, "until", stop, env=env).wait_for("joined", 4)
    ports = listening(here.hosts[0]) + listening(here.hosts[1])
    assert not [port for port in ports if port.startswith("0.0.0.0")], ports
    said = []
    for host, user in askers:
        probes = here.run("python3", world.REPOSITORY / "tests/system/programs/probes.py", 50, *ports, host=host, user=user, seconds=100)
        said.append(int(probes.must(0).out.split()[0]))
    here.run("touch", stop).must(0)
    outcome = job.wait(30).must(0)
    assert outcome.out.count("all right until the end") == 4, outcome
    assert not outcome.err.strip(), outcome
    here.run("rm", stop).must(0)
    return said, ports


@world.bound(240)
def test_strangers_from_outside_and_other_users_are_noticed_by_no_rank():
    with world.hosts(3) as here:
        said, ports = probes_of(here, {"HVD_TRANSPORT": "tcp"}, ((2, None), (0, 64198), (1, 64198), (2, 64198)))
        assert ports and min(said) >= 40, (said, ports)  # they did get through to the door
        here.must_be_clean()


@world.bound(240)
def test_strangers_from_outside_do_not_reach_ucx():
    with world.hosts(3) as here:
        said, ports = probes_of(here, {"HVD_TRANSPORT": "ucx"}, ((2, None),))
        assert ports and said == [0], (said, ports)
        here.must_be_clean()
