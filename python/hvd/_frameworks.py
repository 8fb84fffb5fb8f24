# SPDX-License-Identifier: Apache-2.0
"""The frameworks that hvd has a face for: from which version on, and which of them a Python has.

The faces ask `require`. `hvdrun --check-build` runs this file by itself, in the Python that a
program would get, and reads its lines: so it imports nothing of hvd's and no framework, and runs on
Pythons that are too old for hvd.
"""
from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PYTHON = (3, 10)
# Each line of the answer begins so: whatever else a Python prints is none.
MARK = "hvd-frameworks"


@dataclasses.dataclass(frozen=True)
class Framework:
    """A framework, or a part of one that asks for more."""

    title: str  # as --check-build shows it
    module: str  # what programs import
    distributions: tuple[str, ...]  # which packages bring it
    face: str  # the module of hvd's for it
    least: tuple[int, ...] = ()
    library: str = ""  # what the face loads, beside libhvd
    part_of: str = ""  # the framework's title


FRAMEWORKS = (
    Framework("NumPy", "numpy", ("numpy",), "hvd"),
    Framework("TensorFlow", "tensorflow",
              ("tensorflow", "tensorflow-cpu", "tensorflow-rocm", "intel-tensorflow", "tf-nightly"),
              "hvd.tensorflow", (2, 16), "libhvd_tensorflow.so"),
    Framework("Keras", "keras", ("keras", "keras-nightly"), "hvd.keras", (3, 12)),
    Framework("tf_keras", "tf_keras", ("tf-keras", "tf-keras-nightly"), "hvd.tensorflow.keras"),
    Framework("PyTorch", "torch", ("torch",), "hvd.torch", (2, 1)),
    Framework("torch.compile", "torch", ("torch",), "hvd.torch.compiled", (2, 10),
              "libhvd_torch.so", part_of="PyTorch"),
    Framework("JAX", "jax", ("jax",), "hvd.jax", (0, 10), "libhvd_jax.so"),
    Framework("MXNet", "mxnet", ("mxnet", "mxnet-cu112", "mxnet-cu117"), "hvd.mxnet", (1, 9, 1),
              "libhvd_mxnet.so"),
)
# Keras computes by one of these.
BACKENDS = ("TensorFlow", "PyTorch", "JAX")


def numbers_of(version: str) -> tuple[int, ...]:
    """2.16.0rc1 → (2, 16, 0)."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def of_face(face: str) -> Framework:
    """The framework that this module of hvd's is for."""
    return next(each for each in FRAMEWORKS if each.face == face)


def too_old(framework: Framework, version: str) -> str:
    """Why not this version; "" when it will do, or is unknown."""
    numbers = numbers_of(version)
    if not numbers or numbers >= framework.least:
        return ""
    least = ".".join(map(str, framework.least))
    return f"{framework.face} needs {framework.part_of or framework.title} {least} or later"


def require(face: str, version: str) -> None:
    """ImportError when this version of the face's framework is too old for it."""
    problem = too_old(of_face(face), version)
    if problem:
        raise ImportError(f"{problem}; this is {version}")


@contextlib.contextmanager
def needed(face: str) -> Iterator[None]:
    """Wraps the import of the face's framework; raises ImportError in words where there is none, or
    where Keras has nothing to compute by. hvd's extras bring neither a TensorFlow nor what Keras
    computes by: pip cannot ask for one of several, and would put a second TensorFlow over the
    first."""
    framework = of_face(face)
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == framework.module:
            first, *others = framework.distributions
            raise ImportError(f"{face} needs {framework.title}, which {sys.executable} does not "
                              f"have: pip install {first} (or {', '.join(others)})") from error
        if any(each.module == missing for each in FRAMEWORKS if each.title in BACKENDS):
            raise ImportError(
                f"{face}: {framework.title} is to compute by {missing}, which {sys.executable} has "
                f"not: install one of {', '.join(BACKENDS)}, and name it in KERAS_BACKEND "
                "(tensorflow, torch, jax)") from error
        raise


class Found(NamedTuple):
    """A framework in this Python."""

    version: str = ""
    problem: str = ""  # why it cannot be used


class Surroundings(NamedTuple):
    """Where hvd is."""

    hvd: str  # the package that this Python imports, or ""
    libraries: str  # the folder of libhvd


def package_of(module: str) -> str:
    """The folder of a module that could be imported, or ""."""
    spec = importlib.util.find_spec(module)
    # A folder that merely has the name has no origin.
    return os.path.dirname(spec.origin) if spec and spec.origin else ""


def version_of(package: str, distributions: tuple[str, ...]) -> str:
    """The version in the packages' own records, first those beside the module; "" when none has
    it."""
    places: Sequence[list[str]] = ([os.path.dirname(package)], sys.path)
    for place in places:
        for name in distributions:
            for found in importlib.metadata.distributions(name=name, path=place):
                return found.version or ""
    return ""


def look(framework: Framework, around: Surroundings, others: dict[str, Found]) -> Found:
    """`others` are those that were looked for before."""
    package = package_of(framework.module)
    if not package and framework.part_of:
        return Found(problem=f"it needs {framework.part_of}")
    if not package:
        return Found(problem=f"not installed for {sys.executable}")
    version = version_of(package, framework.distributions)
    problem = (too_old(framework, version) or _lacks_of_hvd(framework, around)
               or _lacks_of_others(framework, version, others))
    return Found("" if framework.part_of else version, problem)


def _lacks_of_hvd(framework: Framework, around: Surroundings) -> str:
    if not around.hvd:
        return "this Python finds no hvd"
    face = os.path.join(around.hvd, *framework.face.split(".")[1:])
    if not os.path.isdir(face) and not os.path.isfile(face + ".py"):
        return f"the hvd that this Python finds has no {framework.face}"
    if framework.library and not os.path.isfile(os.path.join(around.libraries, framework.library)):
        return f"{framework.library} is missing beside libhvd"
    return ""


def _lacks_of_others(framework: Framework, version: str, others: dict[str, Found]) -> str:
    """Returns what else of this Python it needs and lacks."""
    if framework.title == "Keras" and all(others[name].problem for name in BACKENDS):
        return f"hvd.keras needs one of {', '.join(BACKENDS)}"
    if framework.title == "tf_keras":
        tensorflow = others["TensorFlow"]
        if tensorflow.problem:
            return "it needs TensorFlow"
        if numbers_of(version)[:2] != numbers_of(tensorflow.version)[:2]:
            return f"it is not for TensorFlow {tensorflow.version}"
    if framework.title == "JAX" and not package_of("jaxlib"):
        return f"jaxlib is not installed for {sys.executable}"
    if framework.title == "MXNet" and numbers_of(others["NumPy"].version) >= (1, 24):
        return f"it needs NumPy 1.23; this is {others['NumPy'].version}"
    return ""


def look_for_all(around: Surroundings) -> dict[str, Found]:
    """All of them, in the order of FRAMEWORKS."""
    found: dict[str, Found] = {}
    # Frameworks that need others come last.
    for framework in sorted(FRAMEWORKS, key=lambda each: each.title in ("Keras", "tf_keras")):
        try:
            found[framework.title] = look(framework, around, found)
        except Exception as error:  # of a broken installation
            found[framework.title] = Found(problem=f"{type(error).__name__}: {error}")
    return {each.title: found[each.title] for each in FRAMEWORKS}


def python_problem(around: Surroundings) -> str:
    """Why this Python cannot import hvd."""
    if sys.version_info < PYTHON:
        return f"hvd needs Python {'.'.join(map(str, PYTHON))} or later"
    if not around.hvd:
        parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        return f"{sys.executable} finds no hvd; with PYTHONPATH={parent} it does"
    return ""


def answer(libraries: str) -> str:
    """The text that hvdrun reads. Each line is MARK, a word and what belongs to it, with tabs
    between."""
    around = Surroundings(package_of("hvd"), libraries)
    version = ".".join(map(str, sys.version_info[:3]))
    lines = [("python", version, python_problem(around), sys.executable), ("package", around.hvd)]
    lines += [("framework", title, *found) for title, found in look_for_all(around).items()]
    lines.append(("end",))
    return "".join("\t".join((MARK, *(re.sub(r"\s", " ", word) for word in line))) + "\n"
                   for line in lines)


if __name__ == "__main__":
    sys.stdout.write(answer(sys.argv[1]))
