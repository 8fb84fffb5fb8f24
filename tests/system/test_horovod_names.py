# SPDX-License-Identifier: Apache-2.0
"""The wheel hvd-horovod: `import horovod` is hvd's under whatever launcher, costs nobody else anything, and is refused where it could be another."""
import contextlib
import email
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import zipfile

import test_adoption
import test_python
import world

SOURCE = world.REPOSITORY / "python" / "horovod_names"
PACKAGE = world.REPOSITORY / "python" / "hvd"
LIBRARIES = world.REPOSITORY / "build" / "lib"
HEADER = world.REPOSITORY / "runtime" / "include" / "hvd" / "hvd.h"
VERSION = ".".join(re.findall(r"^#define HVD_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", HEADER.read_text(), re.MULTILINE))
OURS = "/site-packages/hvd/compat/modules/horovod/"


def run(*words, **variables):
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # whoever runs the tests may have a checkout there
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env={**clean, **variables}, timeout=120, cwd="/")
    return done.returncode, done.stdout + done.stderr


def must(*words, **variables):
    code, said = run(*words, **variables)
    assert code == 0, f"{words}: exit code {code}\n{said}"
    return said


def must_fail(*words, said, **variables):
    code, told = run(*words, **variables)
    assert code != 0 and said in told, f"{words} must fail and say {said!r}: exit code {code}\n{told}"
    return told


def pip(*words):
    return (test_python.python(), "-m", "pip", "--disable-pip-version-check", *words)


def make_wheel(folder):
    folder.mkdir()
    must(*pip("wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, SOURCE), SOURCE_DATE_EPOCH="1700000000")
    wheel, = folder.iterdir()
    return wheel


def make_hvd_wheel(folder, version):
    """As scripts/wheel's, which takes long to make: what the package is made of, with what is built here, and no extras."""
    wheel = folder / f"hvd-{version}-py3-none-any.whl"
    about = f"hvd-{version}.dist-info"
    files = {f"hvd/{path.relative_to(PACKAGE)}": path for path in PACKAGE.rglob("*.py")}
    files |= {f"hvd/bin/{name}": world.BIN / name for name in ("hvdrun", "hvdd")}
    files |= {f"hvd/lib/{path.name}": path for path in LIBRARIES.glob("libhvd_*.so")} | {"hvd/lib/libhvd.so.0": LIBRARIES / "libhvd.so"}
    texts = {f"{about}/METADATA": f"Metadata-Version: 2.1\nName: hvd\nVersion: {version}\n",
             f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    texts[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, *texts, f"{about}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, path in files.items():
            archive.write(path, name)
        for name, text in texts.items():
            archive.writestr(name, text)


class Environment:
    """A fresh one that has NumPy and torch, and in `wheels` hvd-horovod's wheel and an hvd's to go with it."""

    def __init__(self, folder, version=VERSION):
        self.wheels, self.python = folder / "wheels", folder / "venv" / "bin" / "python"
        self.wheel = make_wheel(self.wheels)
        make_hvd_wheel(self.wheels, version)
        must("/usr/bin/python3", "-m", "venv", "--without-pip", folder / "venv")
        self.packages, = folder.glob("venv/lib/python*/site-packages")
        lent = must(test_python.python(), "-c", "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))")
        (self.packages / "lent.pth").write_text(lent)

    def install(self, *names):
        return pip("--python", self.python, "install", "--quiet", "--no-index", "--find-links", self.wheels, *names)

    def uninstall(self, *names):
        return pip("--python", self.python, "uninstall", "--quiet", "--yes", *names)

    def says(self, program):
        return (self.python, "-c", program)

    def put_horovod(self, folder):
        """Another one, in this folder."""
        (folder / "horovod").mkdir(parents=True)
        (folder / "horovod" / "__init__.py").write_text("print('the other one')\n")

    def put_distribution(self):
        about = self.packages / "horovod-0.28.1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
        return about


@contextlib.contextmanager
def scratch():
    """Simulated hosts see it, too."""
    with tempfile.TemporaryDirectory(prefix="hvd-test.", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


def test_the_wheel_is_small_pure_alike_and_of_hvds_version():
    with scratch() as folder:
        wheel = make_wheel(folder / "first")
        os.utime(SOURCE / "_hvd_horovod.py")
        assert make_wheel(folder / "second").read_bytes() == wheel.read_bytes(), "the same sources give another wheel"
        assert wheel.name == f"hvd_horovod-{VERSION}-py3-none-any.whl" and wheel.stat().st_size < 20_000, wheel
        with zipfile.ZipFile(wheel) as archive:
            about = f"hvd_horovod-{VERSION}.dist-info/"
            assert {name for name in archive.namelist() if not name.startswith(about)} == {"_hvd_horovod.py", "hvd_horovod.pth"}, archive.namelist()
            assert archive.read(about + "licenses/LICENSE").decode() == (world.REPOSITORY / "LICENSE").read_text()
            told = email.message_from_bytes(archive.read(about + "METADATA"))
        assert told.get_all("Requires-Dist") == [f"hvd=={VERSION}"], told
        both = [(source / "pyproject.toml").read_text() for source in (SOURCE, SOURCE.parent)]
        for field in ("license", "authors", "requires-python"):
            lines = {re.findall(rf"^{field} = .*", text, re.MULTILINE)[0] for text in both}
            assert len(lines) == 1, lines


NAMES: tuple[str, ...] = (
    "horovod", "horovod.torch", "horovod.torch.elastic", "horovod.runner", "horovod.runner.common.util", "horovod.common.util")
if (LIBRARIES / "libhvd_tensorflow.so").exists():
    NAMES += ("horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras")
IMPORTS = f"""
import importlib, importlib.util
for name in {NAMES}:
    file = importlib.import_module(name).__file__
    assert "{OURS}" in file, file
assert "{OURS}" in importlib.util.find_spec("horovod.mxnet").origin     # without MXNet
import horovod.torch, hvd.torch
assert horovod.torch.allreduce is hvd.torch.allreduce and "{OURS[:18]}" in hvd.__file__
try:
    import horovod.spark
except ModuleNotFoundError as error:
    assert "hvd has no horovod.spark" in str(error), error
"""
LOADED = "import sys; print(*sys.modules)"
LOOKS = f"import importlib.util, sys; assert '{OURS}' in importlib.util.find_spec('horovod').origin; assert 'hvd' not in sys.modules"
SPAWNS = """
import multiprocessing, horovod
def where(_):
    import horovod
    return horovod.__file__
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(where, [0]) == [horovod.__file__]
"""


@world.bound(180)
def test_horovod_is_hvd_from_when_the_wheel_is_installed_until_it_is_uninstalled():
    with scratch() as folder:
        here = Environment(folder)
        before, loaded = set(here.packages.rglob("*")), set(must(*here.says(LOADED)).split())
        must_fail(*here.says("import horovod"), said="No module named 'horovod'")
        must(*here.install("hvd-horovod"))  # which asks for hvd
        must(*here.says(IMPORTS), TF_CPP_MIN_LOG_LEVEL="2")
        # A program that does not ask for it has only the finder; one that only looks finds it.
        assert set(must(*here.says(LOADED)).split()) - loaded == {"_hvd_horovod"}
        must(*here.says(LOOKS))
        must_fail(*here.says("import horovodx"), said="No module named 'horovodx'")
        (folder / "spawns.py").write_text(SPAWNS)
        for words in (("-I",), ("-m", "hvd.compat")):
            must(here.python, *words, folder / "spawns.py")
        must(*here.uninstall("hvd-horovod"))
        must_fail(*here.says("import horovod"), said="No module named 'horovod'")
        must(*here.uninstall("hvd"))
        left = set(here.packages.rglob("*")) - before
        assert not left - {here.packages / "__pycache__"}, left  # pip leaves the folder, and nothing in it


@world.bound(120)
def test_a_horovod_that_could_be_either_is_refused_with_the_way_out():
    with scratch() as folder:
        here = Environment(folder)
        here.put_horovod(here.packages)
        about = here.put_distribution()
        must(*here.install("hvd-horovod"))
        other = here.packages / "horovod" / "__init__.py"
        assert other.read_text() == "print('the other one')\n", "it was overwritten"
        refused = f"ImportError: hvd-horovod and Horovod 0.28.1 (in {here.packages}) are both installed"
        for program in ("import horovod", "import horovod.torch", "import importlib.util; importlib.util.find_spec('horovod'); import horovod"):
            said = must_fail(*here.says(program), said=refused)
            assert "the other one" not in said and "pip uninstall horovod, or pip uninstall hvd-horovod" in said, said
        # Programs that can do without go on.
        must(*here.says("import importlib.util as u; assert u.find_spec('horovod')\ntry:\n import horovod\nexcept ImportError: pass"))
        # A user who says --compat has said which one.
        compat = (here.packages / "hvd" / "bin" / "hvdrun", "-np", 1, "--compat", "horovod", here.python, "-c")
        assert OURS in must(*compat, "import horovod; print(horovod.__file__)")
        # Either way out is one.
        shutil.rmtree(about)
        shutil.rmtree(other.parent)
        must(*here.says(f"import horovod; assert '{OURS}' in horovod.__file__"))
        here.put_horovod(here.packages)
        here.put_distribution()
        must(*here.uninstall("hvd-horovod"))
        assert must(*here.says("import horovod")) == "the other one\n"


@world.bound(120)
def test_a_horovod_on_the_path_is_refused_and_a_folder_of_that_name_is_none():
    with scratch() as folder:
        here = Environment(folder)
        must(*here.install("hvd-horovod"))
        (folder / "clones" / "horovod").mkdir(parents=True)
        must(*here.says(f"import horovod; assert '{OURS}' in horovod.__file__"), PYTHONPATH=str(folder / "clones"))
        here.put_horovod(folder / "clones" / "horovod")
        place = folder / "clones" / "horovod"
        said = must_fail(*here.says("import horovod"), said=f"another horovod is {place}/horovod/__init__.py", PYTHONPATH=str(place))
        assert "the other one" not in said and "pip uninstall hvd-horovod" in said, said


@world.bound(120)
def test_without_an_hvd_of_its_version_it_is_neither_installed_nor_imported():
    with scratch() as folder:
        here = Environment(folder, version="9.8.7")
        must_fail(*here.install("hvd-horovod"), said=f"hvd=={VERSION}")
        must(*here.install("--no-deps", "hvd-horovod"))
        must_fail(*here.says("import horovod"), said="ImportError: hvd-horovod needs hvd, and")
        must(*here.says("import json"))


PROGRAM = """
import torch
import horovod.torch as hvd
hvd.init()
model = torch.nn.Linear(2, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
total = hvd.allreduce(torch.ones(1), op=hvd.Sum).item()
print(f"rank {hvd.rank()} of {hvd.size()} has {total:.0f}", flush=True)
"""


@world.bound(120)
def test_a_horovod_program_runs_under_launchers_that_know_nothing_of_hvd():
    with scratch() as folder, world.hosts(2) as hosts:
        here = Environment(folder)
        must(*here.install("hvd-horovod"))
        program = folder / "program.py"
        program.write_text(PROGRAM)
        for launcher in test_adoption.LAUNCHERS.values():
            for count, among in ((2, 1), (2, 2)):
                job = hosts.run(*launcher(count, among), here.python, program, env={**test_adoption.ROOT, "OMP_NUM_THREADS": "1"}, seconds=60).must(0)
                assert sorted(re.findall(r"rank \d of 2 has 2", job.out)) == ["rank 0 of 2 has 2", "rank 1 of 2 has 2"], job
        test_python.must_be_clean(hosts)
