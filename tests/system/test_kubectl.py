# SPDX-License-Identifier: Apache-2.0
"""hvdrun over a real `kubectl exec`, whose API server is a stand-in: its pods are simulated hosts."""
import contextlib
import pathlib
import shutil
import signal

import world
from world import BIN

SERVER = pathlib.Path(__file__).with_name("kube_stand_in.py")
SLEEPS = ("sh", "-c", "echo up; while :; do sleep 0.1; done")


class Pods:
    """Two hosts that are pods train-0 and train-1, and a third on which hvdrun is."""

    def __init__(self, here, server, config):
        self.here, self.server = here, server
        self.env = {"KUBECONFIG": config, "KUBECACHEDIR": str(pathlib.PurePath(config).with_name("cache"))}

    def start(self, *words, hosts="train-0:2,train-1:2"):
        return self.here.start_hvdrun("--rsh-agent", "kubectl", "-H", hosts, *words, env=self.env)

    def processes(self, name, host):
        return [process for process in self.here.hosts[host].processes() if process.name == name]


@contextlib.contextmanager
def pods():
    if shutil.which("kubectl") is None:
        raise world.Skip("there is no kubectl")
    with world.hosts(3, slots=2) as here:
        config = here.place("kubeconfig")
        server = here.start("/usr/bin/python3", SERVER, config, "train-0=host1", "train-1=host2").wait_for("serving", 1)
        try:
            yield Pods(here, server, config)
        finally:
            server.process.kill()
            server.process.wait()
            for process in here.hosts[0].processes():
                with contextlib.suppress(OSError):
                    process.kill()
            here.run("rm", "-rf", here.own).must(0)
        here.hosts[0].clean.discard(here.own)
        here.own = None
        here.must_be_clean(within=3)


@world.bound(120)
def test_ranks_in_pods():
    with pods() as pod:
        job = pod.start("-np", 4, BIN / "hello").wait(30).must(0)
        assert sorted(line.partition(" (")[0][-11:] for line in job.out.splitlines()) == [f"rank {rank} of 4" for rank in range(4)], job


@world.bound(120)
def test_what_kubectl_says_is_told_with_its_pod():
    with pods() as pod:
        pod.start("-np", 4, "true", hosts="train-0:2,train-7:2").wait(30).must(125, 'pods "train-7" not found')
        pod.start("-np", 4, "true", hosts="train-0:2,locked:2").wait(30).must(125, "is forbidden: User", "locked")


@world.bound(240)
def test_whatever_ends_nothing_is_left():
    with pods() as pod:
        for victim in ("kubectl", "console", "hvdd", "connections"):
            job = pod.start("-np", 4, *SLEEPS).wait_for("up", 4)
            if victim == "kubectl":
                pod.processes("kubectl", 0)[-1].kill()
            elif victim == "console":
                job.process.kill()
            elif victim == "hvdd":
                pod.processes("hvdd", 1)[0].kill()
            else:
                server, = (each for each in pod.processes("python3", 0) if str(SERVER) in each.command)
                server.kill(signal.SIGUSR1)
            outcome = job.wait(30)
            if victim != "console":
                broke = ("its connection to the API server broke", "is the pod train-") if victim == "connections" else ()
                outcome.must(125, "train-", *broke)
            for host in (1, 2):
                world.wait_until(lambda host=host: not pod.here.hosts[host].left(), 5, f"an empty host{host}: {pod.here.hosts[host].left()}")
