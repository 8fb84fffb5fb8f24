# SPDX-License-Identifier: Apache-2.0
"""Sections on simulated hosts (scripts/sim-hosts; needs root)."""
import concurrent.futures
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from sections import sides

MB = 1 << 20
SIZE = 64 * MB
LINE_RATE = 1e9 / 8  # bytes a second
SIM_HOSTS = sides.REPOSITORY / "scripts" / "sim-hosts"


class Hosts:
    """Simulated hosts while they are up. Their /tmp is their own, so shared files lie in the build folder."""

    def __init__(self, folder):
        self.folder = folder

    def command(self, host, *words):
        return [str(word) for word in (SIM_HOSTS, "--dir", self.folder, "exec", host, *words)]

    def run(self, host, *words):
        return sides.run(self.command(host, *words), cwd=sides.REPOSITORY)

    def sent_bytes(self, host):
        return int(self.run(host, "cat", "/sys/class/net/eth0/statistics/tx_bytes"))

    def hostfile(self, slots):
        path = self.folder / f"slots{slots}"
        path.write_text("".join(f"host{i} slots={slots}\n" for i in range(2)))
        return path

    def bench(self, slots, *words):
        output = self.run(0, sides.BIN / "hvdrun", "-np", 2 * slots, "--hostfile", self.hostfile(slots), sides.BIN / "hvd-bench",
                          *words, "--json")
        result, = sides.results_in(output)
        return result

    def gloo(self):
        store = tempfile.mkdtemp(dir=self.folder)
        def one(rank):
            return self.run(rank, sides.PEERS / "gloo", rank, 2, store, "eth0", "allreduce", SIZE)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            result, = sides.results_in("".join(pool.map(one, range(2))))
        return result

    def ucx_bytes_a_second(self):
        environment = ("env", "UCX_TLS=tcp", "UCX_NET_DEVICES=eth0", "ucx_perftest")
        options = ("-t", "tag_bw", "-s", 16 * MB, "-n", 40, "-w", 4)
        with subprocess.Popen(self.command(1, *environment, *options), stdout=subprocess.DEVNULL, cwd=sides.REPOSITORY) as server:
            self._await_server()
            output = self.run(0, *environment, "host1", *options)
        if server.returncode != 0:
            sides.fail(f"ucx_perftest's server ended with {server.returncode}")
        return float(re.findall(r"Final:.*", output)[-1].split()[6]) * MB

    def _await_server(self):
        """Until it listens on ucx_perftest's port, 13337."""
        deadline = time.monotonic() + 10
        while ":3419 " not in self.run(1, "cat", "/proc/net/tcp", "/proc/net/tcp6"):
            if time.monotonic() > deadline:
                sides.fail("ucx_perftest's server does not listen")
            time.sleep(0.01)


@contextlib.contextmanager
def two_hosts(rate=None):
    if os.geteuid() != 0:
        sides.fail("simulated hosts need root")
    (sides.REPOSITORY / "build").mkdir(exist_ok=True)
    folder = sides.REPOSITORY / "build" / "bench-hosts"
    shutil.rmtree(folder, ignore_errors=True)
    sides.run([SIM_HOSTS, "up", 2, "--slots", 4, *(["--rate", rate] if rate else []), "--dir", folder])
    try:
        yield Hosts(folder)
    finally:
        sides.run([SIM_HOSTS, "down", "--dir", folder])


def hosts(report, rounds):
    """Two simulated hosts: a link of 1 Gb/s, then an unshaped one."""
    exchanged = SIZE  # 2(H-1)/H·S with H = 2
    with two_hosts("1gbit") as here:
        for slots in (1, 4):
            result = here.bench(slots, "allreduce", "--sizes", SIZE, "--iters", 5)
            report.result(result)
            share = exchanged / (result["us_p50"] / 1e6) / LINE_RATE
            report.at_least(f"1 Gb/s, 2 hosts x {slots}, 64 MB: share of the line rate", share, 0.95)
        before = [here.sent_bytes(host) for host in range(2)]
        result = here.bench(4, "allreduce", "--sizes", SIZE, "--iters", 5)
        calls = 1 + 2 + result["iters"]  # the checked one, the warm-up, the timed ones
        for host in range(2):
            ratio = (here.sent_bytes(host) - before[host]) / calls / exchanged
            report.at_most(f"2 hosts x 4: bytes that host {host} sends a call, times 2(H-1)/H S", ratio, 1.08)
    with two_hosts() as here:
        seen = {"hvd": [], "gloo": [], "ucx": []}
        for number in range(rounds):
            sides.progress(f"round {number + 1} of {rounds}: unshaped")
            seen["hvd"].append(here.bench(1, "allreduce", "--sizes", SIZE, "--iters", 15)["us_p50"])
            seen["gloo"].append(here.gloo()["us_p50"])
            seen["ucx"].append(here.ucx_bytes_a_second())
        sides.progress("\r")
        hvd, gloo, ucx = (statistics.median(seen[name]) for name in ("hvd", "gloo", "ucx"))
        report.note(f"64 MB, us: hvd {hvd:.0f}, gloo {gloo:.0f}; ucx_perftest {ucx / 1e9:.2f} GB/s")
        report.at_least("unshaped, 64 MB: share of ucx_perftest's bandwidth", exchanged / (hvd / 1e6) / ucx, 0.6)
        report.at_least("unshaped, 64 MB: times gloo", gloo / hvd, 1.3)


def overlap(report, rounds):
    """A step that computes as long as it reduces, on a link of 1 Gb/s."""
    with two_hosts("1gbit") as here:
        ratios = []
        for _ in range(rounds):
            result = here.bench(1, "overlap", "--sizes", 32 * MB, "--iters", 3)
            report.result(result)
            ratios.append(result["ratio"])
        report.at_most("computing while reducing, 32 MB: times the longer of the two", statistics.median(ratios), 1.15)
