# SPDX-License-Identifier: Apache-2.0
"""Horovod's package, answered by hvd."""
# The version of Horovod's interface that programs may count on; hvd's own is hvd.__version__.
__version__ = "0.28.1"


def __getattr__(name: str):  # type: ignore[no-untyped-def]
    # Loads nothing of hvd for a program that only asks for the version.
    if name == "run":
        from hvd import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
