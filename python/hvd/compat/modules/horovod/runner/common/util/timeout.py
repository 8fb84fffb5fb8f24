# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util.timeout, answered by hvd."""
from __future__ import annotations

import time


class TimeoutException(Exception):
    """Something took too long; `message` says what."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Timeout:
    """A time so many seconds from now. `message` has a place for {activity}."""

    def __init__(self, timeout: float, message: str) -> None:
        self._seconds = timeout
        self._end = time.monotonic() + timeout
        self._message = message

    def remaining(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - time.monotonic())

    def timed_out(self) -> bool:
        """Whether none are left."""
        return time.monotonic() >= self._end

    def check_time_out_for(self, activity: str) -> None:
        """TimeoutException, naming the activity, when none are left."""
        if self.timed_out():
            words = self._message.format(activity=activity).rstrip()
            raise TimeoutException(f"{words}{'' if words.endswith('.') else '.'} Timeout after "
                                   f"{self._seconds} seconds.")
