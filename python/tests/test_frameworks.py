# SPDX-License-Identifier: Apache-2.0
"""hvd._frameworks: what hvdrun --check-build is told of the frameworks of a Python."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from hvd import _frameworks
from hvd._frameworks import Found, Surroundings

pytestmark = pytest.mark.apart

PYPROJECT = pathlib.Path(__file__).resolve().parent.parent / "pyproject.toml"
# As hvdrun does.
RUN = ("import sys; sys.path[:] = filter(None, sys.path); import runpy; "
       "runpy.run_path(sys.argv.pop(1), run_name='__main__')")
LIBRARIES = [each.library for each in _frameworks.FRAMEWORKS if each.library]


class Installed:
    """A folder of packages that are made up, an hvd among them."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.around = Surroundings(str(folder / "hvd"), str(folder / "lib"))
        for face in ("keras", "tensorflow/keras", "torch/compiled", "jax", "mxnet"):
            (folder / "hvd" / face).mkdir(parents=True)
        (folder / "lib").mkdir()
        for library in LIBRARIES:
            (folder / "lib" / library).touch()
        monkeypatch.setattr(sys, "path", [str(folder)])
        # This process may have imported the real ones.
        for framework in _frameworks.FRAMEWORKS:
            monkeypatch.delitem(sys.modules, framework.module, raising=False)
        monkeypatch.delitem(sys.modules, "jaxlib", raising=False)

    def add(self, module, version=None, distribution=None):
        (self.folder / module).mkdir()
        (self.folder / module / "__init__.py").write_text("raise SystemExit('it is not imported')")
        if version is not None:
            name = distribution or module
            info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")

    def look(self):
        return _frameworks.look_for_all(self.around)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    return Installed(tmp_path, monkeypatch)


def test_what_is_there_and_usable(installed):
    for module, version, distribution in (
            ("numpy", "1.23.5", None), ("tensorflow", "2.21.0", "tensorflow-cpu"),
            ("keras", "3.15.1", None), ("tf_keras", "2.21.0", None), ("torch", "2.13.0+cpu", None),
            ("jax", "0.10.2", None), ("jaxlib", "0.10.2", None), ("mxnet", "1.9.1", None)):
        installed.add(module, version, distribution)
    assert installed.look() == {
        "NumPy": Found("1.23.5"), "TensorFlow": Found("2.21.0"), "Keras": Found("3.15.1"),
        "tf_keras": Found("2.21.0"), "PyTorch": Found("2.13.0+cpu"), "torch.compile": Found(),
        "JAX": Found("0.10.2"), "MXNet": Found("1.9.1")}


def test_what_is_not_there(installed):
    (installed.folder / "torch").mkdir()  # a folder of that name is no package
    found = installed.look()
    assert found.pop("torch.compile").problem == "it needs PyTorch"
    assert {each.problem for each in found.values()} == {f"not installed for {sys.executable}"}


def test_versions_that_are_too_old(installed):
    for module, version in (("tensorflow", "2.15.1"), ("torch", "2.9.1"), ("keras", "2.15.0"),
                            ("jax", "0.9.2"), ("mxnet", "1.9.1"), ("numpy", "2.4.6")):
        installed.add(module, version)
    found = installed.look()
    assert found["TensorFlow"] == ("2.15.1", "hvd.tensorflow needs TensorFlow 2.16 or later")
    assert found["PyTorch"].problem == ""
    assert found["torch.compile"].problem == "hvd.torch.compiled needs PyTorch 2.10 or later"
    assert found["Keras"].problem == "hvd.keras needs Keras 3.12 or later"
    assert found["JAX"] == ("0.9.2", "hvd.jax needs JAX 0.10 or later")
    assert found["MXNet"].problem == "it needs NumPy 1.23; this is 2.4.6"


def test_what_belongs_to_them_is_missing(installed):
    for module, version in (("tensorflow", "2.19.1"), ("tf_keras", "2.16.0"), ("keras", "3.15.1"),
                            ("jax", "0.10.2")):
        installed.add(module, version)
    assert installed.look()["tf_keras"].problem == "it is not for TensorFlow 2.19.1"
    assert installed.look()["Keras"].problem == ""
    assert installed.look()["JAX"].problem.startswith("jaxlib is not installed")
    (installed.folder / "lib" / "libhvd_tensorflow.so").unlink()
    found = installed.look()
    assert found["TensorFlow"].problem == "libhvd_tensorflow.so is missing beside libhvd"
    assert found["tf_keras"].problem == "it needs TensorFlow"
    assert found["Keras"].problem == "hvd.keras needs one of TensorFlow, PyTorch, JAX"


def test_an_hvd_without_the_face_or_none(installed):
    installed.add("mxnet", "1.9.1")
    (installed.folder / "hvd" / "mxnet").rmdir()
    assert installed.look()["MXNet"].problem == "the hvd that this Python finds has no hvd.mxnet"
    found = _frameworks.look_for_all(installed.around._replace(hvd=""))
    assert found["MXNet"] == ("1.9.1", "this Python finds no hvd")


def test_a_package_without_a_record_or_with_a_broken_one(installed):
    installed.add("torch")
    installed.add("tensorflow", "of last week")
    found = installed.look()
    assert found["PyTorch"] == ("", "")
    assert found["TensorFlow"] == ("of last week", "")


def test_faces_refuse_what_is_too_old():
    with pytest.raises(ImportError, match="^hvd.jax needs JAX 0.10 or later; this is 0.4.38$"):
        _frameworks.require("hvd.jax", "0.4.38")
    for version in ("0.10", "0.10.2", "1.0", "0.10.0.dev1", "odd"):
        _frameworks.require("hvd.jax", version)


def test_the_answer_is_lines_that_stand_alone(tmp_path):
    """As hvdrun asks, in a Python that finds hvd and in one that does not."""
    for path, problem in ((str(PYPROJECT.parent), ""), ("", "finds no hvd; with PYTHONPATH=")):
        done = subprocess.run(
            [sys.executable, "-c", RUN, _frameworks.__file__, str(tmp_path)],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path)
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        assert all(line[0] == _frameworks.MARK for line in lines), done
        assert lines[-1][1:] == ["end"]
        assert lines[0][1:3] == ["python", ".".join(map(str, sys.version_info[:3]))]
        assert problem in lines[0][3] and bool(problem) == bool(lines[0][3])
        assert [line[2] for line in lines if line[1] == "framework"] == [
            each.title for each in _frameworks.FRAMEWORKS]


def test_pyproject_says_the_same():
    """The extras of the wheel ask for what the faces ask for."""
    text = PYPROJECT.read_text()
    for framework in _frameworks.FRAMEWORKS:
        asked = re.search(rf'^[\w-]+ = \[.*"{framework.module}(?:-cpu)?>=([\d.]+)', text,
                          re.MULTILINE)
        if asked and not framework.part_of:
            assert _frameworks.numbers_of(asked[1]) == framework.least, framework


def test_no_extra_brings_a_second_tensorflow():
    """tensorflow and tensorflow-cpu have the same files. A user who asks for either gets that."""
    extras = dict(re.findall(r"^([\w-]+) = (\[[^\]]*\])", PYPROJECT.read_text().partition(
        "[project.optional-dependencies]")[2].partition("\n[project.scripts]")[0], re.MULTILINE))
    assert extras["tensorflow"] == "[]" and "keras" in extras
    for name, brings in extras.items():
        assert ("tensorflow" in brings) == (name == "tensorflow-cpu")


@pytest.mark.parametrize("face, without, words", [
    ("hvd.tensorflow", "tensorflow", "pip install tensorflow (or tensorflow-cpu, "),
    ("hvd.keras", "keras", "hvd.keras needs Keras, which"),
    ("hvd.keras", "tensorflow", "install one of TensorFlow, PyTorch, JAX, and name it in KERAS_BA"),
])
def test_a_framework_that_is_not_there_is_named(face, without, words):
    if without == "tensorflow" and face == "hvd.keras":
        pytest.importorskip("keras")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['{without}'] = None; import {face}"],
        capture_output=True, text=True, env={**os.environ, "KERAS_BACKEND": "tensorflow"})
    assert done.returncode == 1 and words in done.stderr.splitlines()[-1], done.stderr
