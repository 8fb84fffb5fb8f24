# SPDX-License-Identifier: Apache-2.0
"""The errors that hvd's calls raise. Every error is a RuntimeError and has the C ABI's code.

    Error
    ├── InvalidError (ValueError)             an argument makes no sense
    │   └── DuplicateError                    the name is pending on this rank already
    ├── NotInitializedError (ValueError)      before init(), after shutdown(), in a fork's child
    ├── UnsupportedError (NotImplementedError)
    ├── TimedOutError (TimeoutError)          a key of the store did not come in time
    ├── LaunchError                           the launcher's link is missing, refused or broken
    ├── JobError                              hvd.run: the job failed
    │   └── RankError                         a rank raised; the text is its traceback
    ├── HostsUpdatedInterrupt                 an elastic job's members are to change
    ├── RemovedError                          an elastic job goes on without this process
    └── HorovodInternalError                  the collective failed; its name is Horovod's
        ├── MismatchError                     ranks asked for different things; hvd goes on
        ├── AbortedError                      a rank died or left; the text names it
        └── InternalError
"""
from __future__ import annotations

from ._core.errors import (
    AbortedError,
    DuplicateError,
    Error,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InternalError,
    InvalidError,
    JobError,
    LaunchError,
    MismatchError,
    NotInitializedError,
    RankError,
    RemovedError,
    TimedOutError,
    UnsupportedError,
)

__all__ = [
    "AbortedError",
    "DuplicateError",
    "Error",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "InternalError",
    "InvalidError",
    "JobError",
    "LaunchError",
    "MismatchError",
    "NotInitializedError",
    "RankError",
    "RemovedError",
    "TimedOutError",
    "UnsupportedError",
]

for _name in __all__:  # tracebacks and pickles name this module, which programs know
    globals()[_name].__module__ = __name__
