# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util.env, answered by hvd."""
from __future__ import annotations

import os
import re

from horovod.runner.common.util import secret

LOG_LEVEL_STR = ["FATAL", "ERROR", "WARNING", "INFO", "DEBUG", "TRACE"]
# The names of variables that stay where they are when a job is started.
IGNORE_REGEXES = {"BASH_FUNC_.*", "OLDPWD", ".*CUDA_VISIBLE_DEVICES", secret.HOROVOD_SECRET_KEY}
KUBEFLOW_MPI_EXEC = "/etc/mpi/kubexec.sh"
_LAUNCHERS = (("HOROVOD_RANK", "HOROVOD_SIZE"), ("HVD_RANK", "HVD_SIZE"),
              ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"))


def is_exportable(v: str) -> bool:
    """Whether the ranks of a job get the variable of this name."""
    return not any(re.match(pattern, v) for pattern in IGNORE_REGEXES)


def get_env_rank_and_size() -> tuple[int, int]:
    """The rank and size that the launcher says in the environment, without init(). Without a
    launcher: 0 and 1. RuntimeError when only half of it is there."""
    for words in _LAUNCHERS:
        there = [word for word in words if word in os.environ]
        if len(there) == 1:
            raise RuntimeError("Could not determine process rank and size: only one of "
                               f"{words[0]} and {words[1]} found in environment")
        if there:
            return int(os.environ[words[0]]), int(os.environ[words[1]])
    return 0, 1


def is_kubeflow_mpi() -> bool:
    """Whether Kubeflow's MPI operator has started this process."""
    return os.environ.get("OMPI_MCA_plm_rsh_agent") == KUBEFLOW_MPI_EXEC  # noqa: SIM112
