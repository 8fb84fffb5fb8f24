# SPDX-License-Identifier: Apache-2.0
"""Makes `import horovod` give hvd. Each Python of an environment with the wheel hvd-horovod runs
install() as it starts (hvd_horovod.pth): so this imports nothing that is not loaded by then, not
even __future__, and all else waits until somebody asks for horovod."""
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_WITHOUT = "pip uninstall hvd-horovod"


class _Finder:
    """A meta-path finder for `horovod` alone; hvd.compat's own finds what is inside."""

    def find_spec(self, fullname: str, path: "Sequence[str] | None",
                  target: "ModuleType | None" = None) -> "ModuleSpec | None":
        return _find() if fullname == "horovod" else None


class _Refusal:
    """A loader that says why not. Programs that only look whether there is a horovod go on."""

    def __init__(self, why: str) -> None:
        self._why = why

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        raise ImportError(self._why, name=spec.name)

    def exec_module(self, module: "ModuleType") -> None:
        raise ImportError(self._why, name=module.__name__)


def _find() -> "ModuleSpec":
    from importlib.machinery import ModuleSpec
    from importlib.util import find_spec

    hvd = find_spec("hvd")
    if hvd is None or hvd.origin is None:
        why = (f"hvd-horovod needs hvd, and {sys.executable} finds none; pip install hvd, or "
               + _WITHOUT)
        return ModuleSpec("horovod", _Refusal(why))  # type: ignore[arg-type]
    finder = _finder_of(hvd.origin)
    ours: ModuleSpec = finder.HorovodFinder().find_spec("horovod", None)
    why = _why_not(ours)
    if why:
        return ModuleSpec("horovod", _Refusal(why))  # type: ignore[arg-type]
    finder.install()
    return ours


def _finder_of(origin: str) -> "ModuleType":
    """hvd.compat._finder of the hvd that lies there, without loading hvd."""
    import os
    from importlib.util import module_from_spec, spec_from_file_location

    name = "hvd.compat._finder"
    if name in sys.modules:
        return sys.modules[name]
    place = os.path.join(os.path.dirname(origin), "compat", "_finder.py")
    spec = spec_from_file_location(name, place)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _why_not(ours: "ModuleSpec") -> str:
    """Says which other horovod this Python has; "" when it has none."""
    import os
    from importlib.machinery import PathFinder
    from importlib.metadata import distributions

    for other in distributions(name="horovod"):
        return (f"hvd-horovod and Horovod {other.version} (in {other.locate_file('')}) are both "
                "installed, and `import horovod` cannot be both; keep one: pip uninstall horovod, "
                "or " + _WITHOUT)
    # One that nobody has installed. A folder without __init__.py has no origin, and a process that
    # multiprocessing has spawned may have hvd's own on its path.
    found = PathFinder.find_spec("horovod")
    if found is None or found.origin is None or ours.origin is None:
        return ""
    if os.path.realpath(found.origin) == os.path.realpath(ours.origin):
        return ""
    return (f"hvd-horovod is installed, and another horovod is {found.origin}, so that `import "
            "horovod` could be either; take that one out of sys.path (PYTHONPATH, the program's "
            "folder), or " + _WITHOUT)


def install() -> None:
    """From now on `import horovod` gives hvd."""
    sys.meta_path.insert(0, _Finder())
