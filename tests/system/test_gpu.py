# SPDX-License-Identifier: Apache-2.0
"""Tensors on GPUs, over stand-ins for NVIDIA's libraries: what is on a device is late there, and what nothing orders is found."""
import json
import re

import world
from world import PROGRAMS, REPOSITORY

STAND_INS = REPOSITORY / "build" / "tests" / "stand_ins"
NCCL = "own_gpu=1 "  # what each process has of its own, ranks may use together


def words_on(stand_in, program):
    return ["env", f"LD_LIBRARY_PATH={STAND_INS}", f"HVD_STAND_IN={stand_in}", *program]


def run(here, *words, stand_in="", **how):
    outcome = here.hvdrun(*words[:-1], *words_on(stand_in, words[-1]), **how)
    assert "stand-in:" not in outcome.err, outcome
    return outcome


def run_nccl(here, *words, stand_in="", **how):
    """As `run`, and nothing that NCCL can have goes another way."""
    return run(here, "-x", "HVD_GPU_OPERATIONS=nccl", *words, stand_in=NCCL + stand_in, **how)


@world.bound(150)
def test_random_operations_on_one_host():
    with world.hosts() as here:
        for np, first, last in ((1, 1, 2), (2, 3, 8), (4, 9, 11)):
            outcome = run(here, "-np", np, (PROGRAMS / "differential", first, last, "gpu"), seconds=55)
            assert outcome.must(0).out.count("all as planned") == np, outcome
        here.must_be_clean()


@world.bound(150)
def test_random_operations_on_two_hosts():
    with world.hosts(2) as here:
        for np, hosts, first, last in ((2, "host0:1,host1:1", 1, 4), (4, "host0:2,host1:2", 5, 6)):
            outcome = run(here, "-x", "HVD_GPU_OPERATIONS=host", "-np", np, "-H", hosts,
                          (PROGRAMS / "differential", first, last, "gpu"), seconds=70)
            assert outcome.must(0).out.count("all as planned") == np, outcome
        here.must_be_clean()


@world.bound(150)
def test_random_operations_by_nccl():
    with world.hosts(2) as here:
        for np, hosts, first, last in ((1, "host0:1", 1, 3), (2, "host0:2", 4, 11), (4, "host0:4", 12, 16),
                                       (2, "host0:1,host1:1", 17, 20), (4, "host0:2,host1:2", 21, 22)):
            outcome = run(here, "-x", "HVD_LOG_LEVEL=info", "-np", np, "-H", hosts,
                          (PROGRAMS / "differential", first, last, "gpu"), stand_in=NCCL, seconds=70)
            assert outcome.must(0, "go by NCCL 2.28.9").out.count("all as planned") == np, outcome
        here.must_be_clean()


@world.bound(120)
def test_streams_are_kept_in_order_however_late_the_device_is():
    with world.hosts() as here:
        for delay in (0, 300):
            for mode in ("orders", "pairs", "large"):
                for runs in (run, run_nccl):
                    outcome = runs(here, "-np", 2, (PROGRAMS / "gpu_calls", mode), stand_in=f"delay_us={delay}")
                    assert outcome.must(0).out.count("done") == 2, outcome
        here.must_be_clean()


@world.bound(120)
def test_buckets_on_a_gpu_keep_the_order_of_streams():
    with world.hosts(2) as here:
        for delay in (0, 300):
            for np, hosts, runs in (3, "host0:3", run), (2, "host0:1,host1:1", run), (2, "host0:2", run_nccl), (3, "host0:2,host1:1", run_nccl):
                outcome = runs(here, "-np", np, "-H", hosts, (PROGRAMS / "gpu_calls", "buckets"), stand_in=f"delay_us={delay}")
                assert outcome.must(0).out.count("done") == np, outcome
        here.must_be_clean()


def test_a_barrier_between_hosts_waits_for_what_nccl_has_at_hand():
    with world.hosts(2) as here:
        outcome = run_nccl(here, "-np", 3, "-H", "host0:2,host1:1", (PROGRAMS / "gpu_calls", "large"), stand_in="delay_us=300", seconds=30)
        assert outcome.must(0).out.count("done") == 3, outcome
        outcome = run_nccl(here, "-np", 2, (PROGRAMS / "gpu_calls", "released"), stand_in="delay_us=150000", seconds=30)
        assert outcome.must(0).out.count("done") == 2, outcome
        here.must_be_clean()


def test_what_a_gpu_has_finished_is_not_said_to_be_stalled():
    with world.hosts() as here:
        outcome = run_nccl(here, "-x", "HVD_STALL_CHECK_TIME_SECONDS=1", "-np", 2, (PROGRAMS / "gpu_calls", "idle"))
        assert outcome.must(0).out.count("done") == 2 and "stalled" not in outcome.err, outcome
        here.must_be_clean()


def test_a_rank_that_has_joined_takes_part_in_the_others_groups():
    with world.hosts() as here:
        for runs in (run, run_nccl):
            assert runs(here, "-np", 3, (PROGRAMS / "gpu_calls", "joined")).must(0).out.count("done") == 3
        here.must_be_clean()


def test_launches_of_several_sets_keep_one_order():
    with world.hosts() as here:
        assert run_nccl(here, "-np", 3, (PROGRAMS / "gpu_sets", "crossed")).must(0).out.count("done") == 3
        here.must_be_clean()


def test_a_set_that_comes_when_nccl_is_at_work_goes_by_way_of_the_host():
    with world.hosts() as here:
        outcome = run(here, "-np", 3, (PROGRAMS / "gpu_sets", "late"), stand_in=NCCL)
        outcome.must(0, "of process set 1 go by way of the host: rank 0 uses NCCL in another process set")
        assert "refused" not in outcome.out and outcome.out.count("done") == 3, outcome
        outcome = run_nccl(here, "-np", 3, (PROGRAMS / "gpu_sets", "late")).must(0)
        refused = "refused: HVD_GPU_OPERATIONS is nccl, and NCCL cannot be used here: rank 0 uses NCCL in another"
        assert outcome.out.count(refused) == 4 and outcome.out.count("done") == 3, outcome
        here.must_be_clean()


def test_why_nccl_is_not_used_is_said():
    with world.hosts() as here:
        program = (PROGRAMS / "gpu_calls", "orders")
        run(here, "-np", 2, program).must(0, "by way of the host: ranks 0 and 1 share a GPU")
        none = ("-x", "HVD_NCCL_LIBRARY=/no/such/libnccl.so")
        run(here, *none, "-np", 2, program, stand_in=NCCL).must(0, "HVD_NCCL_LIBRARY is /no/such/libnccl.so")
        outcome = run_nccl(here, *none, "-np", 2, (PROGRAMS / "gpu_calls", "refused")).must(0)
        assert outcome.out.count("NCCL cannot be used here: rank 0: HVD_NCCL_LIBRARY is") == 2, outcome
        here.must_be_clean()


def check_build(here, cards, driver, nccl):
    """Returns what --check-build says where the kernel has so many cards, a folder the driver, and a file NCCL."""
    script = "mount -t tmpfs cards /proc/driver; for i in $(seq $0); do mkdir -p /proc/driver/nvidia/gpus/0000:0$i:00.0; done; exec \"$@\""
    words = ("env", f"LD_LIBRARY_PATH={driver}", f"HVD_NCCL_LIBRARY={nccl}", world.HVDRUN, "--check-build")
    return here.run("unshare", "--mount", "sh", "-c", script, cards, *words).must(0).out


def test_check_build_ticks_what_can_be_used():
    with world.hosts() as here:
        alone = here.place("driver")
        here.run("mkdir", alone).must(0)
        here.run("cp", STAND_INS / "libcuda.so.1", alone).must(0)
        for driver, nccl in ((None, None), (alone, None), (None, STAND_INS / "libnccl.so.2"), (alone, STAND_INS / "libnccl.so.2")):
            for cards in (0, 2):
                report = check_build(here, cards, driver or "", nccl or "/no/such/libnccl.so.2")
                by_host = bool(driver and cards)
                ticks = re.findall(r"\[(.)\] (?:NCCL|CUDA, by way of the host)", report)
                assert ticks == ["X" if by_host and nccl else " ", "X" if by_host else " "], report
                assert (f"CUDA driver 13.0 ({alone}/libcuda.so.1)" in report) == bool(driver), report
                assert ("no CUDA driver: libcuda.so.1: cannot open" in report) == (not driver), report
                assert ("NCCL 2.28.9" if nccl else "no NCCL: HVD_NCCL_LIBRARY is /no/such/libnccl.so.2") in report, report
                assert ("no GPU on this machine" in report) == bool(driver and not cards), report
                assert ("GPUs 2" in report) == bool(cards), report
        here.run("rm", "-r", alone).must(0)
        here.must_be_clean()


def test_what_is_asked_wrongly_is_told():
    with world.hosts() as here:
        assert run(here, "-np", 3, (PROGRAMS / "gpu_calls", "errors")).must(0).out.count("done") == 3
        outcome = here.hvdrun("-np", 1, PROGRAMS / "gpu_calls", "errors")
        outcome.must(1, "libcuda.so.1")
        here.must_be_clean()


def test_a_gpu_that_fails_ends_the_epoch_for_all_by_its_name():
    with world.hosts() as here:
        for call, name in (("cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync"), ("cuLaunchHostFunc", "cuLaunchHostFunc"),
                           ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync")):
            outcome = run(here, "-np", 2, (PROGRAMS / "gpu_calls", "fails"), stand_in=f"fail={call}:1").must(0)
            assert outcome.out.count(f"cannot go on: GPU 0: {name}: fails on order") == 2, outcome
        for name in ("ncclGetUniqueId", "ncclCommInitRankConfig", "ncclAllReduce", "ncclGroupEnd"):
            outcome = run_nccl(here, "-np", 2, (PROGRAMS / "gpu_calls", "fails"), stand_in=f"fail={name}:1").must(0)
            assert len(re.findall(rf"rank \d cannot go on: {name}: ", outcome.out)) == 2, outcome
        here.must_be_clean()


def end_by_a_death(here, stand_in, program):
    """Kills a rank of three that loop; the others hear of it, by hvd, before hvdrun's stop."""
    job = here.start_hvdrun("-np", 3, *words_on(stand_in, program)).wait_for("looping", 3)
    world.roles(here.hosts[0])[program[0].name][-1].kill()
    return job.wait(20).must(137, "was killed by signal 9")


def test_a_death_aborts_all_communicators_together():
    with world.hosts(1, slots=3) as here:
        for program in (PROGRAMS / "gpu_calls", "loop"), (PROGRAMS / "gpu_sets", "loop"):
            outcome = end_by_a_death(here, NCCL + "abort=together", program)
            assert len(re.findall(r"loop: rank \d on localhost was killed by signal 9", outcome.err)) == 2, outcome
            assert "does not let go" not in outcome.err, outcome
        here.must_be_clean()


def test_a_wait_on_the_host_hears_of_a_death():
    with world.hosts(1, slots=3) as here:
        for runs in (run, run_nccl):
            outcome = runs(here, "-np", 3, (PROGRAMS / "gpu_calls", "dies")).must(137)
            assert len(re.findall(r"loop: rank 2 on localhost was killed by signal 9", outcome.err)) == 2, outcome
        here.must_be_clean()


def test_an_abort_that_hangs_has_an_end_that_is_named():
    with world.hosts(1, slots=3) as here:
        outcome = run_nccl(here, "-np", 3, (PROGRAMS / "gpu_calls", "dies"), stand_in="hang=ncclCommAbort", seconds=30).must(137)
        assert len(re.findall("NCCL does not let go of GPU 0 within 4 s", outcome.err)) >= 1, outcome
        here.must_be_clean()


def test_a_death_ends_what_is_under_way_on_gpus():
    with world.hosts(2, slots=2) as here:
        for on in (0, 1):
            words = ("env", f"LD_LIBRARY_PATH={STAND_INS}", PROGRAMS / "gpu_calls", "loop")
            job = here.start_hvdrun("-np", 4, "--hostfile", here.hostfile, *words).wait_for("looping", 4)
            world.roles(here.hosts[on])["gpu_calls"][-1].kill()
            outcome = job.wait(15).must(137, "was killed by signal 9")
            assert len(re.findall(r"loop: rank \d on host\d was killed by signal 9", outcome.err)) >= 3, outcome
        here.must_be_clean()


def bench(here, *words):
    outcome = run(here, "-np", 2, (world.BIN / "hvd-bench", *words, "--iters", 3), seconds=50)
    return [json.loads(line.split("<stdout>:", 1)[1]) for line in outcome.must(0).out.splitlines()]


@world.bound(120)
def test_the_benchmark_measures_tensors_on_gpus_beside_nccl():
    with world.hosts() as here:
        for operation in ("allreduce", "allgather", "broadcast", "reducescatter", "alltoall"):
            for line in bench(here, operation, "--device", "cuda", "--raw", "nccl", "--sizes", "8,64K", "--json"):
                assert line["buffers"] == "cuda" and line["us_p50"] > 0, line
                assert abs(line["ratio"] - line["raw_nccl_us"] / line["in_flight_us"]) < 0.01, line
        for more, refusal in ((("--dtype", "int16", "--sizes", "8K"), "NCCL has no such type"), (("--sizes", "12"), "NCCL has equal shares only")):
            line, = bench(here, "allgather", "--device", "cuda", "--raw", "nccl", *more, "--json")
            assert line["raw_nccl_refusal"] == refusal and "ratio" not in line, line
        line, = bench(here, "gradients", "--device", "cuda", "--dtype", "uint8", "--json")
        assert line["tensors"] == 161 and line["buffers"] == "cuda", line
        here.must_be_clean()


def test_the_benchmark_says_why_it_cannot_use_gpus_or_nccl():
    with world.hosts() as here:
        words = (world.BIN / "hvd-bench", "allreduce", "--device", "cuda")
        here.hvdrun("-np", 2, *words).must(2, "--device cuda: there is no GPU to use here: libcuda.so.1")
        nowhere = (f"HVD_NCCL_LIBRARY={here.place('nowhere')}", *words, "--raw", "nccl")
        run(here, "-np", 2, nowhere).must(1, "raw NCCL cannot run: HVD_NCCL_LIBRARY is")
        run(here, "-np", 2, (*words, "--raw", "nccl"), stand_in="fail=ncclCommInitRankConfig:1").must(1, "raw NCCL cannot run: ncclCommInitRankConfig")
        for more, said in ((("--buffers", "arena"), "--buffers are the host's"), (("--async", "--views"), "--device cuda says nothing for --views")):
            run(here, "-np", 1, (*words, *more)).must(2, said)
        run(here, "-np", 1, (words[0], "idle", "--device", "cuda")).must(2, "--device cuda says nothing for idle")
        run(here, "-np", 1, (words[0], "allreduce", "--raw", "nccl")).must(2, "--raw is for --device cuda")
        here.must_be_clean()


def losses(outcome):
    return json.loads(outcome.must(0).out.splitlines()[-1].split("<stdout>:", 1)[1])["losses"]


@world.bound(90)
def test_training_with_gradients_on_gpus_is_that_on_cpus():
    with world.hosts() as here:
        words = (world.BIN / "train_digits", "--json", "--epochs", 3)
        for np in (1, 2):
            on_gpu = run(here, "-np", np, (*words, "--device", "cuda"), seconds=50)
            assert on_gpu.out.count("summed as tensors on the GPU: this example has no kernels") == 1, on_gpu
            assert losses(on_gpu) == losses(here.hvdrun("-np", np, *words)), on_gpu
        failing = ("env", f"LD_LIBRARY_PATH={STAND_INS}", "HVD_STAND_IN=fail=cuMemcpyHtoDAsync_v2:3")
        here.hvdrun("-np", 1, *failing, *words, "--device", "cuda").must(1, "train_digits: cuMemcpyHtoDAsync: fails on order")
        here.hvdrun("-np", 2, *words, "--device", "cuda").must(2, "train_digits: --device cuda: there is no GPU to use here: libcuda.so.1: cannot open")
        here.must_be_clean()
