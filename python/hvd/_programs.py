# SPDX-License-Identifier: Apache-2.0
"""The programs of the wheel, under the names that pip gives them."""
from __future__ import annotations

import os
import pathlib
import sys

_BIN = pathlib.Path(__file__).resolve().parent / "bin"


def _become(program: str, name: str) -> None:
    """The program itself takes this process: its signals, its terminal and its exit code."""
    path = str(_BIN / program)
    # This Python has what hvdrun --check-build looks for.
    environment = {"HVD_PYTHON": sys.executable, **os.environ}
    try:
        os.execve(path, [name, *sys.argv[1:]], environment)
    except OSError as error:
        sys.exit(f"{name}: {path}: {error.strerror}. It comes with hvd's wheel; a checkout has "
                 "build/bin/hvdrun")


def hvdrun() -> None:
    """hvdrun."""
    _become("hvdrun", "hvdrun")


def horovodrun() -> None:
    """hvdrun, which understands horovodrun's options when it is called so."""
    _become("hvdrun", "horovodrun")


def hvd_bench() -> None:
    """hvd-bench, to be run under hvdrun."""
    _become("hvd-bench", "hvd-bench")
