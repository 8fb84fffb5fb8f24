# SPDX-License-Identifier: Apache-2.0
"""Starting `true` on two ranks."""
import statistics
import subprocess
import time

from sections import sides


def launch(report, rounds):
    """hvdrun beside both mpiruns."""
    commands = {
        "hvd": [sides.BIN / "hvdrun", "-np", 2, "true"],
        "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", 2, "true"],
        "mpich": ["mpirun.mpich", "-np", 2, "true"],
    }
    took = {name: [] for name in commands}
    for number in range(-2, 10 * rounds):  # the first two only warm up
        for name, command in commands.items():
            began = time.perf_counter()
            sides.run(command, stdin=subprocess.DEVNULL)
            if number >= 0:
                took[name].append((time.perf_counter() - began) * 1e3)
    for name, times in took.items():
        report.note(f"{name:>10}  median {statistics.median(times):8.2f} ms  fastest {min(times):8.2f}  slowest {max(times):8.2f}")
    report.at_most("starting two ranks: times Open MPI's", statistics.median(took["hvd"]) / statistics.median(took["openmpi"]), 0.7)
