"""Horovod's exceptions."""
from __future__ import annotations

from hvd.errors import HorovodInternalError as HorovodInternalError


class HostsUpdatedInterrupt(RuntimeError):
    """The job's hosts have changed; `skip_sync`: no rank has lost its state. Programs name it; hvd
    has no elastic jobs yet, and raises it never."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__()
        self.skip_sync = skip_sync


def get_version_mismatch_message(name: str, version: str, installed_version: str) -> str:
    """What HorovodVersionMismatchError says."""
    return (f"{name} was built against version {version}, but version {installed_version} is "
            "installed")


class HorovodVersionMismatchError(ImportError):
    """A framework has another version than Horovod was built for. hvd is built for none."""

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name = name
        self.version = version
        self.installed_version = installed_version
