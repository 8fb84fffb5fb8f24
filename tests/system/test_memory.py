# SPDX-License-Identifier: Apache-2.0
"""A job's shared memory: what it takes of core files and of address space, and what is told where there is none."""
import pathlib
import re

import world
from world import PROGRAMS

MEMORY = PROGRAMS / "memory"
MB = 1 << 20


def mappings(process):
    """The process's mappings of hvd's files: (name, bytes, flags)."""
    found, name = [], None
    for line in pathlib.Path(f"/proc/{process.pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = line.split(maxsplit=5)[5] if "memfd:hvd-" in line else None
        elif name and line.startswith("Size:"):
            size = int(line.split()[1]) * 1024
        elif name and line.startswith("VmFlags:"):
            found.append((name, size, line.split()[1:]))
    return found


def host_memory(process):
    return sum(size for name, size, _ in mappings(process) if "hvd-epoch" in name)


def must_stay_out_of_cores(process):
    maps = mappings(process)
    assert maps, f"{process} maps nothing of hvd's"
    dumped = [(name, size) for name, size, flags in maps if "dd" not in flags]
    assert not dumped, f"{process} would dump {dumped}"


@world.bound(120)
def test_the_hosts_memory_is_small_and_grows_with_the_process_sets():
    for ranks in (2, 8):
        with world.hosts(slots=ranks) as here:
            before = {}
            for sets in (0, 1, min(3, ranks - 1)):
                job = here.start_hvdrun("-np", ranks, MEMORY, "hold", sets).wait_for("holds", ranks, seconds=40)
                found = world.roles(here.hosts[0])
                workers = found["memory"]
                assert len(workers) == ranks, found
                for process in [*workers, *found["hvdd"]]:
                    must_stay_out_of_cores(process)
                before[sets] = max(host_memory(process) for process in workers)
                world.console_of(here).kill()
                job.wait(10)
            assert before[0] <= 64 * MB * ranks, before
            assert before[0] < before[1], before
            assert host_memory_of_sets(before, ranks) <= 64 * MB * ranks, before
            here.must_be_clean(within=6)


def host_memory_of_sets(before, ranks):
    """Returns what each set beyond the job's own took at most."""
    most = max(sets for sets in before)
    return (before[most] - before[0]) / most


def delays(here, ranks, limit, place):
    """How the job ended of which a rank aborts, and the longest time in ms that another did not know it."""
    command = f"ulimit -c {limit} && mkdir -p {place} && cd {place} && exec {world.HVDRUN} -np {ranks} {MEMORY} abort"
    outcome = here.run("bash", "-c", command, seconds=50).must(134, "rank 1", "signal 6")
    heard = [int(ms) for ms in re.findall(r"heard after (\d+) ms", outcome.out)]
    assert len(heard) == ranks - 1, outcome
    return max(heard)


@world.bound(150)
def test_a_core_file_is_small_and_keeps_nobody_waiting():
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith("|") or "/" in pattern:
        raise world.Skip(f"core files go elsewhere here ({pattern})")
    for ranks in (2, 8):
        with world.hosts(slots=ranks) as here:
            place = here.place("cores")
            without = delays(here, ranks, 0, place)
            with_core = delays(here, ranks, "unlimited", place)
            cores = list((here.hosts[0].root / place.lstrip("/")).glob("core*"))
            assert cores, "no core file was written"
            sizes = [core.stat().st_size // MB for core in cores]
            here.run("rm", "-r", place).must(0)
            # The memory of two ranks alone has more than this; a process without it a tenth.
            assert max(sizes) < 50, f"a core file of {max(sizes)} MB"
            assert with_core < 10 * without + 1000 * world.patient(1), f"{without} ms without a core file, {with_core} ms with one"
            here.must_be_clean()


def test_a_rank_without_address_space_names_size_and_limit():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, MEMORY, "scarce", "init")
        assert outcome.code == 1, outcome
        assert re.search(r"rank 1: cannot map the host's shared memory: [\d.]+ MB of address space are needed, and [\d.]+ MB of this process's [\d.]+ MB are "
                         r"in use \(ulimit -v \d+\); raise that limit", outcome.out), outcome
        here.must_be_clean()


def test_a_rank_without_address_space_for_a_process_set_ends_the_epoch_for_all():
    """The others have agreed on the set, and would wait in it."""
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, MEMORY, "scarce", "set")
        assert outcome.code == 1, outcome
        told = re.findall(r"rank (\d): .*rank 1 cannot enter process set 1: cannot map the host's shared memory: [\d.]+ MB of address space are needed.*"
                          r"ulimit -v", outcome.out)
        assert {"0", "1"} <= set(told), outcome
        here.must_be_clean()


def test_a_rank_without_address_space_for_many_pending_tensors_ends_the_epoch_for_all():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 2, MEMORY, "scarce", "pending")
        assert outcome.code == 1, outcome
        told = re.findall(r"rank (\d): .*rank 1 cannot have more than 8192 tensors pending at once: cannot map the host's shared memory: [\d.]+ MB of "
                          r"address space are needed.*ulimit -v", outcome.out)
        assert set(told) == {"0", "1"}, outcome
        here.must_be_clean()


def test_a_rank_that_cannot_start_its_thread_names_size_and_limit():
    """There is room for the host's memory, but not for a thread's stack."""
    with world.hosts() as here:
        told = ""
        for limit in range(50000, 160000, 2000):
            outcome = here.hvdrun("-np", 1, "bash", "-c", f"ulimit -v {limit}; exec {MEMORY} enter")
            assert outcome.code in (0, 1), outcome
            if outcome.code == 0:
                break
            assert re.search(rf"[\d.]+ MB of address space are needed, and [\d.]+ MB of this process's [\d.]+ MB are in use \(ulimit -v {limit}\); raise that limit",
                             outcome.out), outcome
            told += outcome.out
        assert "cannot start the thread hvd-engine: " in told, told
        here.must_be_clean()


@world.bound(240)
def test_memory_that_runs_out_in_sends_and_buckets_is_an_error():
    with world.hosts(2) as here:
        for hosts in ("host0:2", "host0:1,host1:1"):
            for what in ("pairs", "buckets"):
                for kilobytes in (64, 300, 900, 2500, 7000, 20000):
                    outcome = here.hvdrun("-np", 2, "-H", hosts, MEMORY, "starved", what, kilobytes, seconds=40)
                    assert outcome.code in (0, 1), f"{hosts} {what} {kilobytes}: {outcome}"
        here.must_be_clean()
