# SPDX-License-Identifier: Apache-2.0
"""Pushes calls to MXNet's engine, by libhvd_mxnet, which is loaded when this is imported.

A call returns at once. The engine begins it when all that was pushed before and changes its arrays
has ended, and what reads the results after it has ended. None of the engine's threads waits for
other ranks.

Errors are raised where the program waits for the results (`wait_to_read`, `asnumpy`, …): each is
an MXNetError that is hvd's exception as well.
"""
from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import mxnet
from mxnet.base import MXNetError, NDArrayHandle, register_error

from .._core import abi, errors, library
from .._core.runtime import RUNTIME
from ..process_sets import ProcessSet

NAME = "libhvd_mxnet.so"
KINDS = {"allreduce": 0, "allgather": 1, "reducescatter": 2, "broadcast": 3, "alltoall": 4}
# Calls without a name have one of so many: libhvd remembers names.
_UNNAMED = 256
# The most microseconds that a signal waits for its handler.
_LOOK_AROUND_US = 100_000
# The microseconds between two looks whether all calls have begun.
_LEAVING_LOOKS_US = 10_000

NDArray: TypeAlias = mxnet.nd.NDArray  # of which mx.np.ndarray is a subclass
_Row = ctypes.Array[ctypes.c_void_p]  # arrays' handles


class CallStruct(ctypes.Structure):
    """hvd_mxnet_call_t of libhvd_mxnet."""

    _fields_ = [
        ("options", ctypes.POINTER(abi.OptionsStruct)),
        ("inputs", ctypes.POINTER(ctypes.c_void_p)),
        ("outputs", ctypes.POINTER(ctypes.c_void_p)),
        ("results", ctypes.c_void_p),
        ("splits", ctypes.POINTER(ctypes.c_int64)),
        ("kind", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("split_count", ctypes.c_int32),
        ("priority", ctypes.c_int32),
    ]


def _load() -> ctypes.CDLL:
    loaded, tried = library.load_beside(NAME, os.environ.get("HVD_MXNET_LIBRARY"), ctypes.CDLL)
    if loaded is None:
        raise ImportError(f"hvd.mxnet finds no {NAME} that loads. Set HVD_MXNET_LIBRARY to its "
                          "path, or build it (scripts/build). Looked at:\n  " + "\n  ".join(tried))
    for name, result, arguments in (
        ("hvd_mxnet_load", ctypes.c_char_p, [ctypes.c_char_p]),
        ("hvd_mxnet_push", ctypes.c_char_p, [ctypes.POINTER(CallStruct)]),
        ("hvd_mxnet_may_leave", ctypes.c_int32, [ctypes.c_int64]),
        ("hvd_mxnet_leave", None, []),
        ("hvd_mxnet_results_create", ctypes.c_void_p, [ctypes.c_int32]),
        ("hvd_mxnet_results_free", None, [ctypes.c_void_p]),
        ("hvd_mxnet_results_wait", ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64]),
        ("hvd_mxnet_results_error", ctypes.c_char_p, [ctypes.c_void_p]),
        ("hvd_mxnet_results_take", ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int32]),
        ("hvd_mxnet_results_received", ctypes.POINTER(ctypes.c_int64), [ctypes.c_void_p]),
    ):
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    problem = loaded.hvd_mxnet_load(mxnet.base._LIB._name.encode())
    if problem:
        raise ImportError(f"hvd.mxnet cannot use MXNet {mxnet.__version__}: {problem.decode()}")
    return loaded


_library = _load()


def _prepare_to_leave() -> None:
    """Lets all pushed calls begin first: other ranks count on them."""
    while not _library.hvd_mxnet_may_leave(_LEAVING_LOOKS_US):
        pass  # signals have their handlers
    _library.hvd_mxnet_leave()


RUNTIME.before_leaving.append(_prepare_to_leave)


@atexit.register
def _leave_before_mxnet() -> None:
    """MXNet, which was imported before, waits at exit for all that is under way: what waits for
    other ranks ends when this one leaves, and nobody is left to be told of it."""
    RUNTIME.leave_at_exit()
    raised = tuple(_raised)
    try:
        with contextlib.suppress(errors.AbortedError, errors.NotInitializedError):
            mxnet.nd.waitall()  # raises again what the program may have caught
    except MXNetError as error:
        if str(error) not in raised:
            print(f"hvd.mxnet: the program has not looked at the result of a call that failed: "
                  f"{error}", file=sys.stderr)


# ---- errors ----

def _with_mxnet(ours: type[errors.Error]) -> type[errors.Error]:
    """hvd's exception that MXNet's programs catch as their own. It is pickled as hvd's alone."""
    def reduce(self: errors.Error) -> tuple[type[errors.Error], tuple[object, ...]]:
        return ours, (self.args[0], self.code, self.status)

    return type(ours.__name__, (ours, MXNetError), {
        "__doc__": ours.__doc__, "__module__": __name__, "__reduce__": reduce})


_CLASSES = {code: _with_mxnet(ours) for code, ours in errors.CLASSES.items()}


# Texts of the last errors that the program was given.
_raised: deque[str] = deque(maxlen=256)


def error_of_text(text: str) -> errors.Error:
    """The exception for a text of libhvd_mxnet's, as "HVD_ERR_MISMATCH: ..."."""
    made = errors.error_of(RuntimeError(text)) or errors.make(
        abi.ERR_INTERNAL, "HVD_ERR_INTERNAL", text)
    _raised.append(str(made))
    return _CLASSES[made.code](made.args[0], made.code, made.status)


def invalid(message: str) -> errors.Error:
    """The error of an argument that Python refuses."""
    return error_of_text(f"HVD_ERR_INVALID: {message}")


# MXNet looks at how a text of its engine's begins, and raises what is registered for that.
for _name in vars(abi):
    if _name.startswith("ERR_"):
        register_error(f"HVD_{_name}", error_of_text)


# ---- names ----

class _Unnamed:
    """Calls without a name are told apart by the order in which the program makes them: the engine
    may begin them in orders that differ from rank to rank."""

    def __init__(self) -> None:
        self._epoch = -1
        self._made: defaultdict[tuple[str, int | None], Iterator[int]] = defaultdict(
            itertools.count)

    def next(self, kind: str, process_set: ProcessSet) -> int:
        """The next call's number. Ranks may have made different numbers of calls before they
        joined."""
        if self._epoch != RUNTIME.epoch:
            self._epoch = RUNTIME.epoch
            self._made = defaultdict(itertools.count)
        return next(self._made[kind, process_set.process_set_id])


_unnamed = _Unnamed()


# ---- pushing ----

class Asked:
    """The call that is asked for on arrays. `words`: as Runtime.options'. `own_name` is no other
    call's."""

    __slots__ = ("kind", "own_name", "process_set", "words", "options", "priority")

    def __init__(self, kind: str, name: str | None, process_set: ProcessSet, priority: int = 0, *,
                 group: bool = False, **words: Any) -> None:
        RUNTIME.rank()  # there is a job
        whole = f"grouped_{kind}" if group else kind
        self.kind = kind
        self.own_name = name
        if not name:
            number = _unnamed.next(whole, process_set)
            self.own_name, name = f"unnamed.{number}", f"unnamed.{number % _UNNAMED}"
        self.process_set = process_set
        self.words = words
        self.options = RUNTIME.options(whole, name, process_set, **words)
        self.priority = priority


def _handles_of(tensors: Sequence[NDArray]) -> _Row:
    for tensor in tensors:
        if not isinstance(tensor, mxnet.nd.NDArray):
            raise TypeError(f"hvd.mxnet takes NDArrays, not {type(tensor).__name__}: "
                            "mx.nd.array(values) makes one")
    return (ctypes.c_void_p * len(tensors))(*[tensor.handle for tensor in tensors])


def _push(asked: Asked, inputs: _Row, outputs: _Row | None, results: int | None = None,
          splits: Sequence[int] | None = None) -> None:
    row = None if splits is None else (ctypes.c_int64 * max(len(splits), 1))(*splits)
    call = CallStruct(ctypes.pointer(abi.options_in(asked.options)), inputs,
                      outputs, results, row, KINDS[asked.kind], len(inputs), len(splits or ()),
                      asked.priority)
    problem = _library.hvd_mxnet_push(call)
    if problem is not None:
        raise error_of_text(problem.decode(errors="replace"))


def in_place(asked: Asked, tensors: Sequence[NDArray]) -> None:
    """The results replace the tensors."""
    handles = _handles_of(tensors)
    _push(asked, handles, handles)


def new(asked: Asked, tensors: Sequence[NDArray]) -> list[NDArray]:
    """The results, of the tensors' shapes, or of this rank's rows of them."""
    made = (ctypes.c_void_p * len(tensors))()
    _push(asked, _handles_of(tensors), made)
    return [type(tensor)(NDArrayHandle(handle))
            for tensor, handle in zip(tensors, made, strict=True)]


class _Results:
    """The results of a call whose shapes only the exchange tells."""

    def __init__(self, count: int) -> None:
        self.address = _library.hvd_mxnet_results_create(count)

    def __del__(self, free: Callable[[int], None] = _library.hvd_mxnet_results_free) -> None:
        free(self.address)

    def wait(self) -> str:
        """Waits until they are there. Returns why they are not, or an empty text."""
        while not _library.hvd_mxnet_results_wait(self.address, _LOOK_AROUND_US):
            pass  # signals have their handlers
        return str(_library.hvd_mxnet_results_error(self.address).decode(errors="replace"))

    def take(self, index: int, tensor: NDArray) -> NDArray:
        """The result for that tensor, which is asked for once."""
        handle = _library.hvd_mxnet_results_take(self.address, index)
        return type(tensor)(NDArrayHandle(handle))

    def received(self, members: int) -> list[int]:
        """Returns, for an alltoall, how many rows came from each of `members`."""
        return list(_library.hvd_mxnet_results_received(self.address)[:members])


def gathered(asked: Asked, tensors: Sequence[NDArray], splits: Sequence[int] | None = None,
             members: int = 0) -> tuple[list[NDArray], list[int]]:
    """Waits. Returns the results, and of an alltoall how many rows came from each of `members`."""
    results = _Results(len(tensors))
    _push(asked, _handles_of(tensors), None, results.address, splits)
    problem = results.wait()
    if problem:
        for tensor in tensors:
            tensor.wait_to_read()  # raises an error that it had
        raise error_of_text(problem)
    return ([results.take(index, tensor) for index, tensor in enumerate(tensors)],
            results.received(members))
