# SPDX-License-Identifier: Apache-2.0
"""hvd.mxnet: its tests on jobs of several sizes, how its programs end, Horovod's program and the example."""
import functools
import subprocess

import world
from test_python import ENV, TESTS, WITH_MXNET, must_be_clean, run_tests

NAME = "mxnet-1.9.1"
PYTHON = world.REPOSITORY / ".cache" / "frameworks" / NAME / "bin" / "python"
PROGRAM = TESTS / "programs" / "mxnet_ends.py"
HOROVODS = TESTS / "programs" / "horovod_mxnet.py"
EXAMPLE = world.REPOSITORY / "examples" / "python" / "mxnet_digits.py"


@functools.cache
def python_with_mxnet():
    """MXNet's interpreter; Skip says what it lacks."""
    if not PYTHON.exists():
        raise world.Skip(f"there is no .cache/frameworks/{NAME}; scripts/setup --framework {NAME} makes it, with Python 3.11")
    asked = subprocess.run([PYTHON, "-c", "import mxnet, pytest"], capture_output=True, text=True)
    if asked.returncode != 0:
        raise world.Skip(f".cache/frameworks/{NAME}: {asked.stderr.strip().splitlines()[-1]}")
    return PYTHON


@world.bound(300)
def test_operations_and_training():
    python_with_mxnet()
    with world.hosts(2) as here:
        for np, hosts in world.rows((1, ()), (3, ("-H", "host0:2,host1:1")), with_all=((2, ()), (4, ("-H", "host0:2,host1:2")))):
            run_tests(here, np, *hosts, tests=(WITH_MXNET,), interpreter=python_with_mxnet())


def ends(here, np, mode, *hosts, words=(), env=None):
    return here.hvdrun("-np", np, *hosts, python_with_mxnet(), PROGRAM, mode, *words, env={**ENV, **(env or {})}, seconds=80)


@world.bound(400)
def test_ends_and_beginnings():
    python_with_mxnet()
    with world.hosts() as here:
        for mode, words in (("pending", ()), ("pending-hvd-first", ()), ("sessions", (100,)), ("forks", ()), ("loads", ()),
                            ("interrupted", ())):
            outcome = ends(here, 2, mode, words=words).must(0)
            assert outcome.out.count("done") == 2, outcome
            must_be_clean(here)
        assert ends(here, 3, "early").must(0).out.count("done") == 3
        must_be_clean(here)
        outcome = ends(here, 2, "naive", env={"MXNET_ENGINE_TYPE": "NaiveEngine"}).must(0)
        assert outcome.out.count("done") == 2, outcome
        must_be_clean(here)


@world.bound(120)
def test_an_error_that_was_caught_is_not_told_again():
    python_with_mxnet()
    with world.hosts() as here:
        outcome = ends(here, 2, "caught").must(0)
        assert outcome.out.count("caught MismatchError") == 2 and outcome.out.count("done") == 2, outcome
        assert "Traceback" not in outcome.err and "hvd.mxnet" not in outcome.err, outcome
        outcome = ends(here, 2, "caught", words=("more",)).must(0)
        assert "Traceback" not in outcome.err and outcome.err.count("has not looked at") == 2, outcome
        assert "'allreduce.never looked at'" in outcome.err, outcome


@world.bound(200)
def test_a_death_is_told_to_the_others():
    python_with_mxnet()
    with world.hosts(2) as here:
        for np, hosts in ((2, ()), (4, ("-H", "host0:2,host1:2"))):
            for words in ((), ("gather",)):
                outcome = ends(here, np, "dies", *hosts, words=words).must(7, "rank 1")
                assert outcome.out.count("was told") >= 1, outcome  # others may be stopped before they say so
                must_be_clean(here)


@world.bound(200)
def test_horovods_program_runs_unchanged():
    python_with_mxnet()
    assert "import hvd" not in HOROVODS.read_text()
    bare = {name: value for name, value in ENV.items() if name != "PYTHONPATH"}  # hvdrun itself says where hvd is
    with world.hosts(2) as here:
        for np, hosts, words in ((1, (), ()), (2, (), ("--fp16-allreduce",)), (4, ("-H", "host0:2,host1:2"), ()),
                                 (2, (), ("--gradient-predivide-factor", 2))):
            outcome = here.hvdrun("-np", np, *hosts, "--compat", "horovod", python_with_mxnet(), HOROVODS, *words, env=bare,
                                  seconds=80).must(0)
            assert outcome.out.count(f" of {np}: validation accuracy") == np, outcome
            must_be_clean(here)


@world.bound(200)
def test_the_digits_example_gives_the_same_losses_on_any_number_of_ranks():
    python_with_mxnet()
    losses = {}
    with world.hosts(2) as here:
        for np, hosts in world.rows((1, ()), (4, ("-H", "host0:2,host1:2")), with_all=((2, ()),)):
            outcome = here.hvdrun("-np", np, *hosts, python_with_mxnet(), EXAMPLE, "--epochs", 3, env=ENV, seconds=80).must(0)
            losses[np] = [float(line.split("loss ")[1].split(",")[0]) for line in outcome.out.splitlines() if "loss " in line]
            assert len(losses[np]) == 3 and losses[np][-1] < losses[np][0], outcome
            must_be_clean(here)
    for np in losses:
        assert all(abs(a - b) < 1e-3 for a, b in zip(losses[1], losses[np])), losses
