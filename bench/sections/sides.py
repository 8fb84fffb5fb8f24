# SPDX-License-Identifier: Apache-2.0
"""The sides of a comparison: hvd, its peers and the limit, each started, pinned and read the same way."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = REPOSITORY / "build" / "bin"
PEERS = REPOSITORY / "build" / "peers"
SOURCES = REPOSITORY / "bench" / "peers"
SHAPES = REPOSITORY / "examples" / "hvd_bench" / "resnet50.cc"


def fail(text):
    sys.exit(f"scripts/bench: {text}")


def run(command, **how):
    """Output of a command that must succeed."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **how)
    if result.returncode != 0:
        fail(f"{' '.join(map(str, command))}\nended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def results_in(output):
    """The JSON objects of an output. A launcher may have put something before one, and two ranks' on one line."""
    found, decoder = [], json.JSONDecoder()
    for line in output.splitlines():
        at = line.find("{")
        while at >= 0:
            result, end = decoder.raw_decode(line, at)
            found.append(result)
            at = line.find("{", end)
    return found


def build_peers():
    """Compiles what is older than its sources."""
    PEERS.mkdir(parents=True, exist_ok=True)
    flags = ["-O3", "-march=native", "-std=c++17", f"-I{REPOSITORY}"]
    for target, source, compiler, more in (("limit", "limit.cc", "g++", []), ("openmpi", "mpi.cc", "mpicxx.openmpi", [SHAPES]),
                                           ("mpich", "mpi.cc", "mpicxx.mpich", [SHAPES]),
                                           ("gloo", "gloo.cc", "g++", [SHAPES, "-lgloo", "-pthread"])):
        sources = [SOURCES / source, SOURCES / "timing.h", SHAPES]
        made = PEERS / target
        if not made.exists() or made.stat().st_mtime < max(path.stat().st_mtime for path in sources):
            run([compiler, *flags, SOURCES / source, *more, "-o", made])


def crowded(np):
    return np > os.cpu_count()


def sizes_text(sizes):
    return ",".join(map(str, sizes))


def hvd(np, op, *options):
    """A side: hvd-bench with these options."""
    return lambda: run([BIN / "hvdrun", "-np", np, BIN / "hvd-bench", op, *options, "--json"])


def hvd_sizes(np, op, sizes, *options):
    return hvd(np, op, "--sizes", sizes_text(sizes), *options)


def limit(np, sizes, *kind):
    return lambda: run([PEERS / "limit", np, sizes_text(sizes), *kind])


def openmpi(np, op, sizes):
    start = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
    start += ["--mca", "mpi_yield_when_idle", "1", "--bind-to", "none"] if crowded(np) else ["--bind-to", "core"]
    return lambda: run([*start, "-np", np, PEERS / "openmpi", "openmpi", op, sizes_text(sizes)])


def mpich(np, op, sizes):
    bind = [] if crowded(np) else ["-bind-to", "core"]
    return lambda: run(["mpirun.mpich", *bind, "-np", np, PEERS / "mpich", "mpich", op, sizes_text(sizes)])


def gloo(np, op, sizes):
    """gloo has no launcher: a process a rank. Not pinned, since its own threads would share the rank's core (3.7 ms a call)."""
    def one_round():
        store = tempfile.mkdtemp(prefix="hvd-bench.")
        try:
            def one(rank):
                return run([PEERS / "gloo", rank, np, store, "lo", op, sizes_text(sizes)])
            with concurrent.futures.ThreadPoolExecutor(np) as pool:
                return "".join(pool.map(one, range(np)))
        finally:
            shutil.rmtree(store, ignore_errors=True)
    return one_round


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)


class Times:
    """The times that the sides took, by (side's name, bytes): a median for each round."""

    def __init__(self):
        self.rounds = {}

    def add(self, name, size, value):
        self.rounds.setdefault((name, size), []).append(value)

    def __getitem__(self, key):
        return statistics.median(self.rounds[key])

    def ratio(self, over, under, size):
        """Returns the median of the rounds' ratios of two sides, each a name or several of which the best counts. Sides of one
        round ran one after the other, so what changes about the machine in a run changes both."""
        return statistics.median(a / b for a, b in zip(self._best(over, size), self._best(under, size)))

    def _best(self, names, size):
        names = (names,) if isinstance(names, str) else names
        return [min(values) for values in zip(*(self.rounds[name, size] for name in names))]


def take_turns(report, sides, rounds, key="us_p50"):
    """Runs every side once a round."""
    times = Times()
    for number in range(1, rounds + 1):
        for name, one_round in sides.items():
            progress(f"round {number} of {rounds}: {name}")
            for result in results_in(one_round()):
                report.result({**result, "side": name, "round": number})
                times.add(name, result["bytes"], result[key])
    progress("")
    progress("\r")
    return times


def table(report, times, sides, sizes):
    """The medians, a line a size."""
    report.note(f"{'bytes':>10}" + "".join(f"{name:>13}" for name in sides) + "   median us")
    for size in sizes:
        report.note(f"{size:>10}" + "".join(f"{times[name, size]:>13.2f}" for name in sides))
