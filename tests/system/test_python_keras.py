# SPDX-License-Identifier: Apache-2.0
"""hvd.keras on its three backends, and hvd.tensorflow.keras with tf_keras: their tests on jobs of several sizes."""
import functools
import subprocess

import world
from test_python import ENV, WITH_KERAS, WITH_TF_KERAS, must_be_clean, python, run_tests

EXAMPLE = world.REPOSITORY / "examples" / "python" / "keras_digits.py"


@functools.cache
def python_with_keras():
    asked = subprocess.run([python(), "-c", "from importlib.metadata import version; [version(p) for p in ('keras', 'tf_keras', 'jax')]"],
                           capture_output=True, text=True)
    if asked.returncode != 0:
        raise world.Skip(f".cache/python: {asked.stderr.strip().splitlines()[-1]}")
    return python()


def with_backend(name):
    return {"KERAS_BACKEND": name, "TF_CPP_MIN_LOG_LEVEL": "2"}


def run_keras(here, np, *hosts, tests=WITH_KERAS, backend="tensorflow"):
    # Keras warns of itself, in words that tests are counted by.
    run_tests(here, np, *hosts, tests=(tests, "-W", "ignore"), env=with_backend(backend))


@world.only_with_all
@world.bound(300)
def test_torch():
    python_with_keras()
    with world.hosts(2) as here:
        run_keras(here, 1, backend="torch")
        run_keras(here, 3, "-H", "host0:2,host1:1", backend="torch")


@world.only_with_all
@world.bound(300)
def test_jax():
    python_with_keras()
    with world.hosts() as here:
        run_keras(here, 2, backend="jax")


@world.bound(300)
def test_tensorflow():
    python_with_keras()
    with world.hosts(2) as here:
        for np, *hosts in world.rows((1,), (3, "-H", "host0:2,host1:1"), with_all=((2,),)):
            run_keras(here, np, *hosts)


@world.bound(300)
def test_tf_keras():
    python_with_keras()
    with world.hosts(2) as here:
        run_keras(here, 2, "-H", "host0:1,host1:1", tests=WITH_TF_KERAS)


@world.bound(240)
def test_the_digits_example_gives_the_same_losses_on_any_number_of_ranks():
    losses = {}
    with world.hosts(2) as here:
        for np, hosts, backend in ((1, (), "jax"), (4, ("-H", "host0:2,host1:2"), "jax")):
            checkpoint = here.place("digits.keras")
            outcome = here.hvdrun("-np", np, *hosts, python_with_keras(), EXAMPLE, "--epochs", 2, "--checkpoint", checkpoint,
                                  env={**ENV, **with_backend(backend)}, seconds=80).must(0)
            losses[np] = [float(line.split("loss ")[1].split(",")[0]) for line in outcome.out.splitlines() if "loss " in line]
            assert len(losses[np]) == 2, outcome
            assert here.placed() == ["digits.keras"]
            here.run("rm", checkpoint).must(0)
            must_be_clean(here)
        mixed = here.hvdrun("-np", 2, python_with_keras(), EXAMPLE, "--epochs", 2, "--mixed", "--warmup", 1,
                            env={**ENV, **with_backend("torch")}, seconds=80).must(0)
        assert float(mixed.out.rpartition("loss ")[2].split(",")[0]) < 1.0, mixed
        must_be_clean(here)
    assert all(abs(a - b) < 1e-3 for a, b in zip(losses[1], losses[4])), losses
