# SPDX-License-Identifier: Apache-2.0
"""The cost of ranks that have nothing to do, or wait for one another."""
import pathlib
import subprocess
import time

from sections import sides

SECONDS = 4


def family(pid):
    """The process and all its descendants."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
    members = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in members} - members
        if not more:
            return members
        members |= more


def cpu_ns(pids):
    """Time on a core, of all threads."""
    total = 0
    for pid in pids:
        try:
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue
    return total


def idle_job_percent(np):
    """Returns the share of one core that hvdrun, hvdd and all ranks together take, in percent."""
    with subprocess.Popen([sides.BIN / "hvdrun", "-np", str(np), sides.BIN / "hvd-bench", "idle", "--seconds", str(SECONDS)],
                          stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as job:
        time.sleep(SECONDS / 4)  # it has started long ago
        pids = family(job.pid)
        before, began = cpu_ns(pids), time.monotonic()
        time.sleep(SECONDS / 2)
        percent = (cpu_ns(pids) - before) / 1e7 / (time.monotonic() - began)
    if job.returncode != 0:
        sides.fail(f"hvd-bench idle ended with {job.returncode}")
    return percent


def waiting(report, rounds):
    """Shares of a core."""
    del rounds  # a few seconds each say enough
    for np in (2, 8):
        result, = sides.results_in(sides.hvd(np, "late", "--seconds", "2")())
        report.result(result)
        report.at_most(f"{np} ranks wait 2 s for a late peer: the busiest one's share of a core", result["percent"], 2, "%")
    report.at_most("an idle job of 2 ranks, hvdrun and hvdd included: share of a core", idle_job_percent(2), 0.2, "%")
    result, = sides.results_in(sides.hvd(2, "idle", "--seconds", "2")())
    report.result(result)
    report.at_most("an idle rank alone: share of a core", result["percent"], 0.2, "%")
