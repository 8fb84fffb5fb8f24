# SPDX-License-Identifier: Apache-2.0
"""ResNet-50's gradients: hvd in random orders against one call of their size and against what the peers make of them."""
import os
import shutil
import statistics
import sys

from sections import sides

BYTES = 102228128


def framework(name):
    """Whether this Python has the framework, and the launcher that comes with it."""
    modules = {"torch": "torch.distributed", "horovod": "horovod.torch"}
    probe = f"import {modules[name]}"
    launcher = {"torch": "torchrun", "horovod": "horovodrun"}[name]
    return shutil.which(launcher) and os.system(f"{sys.executable} -c '{probe}' 2>/dev/null") == 0


def framework_sides():
    peer = sides.SOURCES / "frameworks.py"
    if framework("torch"):
        yield "torch-gloo", lambda: sides.run(["torchrun", "--nproc-per-node", "2", peer, "torch"])
    if framework("horovod"):
        for controller in ("gloo", "mpi"):
            yield f"horovod-{controller}", lambda controller=controller: sides.run(
                ["horovodrun", "-np", "2", f"--{controller}", sys.executable, peer, "horovod"])


def gradients(report, rounds):
    """161 gradients, submitted in another random order on each rank and step."""
    runs = {
        "user": sides.hvd(2, "gradients"),
        "arena": sides.hvd(2, "gradients", "--buffers", "arena"),
        "views": sides.hvd(2, "gradients", "--views"),
        "openmpi": sides.openmpi(2, "gradients", [BYTES]),
        "mpich": sides.mpich(2, "gradients", [BYTES]),
        "gloo": sides.gloo(2, "gradients", [BYTES]),
        **dict(framework_sides()),
    }
    ratios = {}

    def remember(name, one_round):
        def wrapped():
            output = one_round()
            ratios.setdefault(name, []).extend(result["ratio"] for result in sides.results_in(output))
            return output
        return wrapped

    for name in ("user", "arena", "views"):
        runs[name] = remember(name, runs[name])
    times = sides.take_turns(report, runs, rounds)
    sides.table(report, times, runs, [BYTES])
    for name, wanted in (("user", 0.6), ("arena", 0.6), ("views", 0.85)):
        report.at_least(f"gradients, {name}: share of one contiguous call's speed", statistics.median(ratios[name]), wanted)
    peers = [name for name in runs if name not in ratios]
    best = min(peers, key=lambda name: times[name, BYTES])
    for name in ("user", "arena", "views"):
        report.at_least(f"gradients, {name}: times the best peer ({best})", times.ratio(best, name, BYTES), 3)
