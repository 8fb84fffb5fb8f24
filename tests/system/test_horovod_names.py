# SPDX-License-Identifier: Apache-2.0
"""The wheel hvd-horovod: `import horovod` is hvd's under whatever launcher, and never beside a Horovod."""
import contextlib
import os
import pathlib
import subprocess
import tempfile

import test_python
import world

SOURCE = world.REPOSITORY / "python" / "horovod_names"


def run(*words, **variables):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env={**os.environ, **variables}, timeout=120)
    return done.returncode, done.stdout + done.stderr


def must(*words, **variables):
    code, said = run(*words, **variables)
    assert code == 0, f"{words}: exit code {code}\n{said}"
    return said


@contextlib.contextmanager
def environment():
    """A fresh one, its Python and its folder of packages. hvd and NumPy come by PYTHONPATH."""
    maker = test_python.python()
    with tempfile.TemporaryDirectory() as place:
        must(maker, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--wheel-dir", place, SOURCE)
        must("/usr/bin/python3", "-m", "venv", "--without-pip", f"{place}/venv")
        packages, = pathlib.Path(place).glob("venv/lib/python*/site-packages")
        wheel, = pathlib.Path(place).glob("hvd_horovod-*-py3-none-any.whl")
        yield pathlib.Path(place) / "venv" / "bin" / "python", packages, wheel


def pip(python, *words):
    must(test_python.python(), "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", python, *words)


def install(python, wheel):
    pip(python, "install", "--no-index", "--no-deps", wheel)


def paths():
    """hvd's package, and the one that has NumPy."""
    numpy = must(test_python.python(), "-c", "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))").strip()
    return {"PYTHONPATH": f"{world.REPOSITORY / 'python'}:{numpy}", "PYTHONDONTWRITEBYTECODE": "1"}


@world.bound(120)
def test_horovod_is_hvd_once_the_wheel_is_there_and_until_it_is_taken_away():
    ask = "import sys; assert 'hvd' not in sys.modules; import horovod, horovod.common; import hvd; print(horovod.__file__, hvd.__file__)"
    with environment() as (python, packages, wheel):
        before = sorted(packages.rglob("*"))
        code, said = run(python, "-c", ask, **paths())
        assert code != 0 and "No module named 'horovod'" in said, said
        install(python, wheel)
        assert "hvd/compat/modules/horovod" in must(python, "-c", ask, **paths())
        # Nothing of hvd's is loaded by who does not ask for it, and other names are others'.
        must(python, "-c", "import sys, json; assert not any(name.startswith('hvd') for name in sys.modules)", **paths())
        code, said = run(python, "-c", "import horovodx", **paths())
        assert "No module named 'horovodx'" in said, said
        pip(python, "uninstall", "--yes", "hvd-horovod")
        left = set(packages.rglob("*")) - set(before)
        assert not [path for path in left if path.suffix != ".pyc" and path.name != "__pycache__"], left


@world.bound(120)
def test_an_installed_horovod_is_never_taken_for_hvd_nor_overwritten():
    with environment() as (python, packages, wheel):
        (packages / "horovod").mkdir()
        (packages / "horovod" / "__init__.py").write_text("print('the real one')\n")
        about = packages / "horovod-0.28.1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\n")
        install(python, wheel)
        assert (packages / "horovod" / "__init__.py").read_text() == "print('the real one')\n"
        code, said = run(python, "-c", "import horovod", **paths())
        assert code != 0 and "the real one" not in said and "Horovod 0.28.1" in said and "pip uninstall horovod" in said, said
        pip(python, "uninstall", "--yes", "hvd-horovod")
        assert "the real one" in must(python, "-c", "import horovod", **paths())
