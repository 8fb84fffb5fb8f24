# SPDX-License-Identifier: Apache-2.0
"""Horovod's exceptions."""
from __future__ import annotations

from hvd.errors import HorovodInternalError as HorovodInternalError
from hvd.errors import HostsUpdatedInterrupt as HostsUpdatedInterrupt


def get_version_mismatch_message(name: str, version: str, installed_version: str) -> str:
    """The message of HorovodVersionMismatchError."""
    return (f"{name} was built against version {version}, but version {installed_version} is "
            "installed")


class HorovodVersionMismatchError(ImportError):
    """A framework has another version than Horovod was built for. hvd is built for none."""

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(get_version_mismatch_message(name, version, installed_version))
        self.name = name
        self.version = version
        self.installed_version = installed_version
