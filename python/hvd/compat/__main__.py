# SPDX-License-Identifier: Apache-2.0
"""python -m hvd.compat SCRIPT [ARGUMENT…]: runs a program written for Horovod."""
from __future__ import annotations

import io
import os
import runpy
import sys
from types import ModuleType

from . import install

_USAGE = """usage: python -m hvd.compat SCRIPT [ARGUMENT...]
       python -m hvd.compat -m MODULE [ARGUMENT...]"""


def run_script(path: str) -> None:
    """Runs it as `python path` would: as __main__, and with its folder first in the path."""
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    # It stays __main__ after it has ended: what it left for exit is looked up there.
    main = ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def main(words: list[str]) -> int:
    """Returns 2 for a wrong command line; else ends as the program does."""
    if words[:1] == ["-m"] and len(words) > 1:
        install()
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return 0
    if not words or words[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    if not os.path.isfile(words[0]):
        print(f"python -m hvd.compat: no such file: {words[0]}", file=sys.stderr)
        return 2
    install()
    sys.argv = words
    run_script(words[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
