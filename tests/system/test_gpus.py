# SPDX-License-Identifier: Apache-2.0
"""Which GPUs and which cores each rank gets. The GPUs are those of a stand-in for NVIDIA's management library (tests/support/nvml)."""
import os

import world

LIBRARY = world.REPOSITORY / "build" / "tests" / "stand_in_nvml"
SHOW = ("sh", "-c", 'echo "${CUDA_VISIBLE_DEVICES-unset}"')
CORES = ("sh", "-c", "grep Cpus_allowed_list /proc/self/status | cut -f2")


def cards(*names, bus=(), words=""):
    """Describes a card for each name, with a UUID that a person can tell apart; NVML numbers them otherwise than their bus does if `bus` says so."""
    return ";".join(f"{uuid(name)} name=NVIDIA_{name} {words}" + (f" bus={bus[i]}" if bus else "") for i, name in enumerate(names))


def uuid(name, kind="GPU"):
    return f"{kind}-{name * 8}-1111-2222"


def gpus(*names):
    return ",".join(uuid(name) for name in names)


def env_of(described, **more):
    return {"LD_LIBRARY_PATH": str(LIBRARY), "HVD_STAND_IN_NVML": described, **more}


def seen(here, np, *options, described, program=SHOW, **more):
    """Returns what the program prints, by rank; and what hvdrun says."""
    outcome = here.hvdrun("-np", np, *options, *program, env=env_of(described, **more)).must(0)
    return by_rank(outcome, np), outcome.err


def by_rank(outcome, np):
    lines = dict(line.split("<stdout>:", 1) for line in outcome.out.splitlines())
    return [lines[f"[{rank}]"] for rank in range(np)]


def settle(here, host, described, **more):
    """A login on that host finds these cards."""
    profile = here.directory / f"host{host}" / "home" / ".bashrc"
    profile.write_text("".join(f"export {name}='{value}'\n" for name, value in env_of(described, **more).items()))
    return profile


def test_each_rank_sees_its_own_by_uuid_in_the_order_of_the_bus():
    with world.hosts() as here:
        four = cards("a", "b", "c", "d", bus=("04", "03", "02", "01"))
        ranks, _ = seen(here, 2, "--gpus-per-rank", 1, described=four)
        assert ranks == [gpus("d"), gpus("c")], ranks
        ranks, said = seen(here, 2, "--gpus-per-rank", 2, "--report-bindings", described=four)
        assert ranks == [gpus("d", "c"), gpus("b", "a")], ranks
        assert "rank 1: host localhost, slot 1, cores " in said, said
        assert "GPU GPU-bbbbbbbb NVIDIA b,GPU-aaaaaaaa NVIDIA a\n" in said, said
        here.must_be_clean()


def test_not_asked_for_all_see_all_and_index_is_slot():
    with world.hosts() as here:
        ranks, said = seen(here, 2, "--report-bindings", described=cards("a", "b", "c"))
        assert ranks == [gpus("a", "b", "c")] * 2, ranks
        assert "GPU GPU-bbbbbbbb NVIDIA b (index 1 of 3)\n" in said and "share" not in said, said
        ranks, said = seen(here, 3, described=cards("a", "b"))
        assert ranks == [gpus("a", "b")] * 3 and "2 GPUs for 3 slots: ranks share them" in said, (ranks, said)
        ranks, said = seen(here, 2, "--gpus-per-rank", 0, described=cards("a"))
        assert ranks == ["unset"] * 2 and not said, (ranks, said)
        here.must_be_clean()


def test_a_host_without_gpus_runs_as_always():
    with world.hosts() as here:
        for described in ("", "fails=9", "GPU-1 lost"):
            ranks, said = seen(here, 2, described=described)
            assert ranks == ["unset"] * 2 and not said, (described, ranks, said)
        here.hvdrun("-np", 2, "--gpus-per-rank", 1, *SHOW, env=env_of("fails=9")).must(
            125, "cannot start on host localhost: --gpus-per-rank 1 needs 2 GPUs for 2 slots, and this host has none (NVML does not start: Driver Not Loaded)")
        outcome = here.hvdrun("-np", 1, "--gpus-per-rank", 1, *SHOW)
        assert outcome.code == 0 or "has none (libnvidia-ml.so.1: cannot open" in outcome.err, outcome
        here.must_be_clean()


def test_an_inherited_mask_chooses_and_orders():
    with world.hosts() as here:
        four = cards("a", "b", "c", "d")
        for mask, expected in (("2,0", ("c", "a")), (f"{uuid('d')},GPU-b", ("d", "b")), ("3, 1,7,0", ("d", "b")), ("GPU-cccc,2,0", ("c", "a"))):
            ranks, _ = seen(here, 2, "--gpus-per-rank", 1, described=four, CUDA_VISIBLE_DEVICES=mask)
            assert ranks == [gpus(name) for name in expected], (mask, ranks)
        ranks, _ = seen(here, 2, described=four, CUDA_VISIBLE_DEVICES="2,0")
        assert ranks == [gpus("c", "a")] * 2, ranks
        ranks, _ = seen(here, 1, described=four, CUDA_VISIBLE_DEVICES="2,0", HVD_CUDA_VISIBLE_DEVICES="3")
        assert ranks == [gpus("d")], ranks
        inner = ("sh", "-c", f'[ -z "${{HVD_CUDA_VISIBLE_DEVICES-}}" ] && exec {world.HVDRUN} -np 1 --gpus-per-rank 1 sh -c \'echo $CUDA_VISIBLE_DEVICES\'')
        ranks, _ = seen(here, 1, "--gpus-per-rank", 1, described=four, program=inner, HVD_CUDA_VISIBLE_DEVICES="3")
        assert ranks[0].endswith(gpus("d")), ranks
        for mask in ("", "-1"):
            ranks, said = seen(here, 2, described=four, CUDA_VISIBLE_DEVICES=mask)
            assert ranks == [mask] * 2 and not said, (mask, ranks, said)
        here.hvdrun("-np", 2, "--gpus-per-rank", 1, *SHOW, env=env_of(four, CUDA_VISIBLE_DEVICES="3")).must(
            125, 'this host has 1 GPU (CUDA_VISIBLE_DEVICES is "3"); give this host at most 1 slot')
        here.must_be_clean()


def test_the_persons_own_word_counts():
    with world.hosts() as here:
        ranks, said = seen(here, 2, "-x", "CUDA_VISIBLE_DEVICES=1", described=cards("a"))
        assert ranks == ["1"] * 2 and not said, (ranks, said)
        here.hvdrun("-np", 1, "-x", "CUDA_VISIBLE_DEVICES=1", "--gpus-per-rank", 1, *SHOW).must(2, "keep one of them")


def test_instances_of_a_card_in_mig_mode_are_devices():
    with world.hosts() as here:
        first, second, third = (uuid(name, "MIG") for name in "xyz")
        split = f"{uuid('a')} mig={first},,{second};{uuid('b')} mig={third};{uuid('c')} mig="
        for options in ((), ("--gpus-per-rank", 1)):
            ranks, said = seen(here, 3, *options, described=split)
            assert ranks == [first, second, third] and not said, (ranks, said)
        ranks, _ = seen(here, 2, "--gpus-per-rank", 1, described=split, CUDA_VISIBLE_DEVICES=f"{third},MIG-x")
        assert ranks == [third, first], ranks
        ranks, said = seen(here, 2, described=split, CUDA_VISIBLE_DEVICES="1")
        assert ranks == [third, third] and "1 MIG instance for 2 slots: ranks share it" in said, (ranks, said)
        here.hvdrun("-np", 1, "--gpus-per-rank", 2, *SHOW, env=env_of(split)).must(125, "CUDA shows a process one of them only")
        here.must_be_clean()


def test_too_few_on_another_host_name_it_and_both_numbers():
    with world.hosts(2, slots=2) as here:
        profile = settle(here, 1, cards("c"))
        outcome = here.hvdrun("-np", 4, "--hostfile", here.hostfile, "--gpus-per-rank", 1, *SHOW, env=env_of(cards("a", "b"))).must(
            125, "cannot start on host host1: --gpus-per-rank 1 needs 2 GPUs for 2 slots, and this host has 1 GPU; give this host at most 1 slot")
        assert "[2]" not in outcome.out and "[3]" not in outcome.out, outcome
        profile.unlink()
        here.must_be_clean()


def test_two_hosts_each_with_its_own_cards_and_mask():
    with world.hosts(2, slots=2) as here:
        profile = settle(here, 1, cards("c", "d", "e", "f"), CUDA_VISIBLE_DEVICES="3,1,0,2")
        job = ("-np", 4, "--hostfile", here.hostfile)
        env = env_of(cards("a", "b"), CUDA_VISIBLE_DEVICES="1,0")
        assert by_rank(here.hvdrun(*job, "--gpus-per-rank", 1, *SHOW, env=env).must(0), 4) == [gpus("b"), gpus("a"), gpus("f"), gpus("d")]
        said = here.hvdrun(*job, "--report-bindings", *SHOW, env=env).must(0)
        assert by_rank(said, 4) == [gpus("b", "a")] * 2 + [gpus("f", "d", "c", "e")] * 2, said
        assert "rank 3: host host1, slot 1, cores " in said.err and "GPU GPU-dddddddd NVIDIA d (index 1 of 4)" in said.err, said
        profile.unlink()
        here.must_be_clean()


def test_cores_are_near_the_gpus():
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise world.Skip("needs two cores")
    near = [f"near={allowed[-1]}", f"near={allowed[0]}"]
    described = ";".join(f"{uuid(name)} name=N {where}" for name, where in zip("ab", near))
    first, last = str(allowed[0]), str(allowed[-1])
    with world.hosts() as here:
        ranks, _ = seen(here, 2, "--gpus-per-rank", 1, described=described, program=CORES)
        assert ranks == [last, first], ranks
        ranks, _ = seen(here, 1, "--gpus-per-rank", 1, described=described, program=CORES)
        assert ranks == [last], ranks
        everywhere, _ = seen(here, 1, described=described, program=CORES)  # nobody loses cores unasked
        bare, _ = seen(here, 1, "--bind", "none", "--gpus-per-rank", 1, described=described, program=CORES)
        assert everywhere == bare != ranks, (everywhere, bare)
        table = here.hvdrun("-np", 2, "--gpus-per-rank", 1, "--dry-run", *SHOW, env=env_of(described)).must(0).out
        rows = [line.split() for line in table.splitlines()[1:4]]
        assert rows == [["rank", "host", "slot", "local_rank", "cores", "GPU"], ["0", "localhost", "0", "0", last, "GPU-aaaaaaaa", "N"],
                        ["1", "localhost", "1", "1", first, "GPU-bbbbbbbb", "N"]], table
        here.hvdrun("-np", 3, "--gpus-per-rank", 1, "--dry-run", *SHOW, env=env_of(described)).must(2, "needs 3 GPUs for 3 slots")
        here.must_be_clean()
