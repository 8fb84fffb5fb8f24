# SPDX-License-Identifier: Apache-2.0
"""Makes `import horovod` give hvd. Each Python of an environment with the wheel hvd-horovod runs
install() as it starts (hvd_horovod.pth), so nothing is loaded before a program asks for horovod."""
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Finder:
    """A meta-path finder for `horovod` alone; what is inside is found by its path."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "horovod":
            return None
        if fullname == "horovod":
            _must_be_alone()
        from hvd.compat._finder import HorovodFinder

        return HorovodFinder().find_spec(fullname, path, target)


def _must_be_alone() -> None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        other = distribution("horovod")
    except PackageNotFoundError:
        return
    raise ImportError(
        f"both hvd-horovod and Horovod {other.version} are installed in {sys.prefix}, and `import "
        "horovod` would be either; keep one: pip uninstall horovod, or pip uninstall hvd-horovod",
        name="horovod")


def install() -> None:
    """From now on `import horovod` gives hvd."""
    sys.meta_path.insert(0, _Finder())
