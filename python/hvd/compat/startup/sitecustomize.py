# SPDX-License-Identifier: Apache-2.0
"""hvdrun --compat horovod puts this folder first in PYTHONPATH: each Python of the job, also one
that a rank starts, reads this file before its program. It makes `import horovod` give hvd, then
takes itself out of the way of a sitecustomize of the user's.

It runs in whatever Python comes along, so it is written for old ones, too."""
import importlib.machinery
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_OLDEST = (3, 10)


class _TooOld:
    """In place of the finder: says why there is no horovod when a program wants it."""

    def find_spec(self, fullname, path, target=None):  # type: ignore[no-untyped-def]
        if fullname in ("horovod", "hvd"):
            raise ImportError("--compat horovod: hvd needs Python {}.{} or later, and {} is {}"
                              .format(*_OLDEST, sys.executable, sys.version.split()[0]))


def _install():  # type: ignore[no-untyped-def]
    if sys.version_info < _OLDEST:
        sys.meta_path.insert(0, _TooOld())
        return
    # Under the name by which hvd.compat finds it again, and without loading hvd.
    name = "hvd.compat._finder"
    path = os.path.join(os.path.dirname(_HERE), "_finder.py")
    spec = importlib.machinery.ModuleSpec(
        name, importlib.machinery.SourceFileLoader(name, path), origin=path)
    spec.has_location = True
    from importlib.util import module_from_spec

    finder = module_from_spec(spec)
    sys.modules[name] = finder
    spec.loader.exec_module(finder)  # type: ignore[union-attr]
    finder.install()


def _run_the_users():  # type: ignore[no-untyped-def]
    """The sitecustomize that Python would have found without us, if there is one."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_install()  # type: ignore[no-untyped-call]
_run_the_users()  # type: ignore[no-untyped-call]
