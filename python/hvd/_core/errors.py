# SPDX-License-Identifier: Apache-2.0
"""The exceptions that `hvd.errors` shows to programs, and what makes one of a status."""
from __future__ import annotations

import re

from . import abi


class Error(RuntimeError):
    """`code` is the hvd_status_t, `status` its name ("HVD_ERR_MISMATCH"). `name`: the collective
    that failed, as it was called; "" if it was none. `rank`, `host`: of an AbortedError, whose
    doing it is, where that is known; else None and ""."""

    rank: int | None = None
    host: str = ""
    name: str = ""

    def __init__(self, message: object = "", code: int = abi.ERR_INTERNAL,
                 status: str = "HVD_ERR_INTERNAL") -> None:
        super().__init__(message)
        self.code = code
        self.status = status

    def __reduce__(self) -> tuple[type[Error], tuple[object, int, str]]:
        return type(self), (self.args[0], self.code, self.status)


class InvalidError(Error, ValueError):
    """An argument makes no sense by itself. Raised where the call is made; nothing was sent."""


class DuplicateError(InvalidError):
    """This rank has a call of this name pending already, or has made it just now and not asked
    whether it is done."""


class NotInitializedError(Error, ValueError):
    """There is no job: before init(), after shutdown(), or in the child of a fork, which
    knows no more than its parent's place."""


class UnsupportedError(Error, NotImplementedError):
    """This build or this version cannot do it."""


class LaunchError(Error):
    """The launcher's link is missing, refused or broken."""


class TimedOutError(Error, TimeoutError):
    """A key of the store did not come in time; the text names it."""


class JobError(Error):
    """The job of an hvd.run failed: `exit_code` is hvdrun's, the text what it said."""

    exit_code: int = 1


class RankError(JobError):
    """The function of an hvd.run raised on `rank`, on `host`; `text` is the traceback there."""

    text: str = ""


class HorovodInternalError(Error):
    """A collective failed. Its subclasses say why."""


class MismatchError(HorovodInternalError):
    """Ranks asked for different things under one name. All of them get this text; hvd goes on."""


class AbortedError(HorovodInternalError):
    """A rank died, left, or ran out of memory: the text names it."""


class InternalError(HorovodInternalError):
    """Out of memory, or a fault of hvd's."""


class HostsUpdatedInterrupt(Error):
    """The job's members are to change, on all ranks at the same point; nothing was lost. Its name,
    and `skip_sync`, are Horovod's: whether states are synced afterwards the epoch says."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__("the job's members are to change", abi.ERR_HOSTS_UPDATED,
                         "HVD_ERR_HOSTS_UPDATED")
        self.skip_sync = skip_sync

    def __reduce__(self) -> tuple[type[HostsUpdatedInterrupt], tuple[bool]]:  # type: ignore[override]
        return type(self), (self.skip_sync,)


class RemovedError(Error):
    """This process is in no later epoch of the elastic job: it is to end, with code 0."""


CLASSES: dict[int, type[Error]] = {
    abi.ERR_INVALID: InvalidError,
    abi.ERR_NOT_INITIALIZED: NotInitializedError,
    abi.ERR_MISMATCH: MismatchError,
    abi.ERR_DUPLICATE: DuplicateError,
    abi.ERR_ABORTED: AbortedError,
    abi.ERR_UNSUPPORTED: UnsupportedError,
    abi.ERR_TIMEOUT: TimedOutError,
    abi.ERR_LAUNCH: LaunchError,
    abi.ERR_INTERNAL: InternalError,
    abi.ERR_REMOVED: RemovedError,
}


def make(code: int, status: str, message: str) -> Error:
    """The exception for a status and its text."""
    if code == abi.ERR_HOSTS_UPDATED:
        return HostsUpdatedInterrupt()
    return CLASSES.get(code, Error)(message or status, code, status)


def invalid(message: str) -> InvalidError:
    """The error of an argument that Python refuses."""
    return InvalidError(message, abi.ERR_INVALID, "HVD_ERR_INVALID")


def unsupported(message: str) -> UnsupportedError:
    """The error of a request that hvd cannot do."""
    return UnsupportedError(message, abi.ERR_UNSUPPORTED, "HVD_ERR_UNSUPPORTED")


def not_initialized(message: str = "hvd has not been initialized; use hvd.init()"
                    ) -> NotInitializedError:
    """There is no job."""
    return NotInitializedError(message, abi.ERR_NOT_INITIALIZED, "HVD_ERR_NOT_INITIALIZED")


def launch(message: str) -> LaunchError:
    """The error when something that hvdrun needs is not there."""
    return LaunchError(message, abi.ERR_LAUNCH, "HVD_ERR_LAUNCH")


def job_failed(exit_code: int, words: str) -> JobError:
    """`words`: hvdrun's own."""
    error = JobError(words or f"hvdrun ended with code {exit_code}", abi.ERR_LAUNCH,
                     "HVD_ERR_LAUNCH")
    error.exit_code = exit_code
    return error


def rank_failed(rank: int, host: str, text: str) -> RankError:
    """`text`: the traceback."""
    error = RankError(f"rank {rank} on {host} raised:\n{text.rstrip()}", abi.ERR_LAUNCH,
                      "HVD_ERR_LAUNCH")
    error.rank, error.host, error.text = rank, host, text
    return error


def error_of(raised: BaseException) -> Error | None:
    """hvd's own exception for what a compiled program raised: frameworks hand on an error of their
    own and its text. None when it is nothing of hvd's."""
    if isinstance(raised, Error):
        return raised
    # PyTorch adds where in Python it was raised.
    found = re.search(r"\bHVD_(ERR_[A-Z_]+): (.*?)(?:\n\nAt:\n|\Z)", str(raised), re.DOTALL)
    code = getattr(abi, found[1], None) if found else None
    return make(code, f"HVD_{found[1]}", found[2]) if found and code is not None else None
