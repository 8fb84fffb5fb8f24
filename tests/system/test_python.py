# SPDX-License-Identifier: Apache-2.0
"""The Python package: its tests on jobs of several sizes, and its life in programs of its own."""
import functools
import os
import pathlib
import shutil
import subprocess

import world

PYTHON = world.REPOSITORY / ".cache" / "python" / "bin" / "python"
TESTS = world.REPOSITORY / "python" / "tests"
VICTIM = TESTS / "programs" / "victim.py"
ENV = {"PYTHONPATH": str(world.REPOSITORY / "python"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


@functools.cache
def python():
    """The interpreter of scripts/setup --python; Skip says what it lacks."""
    if not PYTHON.exists():
        raise world.Skip("there is no .cache/python; scripts/setup --python makes it")
    asked = subprocess.run([PYTHON, "-c", "import numpy, pytest, torch"], capture_output=True, text=True)
    if asked.returncode != 0:
        raise world.Skip(f".cache/python: {asked.stderr.strip().splitlines()[-1]}")
    return PYTHON


def must_be_clean(here):
    """Nothing of hvd's is left; what torch, TensorFlow and MXNet's data loaders leave in /tmp and Keras in the home is their own."""
    for host in here.hosts:
        for place in (host.root / "tmp" / "torchinductor_root", host.root / "root" / ".keras", *host.root.glob("tmp/pymp-*")):
            shutil.rmtree(place, ignore_errors=True)
        for file in host.root.glob("tmp/__autograph_generated_file*"):
            file.unlink()
    here.must_be_clean()


COMPILED = TESTS / "pytorch" / "test_torch_compile.py"  # takes long: torch's compiler runs a C++ compiler
TYPED = TESTS / "pytorch" / "test_torch_typing.py"  # mypy reads all of torch, and one rank is enough for that


# test_python_jax and its like run them
WITH_JAX, WITH_KERAS, WITH_MXNET, WITH_TENSORFLOW, WITH_TF_KERAS = FRAMEWORKS = tuple(
    TESTS / f"with_{name}" for name in ("jax", "keras", "mxnet", "tensorflow", "tf_keras"))
ALL_BUT_THESE = (TESTS, *(f"--ignore={place}" for place in (COMPILED, TYPED, *FRAMEWORKS)))


def run_tests(here, np, *hosts, tests=ALL_BUT_THESE, interpreter=None, env=None):
    outcome = here.hvdrun("-np", np, *hosts, interpreter or python(), "-m", "pytest", "-x", "-c",
                          world.REPOSITORY / "python" / "pyproject.toml", *tests, env={**ENV, **(env or {})}, seconds=240)
    outcome.must(0)
    assert outcome.out.count(" passed") == np and " failed" not in outcome.out, outcome
    must_be_clean(here)


@world.bound(500)
def test_one_host():
    python()
    with world.hosts() as here:
        for np in world.rows(1, 4, with_all=(2,)):
            run_tests(here, np)


@world.bound(400)
def test_two_hosts():
    python()
    with world.hosts(2) as here:
        run_tests(here, 3, "-H", "host0:2,host1:1")


@world.bound(700)
def test_compiled():
    python()
    with world.hosts() as here:
        for np in world.rows(3, with_all=(1, 2)):
            run_tests(here, np, tests=(COMPILED,))


@world.bound(300)
def test_types():
    python()
    with world.hosts() as here:
        run_tests(here, 1, tests=(TYPED,))


def victim(here, np, mode, *hosts):
    return here.hvdrun("-np", np, *hosts, python(), VICTIM, mode, env=ENV, seconds=60)


@world.bound(200)
def test_ends_that_need_no_shutdown():
    python()
    with world.hosts() as here:
        for mode in ("leaves-without-shutdown", "leaves-with-work", "forks", "sessions", "handles-signals",
                     "handles-a-signal-in-a-wait", "interrupted-in-a-wait", "is-told-to-end-at-exit"):
            outcome = victim(here, 3, mode).must(0)
            assert outcome.out.count("done") == 3 and "Traceback" not in outcome.err, outcome
            must_be_clean(here)


@world.bound(120)
def test_an_exception_in_one_rank_is_named():
    python()
    with world.hosts(2) as here:
        for hosts in (("-H", "localhost:3"), ("-H", "host0:2,host1:1")):
            outcome = victim(here, 3, "raises-on-rank-1", *hosts).must(1, "rank 1", "out of cheese")
            assert outcome.out.count("was told") >= 1, outcome  # the other may be stopped before it says so
            must_be_clean(here)


@world.bound(200)
def test_data_loaders():
    python()
    with world.hosts() as here:
        assert victim(here, 2, "loads-data").must(0).out.count("done") == 2
        must_be_clean(here)


@world.bound(240)
def test_a_horovod_program_runs_unchanged():
    python()
    program = TESTS / "programs" / "horovod_script.py"
    with world.hosts(2) as here:
        for np, hosts, words in ((1, (), ()), (2, (), ("fp16",)), (3, ("-H", "host0:2,host1:1"), ())):
            checkpoint = here.place("checkpoint.pt")
            outcome = here.hvdrun("-np", np, *hosts, python(), "-m", "hvd.compat", program, checkpoint, *words, env=ENV, seconds=80).must(0)
            losses = {line.rpartition("loss ")[2] for line in outcome.out.splitlines()}
            assert outcome.out.count(f" of {np}: loss") == np and len(losses) == 1, outcome
            path = pathlib.Path(str(here.hosts[0].root) + checkpoint)
            assert path.stat().st_size > 1000
            path.unlink()
            must_be_clean(here)


@world.bound(240)
def test_the_digits_example_gives_the_same_losses_on_any_number_of_ranks():
    python()
    example = world.REPOSITORY / "examples" / "python" / "torch_digits.py"
    losses = {}
    with world.hosts(2) as here:
        for np, hosts in world.rows((1, ()), (4, ("-H", "host0:2,host1:2")), with_all=((2, ()),)):
            checkpoint = here.place("digits.pt")
            outcome = here.hvdrun("-np", np, *hosts, python(), example, "--epochs", 3, "--batch", 64, "--checkpoint", checkpoint, env=ENV,
                                  seconds=80).must(0)
            losses[np] = [float(line.split("loss ")[1].split()[0]) for line in outcome.out.splitlines() if "loss " in line]
            assert len(losses[np]) == 3, outcome
            path = pathlib.Path(str(here.hosts[0].root) + checkpoint)
            assert path.stat().st_size > 1000
            path.unlink()
            must_be_clean(here)
    for np in losses:
        assert all(abs(a - b) < 1e-3 for a, b in zip(losses[1], losses[np])), losses


def test_without_hvdrun_a_program_is_alone():
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("HVD_", "HOROVOD_"))}
    done = subprocess.run([python(), "-c", "import hvd.torch as h; h.init(); print(h.rank(), h.size())"], env={**alone, **ENV},
                          capture_output=True, text=True)
    assert done.stdout.split() == ["0", "1"], done
