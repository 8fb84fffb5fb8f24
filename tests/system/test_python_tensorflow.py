# SPDX-License-Identifier: Apache-2.0
"""hvd.tensorflow: its tests on jobs of several sizes, and how its programs end."""
import functools
import pathlib
import shutil
import subprocess

import world
from test_python import ENV, TESTS, WITH_TENSORFLOW, must_be_clean, python, run_tests

EXAMPLE = world.REPOSITORY / "examples" / "python" / "tensorflow_digits.py"
PROGRAM = TESTS / "programs" / "tensorflow_ends.py"


@functools.cache
def python_with_tensorflow():
    asked = subprocess.run([python(), "-c", "from importlib.metadata import version; version('tensorflow-cpu')"], capture_output=True,
                           text=True)
    if asked.returncode != 0:
        raise world.Skip(f".cache/python: {asked.stderr.strip().splitlines()[-1]}")
    return python()


@world.bound(400)
def test_collectives_graphs_and_training():
    python_with_tensorflow()
    with world.hosts(2) as here:
        for np, *hosts in world.rows((1,), (3, "-H", "host0:2,host1:1"), with_all=((2,),)):
            run_tests(here, np, *hosts, tests=(WITH_TENSORFLOW,))


@world.bound(240)
def test_ends_and_beginnings():
    with world.hosts(2) as here:
        for mode in (("pending",), ("sessions", 100)):
            outcome = here.hvdrun("-np", 2, python_with_tensorflow(), PROGRAM, *mode, env=ENV, seconds=80).must(0)
            assert outcome.out.count("done") == 2, outcome
            must_be_clean(here)
        outcome = here.hvdrun("-np", 4, "-H", "host0:2,host1:2", python_with_tensorflow(), PROGRAM, "one-thread", env=ENV,
                              seconds=80).must(0)
        assert outcome.out.count("done") == 4, outcome
        must_be_clean(here)
        outcome = here.hvdrun("-np", 2, python_with_tensorflow(), PROGRAM, "dies", env=ENV, seconds=60).must(7, "rank 1")
        assert outcome.out.count("was told") == 1, outcome
        must_be_clean(here)


@world.bound(240)
def test_the_digits_example_gives_the_same_losses_on_any_number_of_ranks():
    losses = {}
    with world.hosts(2) as here:
        for np, hosts in ((1, ()), (4, ("-H", "host0:2,host1:2"))):
            folder = here.place("digits")
            outcome = here.hvdrun("-np", np, *hosts, python_with_tensorflow(), EXAMPLE, "--epochs", 2, "--checkpoint", folder, env=ENV,
                                  seconds=80).must(0)
            losses[np] = [float(line.split("loss ")[1].split(",")[0]) for line in outcome.out.splitlines() if "loss " in line]
            assert len(losses[np]) == 2, outcome
            again = here.hvdrun("-np", np, *hosts, python_with_tensorflow(), EXAMPLE, "--epochs", 3, "--checkpoint", folder, env=ENV,
                                seconds=80).must(0)
            assert "epoch 3: " in again.out and "epoch 2: " not in again.out, again
            shutil.rmtree(pathlib.Path(str(here.hosts[0].root) + folder))
            must_be_clean(here)
    assert all(abs(a - b) < 1e-3 for a, b in zip(losses[1], losses[4])), losses
