# SPDX-License-Identifier: Apache-2.0
"""The room of hvd.run(function): an hvdrun of its own that calls the function on every rank.

    launch ──> job ──> frames <── worker

launch: `run` itself; finds hvdrun and makes its command.  job: one hvdrun; sends the call down its
stdin and reads what comes up.  frames: how a result travels inside a rank's stdout.  worker: the
program of a rank (`python -m hvd._run.worker`), which nobody imports.

Enters: a function and hvdrun's options. Leaves: what each rank returned, or a RankError, or a
JobError.

Threads: all happens in the caller's thread, until the job has ended. In a rank's process one more
thread reads stdin, and ends the process when the caller is gone.

`hvd/__init__` and `hvd.run` import it. It imports `_core.errors` only.
"""
from .launch import find_hvdrun, run

__all__ = ["find_hvdrun", "run"]
