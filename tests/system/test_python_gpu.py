# SPDX-License-Identifier: Apache-2.0
"""The Python package on tensors on GPUs, over a stand-in for NVIDIA's driver: what is late, dropped early or out of order is found."""
import test_gpu
import test_python
import world

TESTS = test_python.TESTS / "gpu"


def run_tests(here, np, *hosts, stand_in="", tests=TESTS):
    outcome = test_gpu.run(here, "-np", np, *hosts, (test_python.python(), "-m", "pytest", "-x", "-c",
                           world.REPOSITORY / "python" / "pyproject.toml", tests), env=test_python.ENV, stand_in=stand_in, seconds=200)
    outcome.must(0)
    assert outcome.out.count(" passed") == np and " failed" not in outcome.out, outcome
    test_python.must_be_clean(here)


@world.bound(300)
def test_one_host():
    test_python.python()
    with world.hosts() as here:
        run_tests(here, 1)
        run_tests(here, 2, stand_in="delay_us=300")


@world.bound(300)
def test_by_nccl():
    test_python.python()
    with world.hosts(2) as here:
        run_tests(here, 2, "-H", "host0:2", "-x", "HVD_GPU_OPERATIONS=nccl", stand_in=test_gpu.NCCL, tests=TESTS / "test_gpu_arrays.py")
        run_tests(here, 2, "-H", "host0:2", stand_in=test_gpu.NCCL)
        run_tests(here, 3, "-H", "host0:2,host1:1", stand_in=test_gpu.NCCL + "delay_us=300")


@world.bound(240)
def test_two_hosts():
    test_python.python()
    with world.hosts(2) as here:
        run_tests(here, 3, "-H", "host0:2,host1:1")
