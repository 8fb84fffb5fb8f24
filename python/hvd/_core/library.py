# SPDX-License-Identifier: Apache-2.0
"""Finds and loads libhvd, twice: once to call while holding the interpreter's lock, once without.

Submitting is short and holds it: giving the lock away and taking it back costs two switches of
threads where another computes in Python. Waiting may be long and gives it away, once.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
from collections.abc import Callable, Iterator
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import TypeVar

from . import abi, errors

L = TypeVar("L")

SONAME = "libhvd.so.0"


def candidates() -> Iterator[str]:
    """Where libhvd may be, best first: what HVD_LIBRARY says, and nothing else then; beside the
    package; the build folder of a source checkout; the lib of an installed tree, whose
    share/hvd/python has the package; the loader's path."""
    told = os.environ.get("HVD_LIBRARY")
    if told:
        yield told
        return
    package = pathlib.Path(__file__).resolve().parent.parent
    folders = [package / "lib", package.parent.parent / "build" / "lib"]
    if package.parent.parts[-3:] == ("share", "hvd", "python"):
        folders.append(package.parents[3] / "lib")
    for folder in folders:
        for name in ("libhvd.so", SONAME):
            yield str(folder / name)
    yield SONAME


def find() -> str:
    """The path, or name, of the first that loads. ImportError says where was looked, and why not
    there."""
    tried = []
    for path in candidates():
        if "/" in path and not os.path.exists(path):
            tried.append(f"{path}: no such file")
            continue
        try:
            ctypes.PyDLL(path)
        except OSError as error:
            tried.append(str(error) if path in str(error) else f"{path}: {error}")
        else:
            return path
    raise ImportError("hvd finds no libhvd that loads. Set HVD_LIBRARY to its path, or build it "
                      "(scripts/build). Looked at:\n  " + "\n  ".join(tried))


class Library:
    """libhvd. `held` and `released` have the C ABI's functions: held keeps the interpreter's lock
    during a call."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.held = ctypes.PyDLL(path)
        self.released = ctypes.CDLL(path)
        for library in (self.held, self.released):
            _declare(library)

    def check(self, status: int) -> None:
        """Raises what the calling thread's last failing call returned."""
        if status:
            raise self.error(status)

    def error(self, status: int) -> errors.Error:
        """The exception for it. To be called by the thread that made the call."""
        status_name = self.held.hvd_status_name(status).decode()
        info = abi.ErrorInfoStruct(ctypes.sizeof(abi.ErrorInfoStruct))
        self.held.hvd_last_error_info(ctypes.byref(info))
        error = errors.make(status, status_name, info.message.decode(errors="replace"))
        error.rank = info.rank if info.rank >= 0 else None
        error.host = info.host.decode(errors="replace")
        error.name = info.name.decode(errors="replace")
        return error


def _declare(library: ctypes.CDLL) -> None:
    # Submitting calls are not declared: they get ctypes objects only, and checking these again
    # would take as long as the call.
    simple = [c_void_p]
    for name, result, arguments in (
        ("hvd_last_error_info", c_int32, [POINTER(abi.ErrorInfoStruct)]),
        ("hvd_status_name", c_char_p, [c_int32]),
        ("hvd_version", c_char_p, []),
        ("hvd_build_info", c_char_p, []),
        ("hvd_init", c_int32, [POINTER(abi.InitOptionsStruct)]),
        ("hvd_add_process_set", c_int32, [POINTER(c_int32), c_int32, POINTER(c_int32)]),
        ("hvd_add_process_set_members", c_int32,
         [POINTER(c_int32), c_int32, c_char_p, POINTER(c_int32)]),
        ("hvd_remove_process_set", c_int32, [c_int32]),
        ("hvd_process_set_ids", c_int32, [POINTER(c_int32), c_int32, POINTER(c_int32)]),
        ("hvd_process_set_ranks", c_int32, [c_int32, POINTER(c_int32)]),
        ("hvd_wait_join", c_int32, [c_uint64, POINTER(c_int32)]),
        ("hvd_wait", c_int32, [c_uint64]),
        ("hvd_wait_on", c_int32, [c_uint64, c_void_p]),
        ("hvd_release", c_int32, [c_uint64]),
        ("hvd_poll", c_int32, [c_uint64, POINTER(c_int32)]),
        ("hvd_wait_for", c_int32, [c_uint64, c_int64, POINTER(c_int32)]),
        ("hvd_wait_result", c_int32, [c_uint64, POINTER(abi.TensorStruct)]),
        ("hvd_wait_results", c_int32, [c_uint64, POINTER(abi.TensorStruct), c_int32]),
        ("hvd_wait_alltoall", c_int32,
         [c_uint64, POINTER(abi.TensorStruct), POINTER(c_int64)]),
        ("hvd_free_result", None, [POINTER(abi.TensorStruct)]),
        ("hvd_alloc", c_int32, [c_size_t, POINTER(c_void_p)]),
        ("hvd_alloc_on", c_int32, [c_size_t, c_int32, c_int32, POINTER(c_void_p)]),
        ("hvd_free", c_int32, simple),
        ("hvd_set_grace", c_int32, [c_double]),
        ("hvd_start_timeline", c_int32, [c_char_p]),
        ("hvd_stop_timeline", c_int32, []),
        ("hvd_metrics", c_int32, [c_void_p, POINTER(c_size_t)]),
        ("hvd_queue_create", c_int32, [POINTER(c_void_p)]),
        ("hvd_queue_fd", c_int32, simple),
        ("hvd_queue_next", c_int32,
         [c_void_p, POINTER(abi.CompletionStruct), c_int32, POINTER(c_int32)]),
        ("hvd_bucket_create", c_int32,
         [POINTER(c_int64), c_int32, POINTER(abi.BucketOptionsStruct), POINTER(c_void_p)]),
        ("hvd_bucket_view", c_int32, [c_void_p, c_int32, POINTER(c_void_p)]),
        ("hvd_bucket_ready", c_int32, [c_void_p, c_int32]),
        ("hvd_bucket_ready_on", c_int32, [c_void_p, c_int32, c_void_p]),
        ("hvd_bucket_wait", c_int32, simple),
        ("hvd_bucket_wait_on", c_int32, [c_void_p, c_void_p]),
        ("hvd_bucket_put", c_int32, [c_void_p, c_int32, c_void_p]),
        ("hvd_bucket_wait_for", c_int32, [c_void_p, c_int64, POINTER(c_int32)]),
        ("hvd_bucket_wait_tensor", c_int32, [c_void_p, c_int32, c_int64, POINTER(c_int32)]),
        ("hvd_bucket_reset", c_int32, simple),
        ("hvd_bucket_destroy", None, simple),
        ("hvd_epoch", c_int32, [POINTER(abi.EpochStruct)]),
        ("hvd_reset", c_int32, [POINTER(abi.InitOptionsStruct), POINTER(abi.EpochStruct)]),
        ("hvd_check_hosts", c_int32, []),
        ("hvd_slot", c_int32, []),
        ("hvd_is_elastic", c_int32, []),
        ("hvd_state_create", c_int32, [POINTER(c_void_p)]),
        ("hvd_state_add", c_int32, [c_void_p, c_char_p, POINTER(abi.TensorStruct), c_int32]),
        ("hvd_state_remove", c_int32, [c_void_p, c_char_p]),
        ("hvd_state_put", c_int32, [c_void_p, c_char_p, c_char_p, c_size_t]),
        ("hvd_state_get", c_int32,
         [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t)]),
        ("hvd_state_commit", c_int32, [c_void_p, POINTER(c_uint64)]),
        ("hvd_state_keep", c_int32, [c_void_p, POINTER(c_uint64)]),
        ("hvd_state_restore", c_int32, [c_void_p, POINTER(c_uint64)]),
        ("hvd_state_sync", c_int32, simple),
        ("hvd_state_count", c_int32, [c_void_p, POINTER(c_int32)]),
        ("hvd_state_entry", c_int32, [c_void_p, c_int32, POINTER(abi.StateEntryStruct)]),
        ("hvd_state_destroy", None, simple),
        ("hvd_store_set", c_int32, [c_char_p, c_char_p, c_size_t]),
        ("hvd_store_add", c_int32, [c_char_p, c_int64, POINTER(c_int64)]),
        ("hvd_store_compare_set", c_int32, [c_char_p] + 3 * [POINTER(abi.StoreValueStruct)]),
        ("hvd_store_delete", c_int32, [c_char_p, POINTER(c_int32)]),
        ("hvd_store_count", c_int32, [POINTER(c_int64)]),
        ("hvd_store_begin_get", c_int32, [c_char_p, c_double, POINTER(c_void_p)]),
        ("hvd_store_begin_wait", c_int32,
         [POINTER(c_char_p), c_int32, c_double, POINTER(c_void_p)]),
        ("hvd_store_wait_for", c_int32, [c_void_p, c_int64, POINTER(c_int32)]),
        ("hvd_store_end", c_int32, [c_void_p, POINTER(abi.StoreValueStruct)]),
        ("hvd_store_free", None, [POINTER(abi.StoreValueStruct)]),
    ):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments


LIBRARY = Library(find())


def load_beside(name: str, told: str | None, load: Callable[[str], L]
                ) -> tuple[L | None, list[str]]:
    """Loads, by `load`, a library of hvd's for a framework: `told`, and nothing else, if that is
    given; beside the libhvd that is loaded; wherever libhvd is looked for. It takes the libhvd that
    is loaded, by its soname. Returns it, or None, and where was looked and why not there."""
    folders = [pathlib.Path(path).parent if "/" in path else None
               for path in (LIBRARY.path, *candidates())]
    places = [told] if told else [str(folder / name) if folder else name for folder in folders]
    tried = []
    for path in dict.fromkeys(places):
        if "/" in path and not os.path.exists(path):
            tried.append(f"{path}: no such file")
            continue
        try:
            return load(path), []
        except OSError as error:
            tried.append(f"{path}: {error}")
    return None, tried
