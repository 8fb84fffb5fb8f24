# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.launch, answered by hvd: horovodrun, which is hvdrun.

    python -m horovod.runner.launch -np 4 python train.py
"""
from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

from horovod.common.util import ccl_built as ccl_built
from horovod.common.util import cuda_built as cuda_built
from horovod.common.util import ddl_built as ddl_built
from horovod.common.util import gloo_built as gloo_built
from horovod.common.util import mpi_built as mpi_built
from horovod.common.util import nccl_built as nccl_built
from horovod.common.util import rocm_built as rocm_built
from hvd._run import find_hvdrun as _find_hvdrun

_NAME = "horovodrun"  # by which hvdrun knows whose options these are


def _environment() -> dict[str, str]:
    return {"HVD_PYTHON": sys.executable, **os.environ}


def run_commandline() -> NoReturn:
    """horovodrun with this process's arguments. The program takes this process: its signals, its
    terminal and its exit code."""
    program = _find_hvdrun()
    os.execve(program, [_NAME, *sys.argv[1:]], _environment())


def check_build(verbose: bool) -> NoReturn:
    """Prints what this build can do, and ends the process with 0."""
    words = [_NAME, "--check-build", *(["--verbose"] if verbose else [])]
    sys.exit(subprocess.run(words, executable=_find_hvdrun(), env=_environment()).returncode)


if __name__ == "__main__":
    run_commandline()
