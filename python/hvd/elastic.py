# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs: members come and go, and training goes on from what was committed.

    state = hvd.elastic.ObjectState(weights=weights, batch=0)

    @hvd.elastic.run
    def train(state):
        while state.batch < 1000:
            step(state)
            state.batch += 1
            if state.batch % 10 == 0:
                state.commit()

    train(state)

Start it with `hvdrun --min-np 2 --max-np 8 …`. In a job that is not elastic, and alone, it runs the
same.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TypeVar, cast

from ._core.errors import error_of
from ._core.runtime import RUNTIME
from ._elastic.epochs import Epoch, check_hosts, is_elastic, slot
from ._elastic.epochs import current as epoch
from ._state import KeptState, ObjectState, State
from .errors import (
    AbortedError,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InternalError,
    LaunchError,
    MismatchError,
    RemovedError,
)

F = TypeVar("F", bound=Callable[..., object])

__all__ = ["Epoch", "HorovodInternalError", "HostsUpdatedInterrupt", "ObjectState", "RemovedError",
           "State", "check_hosts", "epoch", "is_elastic", "reset", "run", "run_fn", "slot"]


def reset() -> None:
    """Leaves the epoch, broken or not, and joins the next. Ranks and size may be others then, and
    process sets but those of init() are gone. RemovedError: this process is in no later one."""
    RUNTIME.reset()


def run(func: F) -> F:
    """Decorates a function of a state, and more arguments, so that it goes on when members come and
    go: then the state goes back to the last commit, if some member was lost, all get the same, and
    the function is called again. It may also begin again where it has not come far; its program
    calls no collectives before it. A process that the job goes on without ends there, with code 0,
    and one whose job ends with code 1.
    Other exceptions, and errors of the program (MismatchError), leave it."""
    return run_fn(func, reset)


def run_fn(func: F, reset: Callable[[], object]) -> F:
    """As run; `reset` brings this process into the next epoch."""
    @functools.wraps(func)
    def wrapper(state: State, *args: object, **kwargs: object) -> object:
        ended: Exception | None = None  # why the last epoch did; None: this one is the first
        while True:
            try:
                if ended is None:
                    state.sync()
                else:
                    _enter(state, reset, ended)
                return func(state, *args, **kwargs)
            except RemovedError:
                sys.exit(0)
            except Exception as error:
                if not _ends_epoch(error):
                    raise
                ended = error
    return cast(F, wrapper)


def _ends_epoch(error: Exception) -> bool:
    """Whether it means that this epoch is of no more use, and the next one is. Frameworks raise
    some of hvd's errors as their own."""
    if isinstance(error, (MismatchError, InternalError)):
        return False  # the program's, or hvd's: they would come again
    return (isinstance(error, (HostsUpdatedInterrupt, HorovodInternalError))
            or isinstance(error_of(error), AbortedError))


def _enter(state: State, reset: Callable[[], object], ended: Exception) -> None:
    """Enters the next epoch. The launcher says what happens there, the same for all ranks; but
    where nobody can be lost, and for an error that a program has raised itself, the program says
    it."""
    try:
        reset()
    except (AbortedError, LaunchError) as error:
        if not is_elastic():
            raise
        # There is no other: hvdrun says why, and a trace of hvd's own frames says nothing.
        sys.exit(f"hvd: this rank ends with its job: {str(error).splitlines()[0]}")
    now = epoch()
    own = type(ended) is HorovodInternalError
    lost = not isinstance(ended, HostsUpdatedInterrupt)
    if now.rolls_back:
        if not state.restores_in_sync():
            state.restore()
    elif own or (lost and not is_elastic()):
        state.restore()
    if isinstance(state, KeptState):
        state.reset_when_synced()
        state.sync()
        state.reset_if_due()
        return
    state.on_reset()
    if lost or now.rolls_back or now.sync:
        state.sync()
