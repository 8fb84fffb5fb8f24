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
SOURCES = REPOSITORY / "scripts" / "peers"
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
    """The JSON objects among the lines, whatever a launcher put before them."""
    return [json.loads(line[line.index("{"):]) for line in output.splitlines() if "{" in line]


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


def limit(np, sizes):
    return lambda: run([PEERS / "limit", np, sizes_text(sizes)])


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


def take_turns(report, sides, rounds, key="us_p50"):
    """Runs every side once a round. (side's name, bytes) → median of its rounds' `key`."""
    seen = {}
    for number in range(1, rounds + 1):
        for name, one_round in sides.items():
            progress(f"round {number} of {rounds}: {name}")
            for result in results_in(one_round()):
                report.result({**result, "side": name, "round": number})
                seen.setdefault((name, result.get("bytes", 0)), []).append(result[key])
    progress("")
    progress("\r")
    return {what: statistics.median(values) for what, values in seen.items()}


def table(report, medians, sides, sizes):
    """The medians, a line a size."""
    report.note(f"{'bytes':>10}" + "".join(f"{name:>13}" for name in sides) + "   median us")
    for size in sizes:
        report.note(f"{size:>10}" + "".join(f"{medians[name, size]:>13.2f}" for name in sides))
