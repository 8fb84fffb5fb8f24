# SPDX-License-Identifier: Apache-2.0
"""hvdrun --compat horovod: programs written for Horovod, byte for byte, and whatever Python they start."""
import json
import pathlib
import shutil

import world
from test_python import ENV, must_be_clean, python
from test_python_keras import python_with_keras

PROGRAMS = world.REPOSITORY / "python" / "tests" / "programs"
# No PYTHONPATH: hvdrun itself says where hvd is.
BARE = {name: value for name, value in ENV.items() if name != "PYTHONPATH"}
MNIST = PROGRAMS / "horovod_documentation.py"
KERAS, KERAS_TF2 = PROGRAMS / "horovod_keras3_documentation.py", PROGRAMS / "horovod_keras_documentation.py"


def compat(here, np, *words, hosts=(), env=None, seconds=60):
    return here.hvdrun("-np", np, *hosts, "--compat", "horovod", *words, env={**BARE, **(env or {})}, seconds=seconds)


def script(here, name, text):
    """A program of the test's own on host 0."""
    place = here.place(name)
    (here.hosts[0].root / place.lstrip("/")).write_text(text)
    return place


def remove(here):
    shutil.rmtree(here.hosts[0].root / here.own.lstrip("/"))
    (here.hosts[0].root / here.own.lstrip("/")).mkdir()


@world.bound(300)
def test_the_documentations_program_runs_unchanged():
    python()
    assert "hvd.compat" not in MNIST.read_text()
    with world.hosts(2) as here:
        for np, hosts in world.rows((1, ()), (3, ("-H", "host0:2,host1:1")), with_all=((2, ()),)):
            checkpoint = here.place("checkpoint-{epoch}.pth.tar")
            outcome = compat(here, np, python(), MNIST, "--epochs", 2, "--checkpoint-format", checkpoint, hosts=hosts, seconds=80).must(0)
            assert outcome.out.count("Test set: Average loss") == 2, outcome
            assert here.placed() == ["checkpoint-1.pth.tar", "checkpoint-2.pth.tar"], here.placed()
            remove(here)
            must_be_clean(here)


@world.bound(300)
def test_the_documentations_keras_programs_run_unchanged():
    """TensorFlow 2's needs tf_keras, as its own words say; it can also start its ranks by horovod.run."""
    asked = python_with_keras()
    legacy = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    with world.hosts() as here:
        for program, ending, epochs, env in ((KERAS_TF2, "h5", 3, legacy), (KERAS, "keras", 2, {"KERAS_BACKEND": "torch"})):
            assert "hvd.compat" not in program.read_text()
            outcome = compat(here, 2, asked, program, here.place("checkpoint-{epoch}." + ending), env=env, seconds=100).must(0)
            assert "Epoch 2: finished gradual learning rate warmup to" in outcome.out, outcome
            assert here.placed() == [f"checkpoint-{epoch}.{ending}" for epoch in range(1, epochs + 1)], here.placed()
            remove(here)
            must_be_clean(here)
        outcome = here.run(asked, "-m", "hvd.compat", KERAS_TF2, here.place("checkpoint.h5"), 2, env={**ENV, **legacy}, seconds=100).must(0)
        assert "2 ranks" in outcome.out, outcome
        remove(here)
        must_be_clean(here)


EVERYWHERE = """
import json, multiprocessing, os, subprocess, sys
import torch
import horovod.torch as hvd
import horovod.common.util

def of_a_child(_):
    import horovod.torch
    return horovod.torch.__name__

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        import horovod
        return float(horovod.__version__.startswith("0.28"))

if __name__ == "__main__":
    hvd.init()
    child = subprocess.run([sys.executable, "-c", "import horovod; print(horovod.__version__)"], capture_output=True, text=True, check=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.map(of_a_child, [0])
    loader = torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="spawn")
    print(json.dumps({
        "child": child.stdout.strip(), "spawned": spawned, "loaded": sum(item.item() for item in loader),
        "path": [place for place in sys.path if "startup" in place], "site": sys.modules["sitecustomize"].WHOSE,
        "ranks": [[os.environ["HOROVOD_" + name], getattr(hvd, name.lower())()]
                  for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")]}))
"""


@world.bound(180)
def test_every_python_of_the_job_finds_horovod():
    """Also processes that a rank starts, spawned ones, and data loaders'; the user's own sitecustomize runs."""
    python()
    with world.hosts() as here:
        program = script(here, "everywhere.py", EVERYWHERE)
        script(here, "sitecustomize.py", "WHOSE = 'the user'\n")
        outcome = compat(here, 2, python(), program, env={"PYTHONPATH": str(pathlib.Path(program).parent)}, seconds=120).must(0)
        for line in outcome.out.splitlines():
            said = json.loads(line.partition(":")[2])
            assert said["child"] == "0.28.1" and said["spawned"] == ["horovod.torch"] and said["loaded"] == 2, outcome
            assert said["path"] == [] and said["site"] == "the user", outcome
            assert all(word == str(number) for word, number in said["ranks"]), outcome
        assert len(outcome.out.splitlines()) == 2, outcome
        remove(here)
        must_be_clean(here)


def test_hvd_goes_before_another_horovod():
    python()
    with world.hosts() as here:
        program = script(here, "program.py", "import horovod, hvd\nprint('from', horovod.__file__, hvd.__file__)\n")
        for name in ("horovod.py", "hvd.py"):
            script(here, name, "raise SystemExit('the wrong one')\n")
        outcome = compat(here, 1, python(), program).must(0)
        assert outcome.out.count(str(world.REPOSITORY / "python" / "hvd")) == 2, outcome
        remove(here)
        must_be_clean(here)


def test_a_rank_without_horovod_says_what_to_do():
    python()
    with world.hosts() as here:
        words = (python(), "-c", "import horovod.torch")
        here.hvdrun("-np", 1, *words, env=BARE).must(1, "No module named 'horovod'", "give hvdrun --compat horovod")
        compat(here, 1, words[0], "-I", *words[1:]).must(1, "is Python started without -I, -E and -S?")
        must_be_clean(here)


def test_an_installation_has_the_package_and_one_without_it_says_so():
    python()
    with world.hosts() as here:
        prefix = here.place("hvd")
        here.run("cmake", "--install", world.REPOSITORY / "build", "--prefix", prefix).must(0)
        words = ("-np", 2, "--compat", "horovod", python(), "-c", "import horovod.torch as h; h.init(); print('size', h.size())")
        assert here.run(f"{prefix}/bin/hvdrun", *words, env=BARE).must(0).out.count("size 2") == 2
        here.run("rm", "-r", f"{prefix}/share/hvd/python").must(0)
        here.run(f"{prefix}/bin/hvdrun", *words, env=BARE).must(2, "needs hvd's Python package", "share/hvd/python")
        remove(here)
        must_be_clean(here)
