# SPDX-License-Identifier: Apache-2.0
"""Sections on this host alone."""
from sections import sides
from sections.report import words

KB, MB = 1 << 10, 1 << 20
PEERS = ("openmpi", "mpich", "gloo")


def allreduce(report, rounds):
    """Two ranks, float32, in place, from 64 KB to 256 MB."""
    sizes = [64 * KB, 256 * KB, MB, 4 * MB, 16 * MB, 64 * MB, 256 * MB]
    runs = {
        "limit": sides.limit(2, sizes),
        "arena": sides.hvd_sizes(2, "allreduce", sizes, "--buffers", "arena"),
        "user": sides.hvd_sizes(2, "allreduce", sizes, "--buffers", "user"),
        "openmpi": sides.openmpi(2, "allreduce", sizes),
        "mpich": sides.mpich(2, "allreduce", sizes),
        "gloo": sides.gloo(2, "allreduce", sizes),
    }
    times = sides.take_turns(report, runs, rounds)
    sides.table(report, times, runs, sizes)
    for size in sizes:
        of_limit = times.ratio("limit", "arena", size)
        report.at_least(f"arena buffers, {words(size)}: share of the limit", of_limit, 0.75 if size == 64 * KB else 0.85)
        ratio = times.ratio(PEERS, "arena", size)
        report.at_least(f"arena buffers, {words(size)}: times the best peer", ratio, 2 if size == 64 * KB else 2.5)
    for size in sizes:
        of_limit = times.ratio("limit", "user", size)
        wanted = 0.6 if size == 64 * KB else 0.45 if size <= 16 * MB else 0.55
        report.at_least(f"user buffers, {words(size)}: share of the limit", of_limit, wanted)
        ratio = times.ratio(PEERS, "user", size)
        report.at_least(f"user buffers, {words(size)}: times the best peer", ratio, 2.5 if size >= 16 * MB else 1.6)


def private(report, rounds):
    """No promise: what user buffers could reach at most, since no rank sees another's. Two ranks, float32."""
    sizes = [64 * KB, 256 * KB, MB, 4 * MB]
    runs = {
        "limit": sides.limit(2, sizes),
        "private": sides.limit(2, sizes, "private"),
        "user": sides.hvd_sizes(2, "allreduce", sizes, "--buffers", "user"),
    }
    times = sides.take_turns(report, runs, rounds)
    sides.table(report, times, runs, sizes)
    for size in sizes:
        report.note(f"{words(size):>6}: the limit of private memory is {times.ratio('limit', 'private', size):.2f} of the limit; "
                    f"user buffers reach {times.ratio('private', 'user', size):.2f} of it")


def small(report, rounds):
    """Two ranks, a few bytes: blocking by name, and submitted and waited for."""
    sizes = [4, 8, 16, 48, KB]
    runs = {
        "blocking": sides.hvd_sizes(2, "allreduce", sizes),
        "async": sides.hvd_sizes(2, "allreduce", sizes, "--async"),
        "openmpi": sides.openmpi(2, "allreduce", sizes),
        "mpich": sides.mpich(2, "allreduce", sizes),
    }
    times = sides.take_turns(report, runs, rounds)
    sides.table(report, times, runs, sizes)
    for size in sizes:
        ratio = times.ratio("blocking", "openmpi", size)
        report.at_most(f"blocking by name, {words(size)}: times Open MPI's", ratio, 2 if size <= 48 else 1.3)
    for size in sizes:
        report.at_most(f"submit and wait, {words(size)}", times["async", size], 5, "us")


def oversubscribed(report, rounds):
    """Four and eight ranks: more than cores, on a small machine."""
    sizes = [8, MB, 16 * MB]
    for np in (4, 8):
        runs = {
            "user": sides.hvd_sizes(np, "allreduce", sizes, "--buffers", "user"),
            "arena": sides.hvd_sizes(np, "allreduce", sizes, "--buffers", "arena"),
            "openmpi": sides.openmpi(np, "allreduce", sizes),
            "mpich": sides.mpich(np, "allreduce", sizes),
            "gloo": sides.gloo(np, "allreduce", sizes),
        }
        times = sides.take_turns(report, runs, rounds)
        report.note(f"{np} ranks")
        sides.table(report, times, runs, sizes)
        report.at_most(f"{np} ranks, 8 B: times Open MPI's with yield", times.ratio("user", "openmpi", 8), 0.8)
        for buffers in ("arena", "user"):
            for size in sizes[1:]:
                ratio = times.ratio(PEERS, buffers, size)
                report.at_least(f"{np} ranks, {buffers} buffers, {words(size)}: times the best peer", ratio, 4)


def types(report, rounds):
    """16-bit floats against float32 of the same count."""
    counts = [2 * MB, 8 * MB, 32 * MB]
    for buffers in ("user", "arena"):
        runs = {dtype: sides.hvd_sizes(2, "allreduce", [count * width for count in counts], "--dtype", dtype, "--buffers", buffers)
                for dtype, width in (("float32", 4), ("float16", 2), ("bfloat16", 2))}
        times = sides.take_turns(report, runs, rounds)
        for dtype in ("float16", "bfloat16"):
            for count in counts:
                ratio = times[dtype, 2 * count] / times["float32", 4 * count]
                report.at_most(f"{dtype}, {buffers} buffers, {words(2 * count)}: times float32's of the same count", ratio, 0.55)


def operations(report, rounds):
    """The other collectives beside both MPIs."""
    sizes = [KB, 64 * KB, MB, 64 * MB]
    for op in ("allgather", "broadcast", "reducescatter", "alltoall"):
        runs = {
            "arena": sides.hvd_sizes(2, op, sizes, "--buffers", "arena"),
            "user": sides.hvd_sizes(2, op, sizes, "--buffers", "user"),
            "openmpi": sides.openmpi(2, op, sizes),
            "mpich": sides.mpich(2, op, sizes),
        }
        times = sides.take_turns(report, runs, rounds)
        report.note(op)
        sides.table(report, times, runs, sizes)
        for buffers in ("arena", "user"):
            for size in sizes:
                ratio = times.ratio(("openmpi", "mpich"), buffers, size)
                wanted = 2 if size >= MB else 1
                report.at_least(f"{op}, {buffers} buffers, {words(size)}: times the best MPI", ratio, wanted)
