# SPDX-License-Identifier: Apache-2.0
"""The simulated hosts themselves."""
import os
import subprocess
import tempfile

import world


def network_namespaces():
    return set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()


def test_two_worlds_at_once_and_nothing_left():
    with world.hosts(2) as one, world.hosts(2) as two:
        ours = {(one.directory / "tag").read_text().strip(), (two.directory / "tag").read_text().strip()}
        for here in (one, two):
            assert here.run("ssh", "host1", "hostname").must(0).out == "host1\n"
        directories = one.directory, two.directory
    assert not [name for name in network_namespaces() if name.partition(".")[0] in ours]
    assert not any(directory.exists() for directory in directories)


def test_hosts_are_apart():
    with world.hosts(2) as here:
        assert here.run("touch", "/tmp/mine", "/dev/shm/mine", host=0).code == 0
        assert here.run("ls", "/tmp/mine", host=1).code != 0
        assert here.run("ls", "/dev/shm/mine", host=1).code != 0
        assert here.run("pgrep", "-c", "sshd", host=1).out == "1\n"


def test_exec_passes_stdin_directory_and_exit_code():
    with world.hosts(1) as here:
        assert here.run("sh", "-c", "exit 9").code == 9
        assert here.run("pwd").out == f"{world.REPOSITORY}\n"
        with tempfile.TemporaryFile() as stdin:
            stdin.write(b"through\n")
            stdin.seek(0)
            assert here.run("cat", stdin=stdin).out == "through\n"


def test_kill_turns_one_host_off():
    with world.hosts(2) as here:
        here.sim_hosts("kill", 1)
        world.wait_until(lambda: here.run("ssh", "-o", "ConnectTimeout=2", "host1", "true").code == 255, 5, "host1 to be off")
        assert here.run("true", host=0).code == 0
        again = subprocess.run([world.SIM_HOSTS, "--dir", str(here.directory), "exec", "1", "true"], capture_output=True, text=True)
        assert again.returncode == 1 and "host 1 is off" in again.stderr, again


def test_a_wrong_rate_is_refused():
    for rate in ("fast", "1", "1gb"):
        outcome = subprocess.run([world.SIM_HOSTS, "up", "1", "--rate", rate], capture_output=True, text=True)
        assert outcome.returncode == 2 and rate in outcome.stderr, outcome
