# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, operator"
"""A rank of an elastic job with one fault of its own, for tests/system/elastic_python_faults.py.

The result is the same however often the job has gone back, and however many ranks it has: each rank
says `result STEPS TOTAL` at its end.
"""
import argparse
import ctypes
import os
import pathlib
import signal
import socket
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=24)
parser.add_argument("--every", type=int, default=4, help="steps between commits")
KINDS = ("none", "raise", "exit-3", "exit-0", "_exit-3", "_exit-0", "segv", "kill")
WHERES = ("import", "begin", "train", "saves", "saved", "syncs", "synced", "done")
parser.add_argument("--kind", choices=KINDS, default="none")
parser.add_argument("--where", choices=WHERES, default="train")
parser.add_argument("--at", type=int, default=0, help="the step")
parser.add_argument("--rank", type=int, default=0, help="whose; of its host at import")
parser.add_argument("--host", help="at import: on which")
parser.add_argument("--slot", type=int, help="or a slot")
parser.add_argument("--once", help="in the first epoch; this file marks it at import")
parser.add_argument("--anew", action="store_true", help="commit where it begins, too")
arguments = parser.parse_args()


def is_due(where: str, rank: int, slot: int) -> bool:
    if arguments.kind == "none" or arguments.where != where:
        return False
    if (slot != arguments.slot) if arguments.slot is not None else (rank != arguments.rank):
        return False
    if arguments.once is None:
        return True
    if where != "import":
        return bool(hvd.elastic.epoch().number == 1)
    try:
        pathlib.Path(arguments.once).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def fail() -> None:
    sys.stdout.flush()
    if arguments.kind == "raise":
        raise ValueError("a fault of the program's own")
    if arguments.kind == "segv":
        ctypes.string_at(0)
    if arguments.kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    leave = os._exit if arguments.kind.startswith("_") else sys.exit
    leave(int(arguments.kind[-1]))


here = arguments.host in (None, socket.gethostname())
if here and is_due("import", int(os.environ["HVD_LOCAL_RANK"]), -1):
    fail()

import numpy as np  # noqa: E402

import hvd  # noqa: E402


def pass_by(where: str, step: int) -> None:
    """The fault, if it is here."""
    if step == arguments.at and is_due(where, hvd.rank(), hvd.elastic.slot()):
        fail()


class State(hvd.elastic.ObjectState):
    """With a fault in each of its duties."""

    def save(self) -> None:
        pass_by("saves", self.step)
        super().save()
        pass_by("saved", self.step)

    def sync(self) -> None:
        pass_by("syncs", arguments.at)
        super().sync()
        pass_by("synced", arguments.at)


hvd.init()
state = State(step=0, total=0.0)


@hvd.elastic.run
def train(state: State) -> None:
    pass_by("begin", arguments.at)
    if arguments.anew:
        state.commit()
    while state.step < arguments.steps:
        pass_by("train", state.step)
        mean = hvd.allreduce(np.array([float(state.step + 1)]), name="gradient")
        state.total += float(mean[0])
        state.step += 1
        if state.step % arguments.every == 0:
            state.commit()


train(state)
pass_by("done", arguments.at)
print(f"result {state.step} {state.total:g}", flush=True)
