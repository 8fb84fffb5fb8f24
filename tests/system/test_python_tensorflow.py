"""hvd.tensorflow: its tests on jobs of several sizes, and how its programs end."""
import functools
import subprocess

import world
from test_python import ENV, TESTS, WITH_TENSORFLOW, must_be_clean, python, run_tests

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
        run_tests(here, 1, tests=(WITH_TENSORFLOW,))
        run_tests(here, 2, tests=(WITH_TENSORFLOW,))
        run_tests(here, 3, "-H", "host0:2,host1:1", tests=(WITH_TENSORFLOW,))


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
