# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-check over stand-ins for NVIDIA's libraries: its table, what is planted to fail, and a machine without a GPU."""
import os
import re
import subprocess

import test_bundle
import world

CHECK = world.REPOSITORY / "scripts" / "gpu-check"
STAND_INS = world.REPOSITORY / "build" / "tests" / "stand_ins"
HOST_LINES = 3 + 3 + 1 + 1 + 1 + 1  # operations on 1, 2 and 4 ranks; orders, pairs, large; a death; training; speed; record
LINE = re.compile(r"^(PASS|FAIL|SKIP)  (.*?)  +(.*)$", re.MULTILINE)


def check(here, *words, stand_in=""):
    """Its outcome, and the lines of its table as (status, name, detail)."""
    environment = {"LD_LIBRARY_PATH": str(STAND_INS), "HVD_STAND_IN": stand_in}
    outcome = here.run(CHECK, "--short", "--out", here.place("checked"), *words, env=environment, seconds=100)
    return outcome, LINE.findall(outcome.out)


def clear(here):
    here.run("rm", "-r", here.place("checked")).must(0)
    here.must_be_clean()


def must_hold_calls(here):
    """That the record tells what hvd asks of a GPU by way of the host, in its order."""
    record = here.run("sh", "-c", f"cat {here.place('checked')}/calls.HOST.*").must(0).out
    first = r"\d+\.\d{6} \d+ cuMemcpyDtoHAsync_v2\(0x[0-9a-f]+, \d+, \d+, stream (0x[0-9a-f]+)\) = 0\n"
    copied = re.search(first, record)
    assert copied, record[:2000]
    waited = re.search(rf" cuStreamWaitEvent\(stream {copied[1]}, 0x[0-9a-f]+, 0\) = 0\n", record)
    assert waited and waited.start() < copied.start(), "the copy to the host follows an event of the caller's stream"


@world.bound(150)
def test_the_table_says_what_passes_on_one_gpu_and_what_was_not_looked_at():
    library = (STAND_INS / "libcuda.so.1").read_bytes()
    with world.hosts() as here:
        outcome, lines = check(here)
        outcome.must(0)
        by_host = [(status, name) for status, name, _ in lines if name.startswith("HOST: ")]
        assert len(by_host) == HOST_LINES and {status for status, _ in by_host} == {"PASS"}, outcome
        for status, name, detail in lines:
            known = status == "PASS" or detail.startswith(("this hvd sums no tensors by NCCL", "there is one here"))
            assert known, (status, name, detail)
        assert len(re.findall(r"^ +(?:4096|262144) +20 .* \d\.\d{3}$", outcome.out, re.MULTILINE)) >= 2, outcome
        assert here.run("cat", f"{here.place('checked')}/table.txt").must(0).out in outcome.out
        must_hold_calls(here)
        clear(here)
    assert (STAND_INS / "libcuda.so.1").read_bytes() == library, "what is recorded is not written to"


@world.bound(120)
def test_a_device_that_fails_is_a_line_that_fails():
    with world.hosts() as here:
        outcome, lines = check(here, stand_in="fail=cuMemcpyDtoHAsync_v2:30")
        failed = [detail for status, _, detail in lines if status == "FAIL"]
        assert len(failed) >= 5 and f", {len(failed)} failed, " in outcome.must(1).out, outcome
        assert any("cuMemcpyDtoHAsync: fails on order" in detail for detail in failed), failed
        clear(here)


def test_nccl_that_does_not_take_two_ranks_on_a_gpu_is_no_pass():
    with world.hosts() as here:
        outcome, lines = check(here, stand_in="fail=ncclCommInitRankConfig:1")
        speed, = (detail for _, name, detail in lines if name.startswith("HOST: speed"))
        assert "two ranks on one GPU are not supported by this NCCL: exit code 1: hvd-bench: raw NCCL cannot run" in speed, outcome
        clear(here)


def test_without_a_gpu_or_with_wrong_words_it_does_not_begin():
    with world.hosts() as here:
        here.run(CHECK).must(2, "gpu-check: no GPU can be used here: libcuda.so.1: cannot open")
        here.run(CHECK, env={"LD_LIBRARY_PATH": str(STAND_INS), "HVD_STAND_IN": "devices=0"}).must(2, "no GPU can be used here: there is no GPU.")
        here.run(CHECK, "--fast").must(2, "there is no option --fast")
        here.run(CHECK, "/etc").must(2, "there is no /etc/bin/hvdrun; build it")
        assert "--out FOLDER" in here.run(CHECK, "--help").must(0).out
        here.must_be_clean()


@world.bound(150)
def test_its_bundle_needs_nothing_of_the_repository():
    with test_bundle.scratch() as folder:
        made = subprocess.run([world.REPOSITORY / "scripts" / "bundle", "--no-build", "--with-tests", folder], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        tarball = next(folder.glob("hvd-gpu-check-*.tar.gz"))
        place = test_bundle.unpack(tarball, folder / "it's here")
        cards = "GPU-a name=one;GPU-b name=two"
        environment = {**os.environ, "HVD_STAND_IN": "devices=2 own_gpu=1", "HVD_STAND_IN_NVML": cards, "LD_LIBRARY_PATH": f"{STAND_INS}:{STAND_INS.parent / 'stand_in_nvml'}"}
        checked = subprocess.run([place / "gpu-check", "--short", "--out", folder / "checked"], capture_output=True, text=True, env=environment, cwd="/")
        assert checked.returncode == 0, checked
        names = [name for status, name, _ in LINE.findall(checked.stdout) if status == "PASS"]
        assert f"({place}/lib/libhvd.so.0)" in checked.stdout, checked
        assert "HOST: operations and types, 2 ranks" in names and "HOST: operations and types, 4 ranks that share 2 GPUs" in names, names
        assert "two or more GPUs" not in checked.stdout, checked
