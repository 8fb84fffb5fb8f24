# SPDX-License-Identifier: Apache-2.0
"""python -m hvd._run.worker: a rank of hvd.run. Its stdin has the call, as long as the caller
lives; its result goes up in frames of its stdout."""
from __future__ import annotations

import os
import pickle
import signal
import stat
import struct
import sys
import threading
import traceback

from .._core import errors
from . import orders
from .frames import send
from .orders import Order, Said


def read_exactly(descriptor: int, count: int) -> bytes:
    """EOFError when the stream ends before."""
    pieces = []
    while count > 0:
        piece = os.read(descriptor, min(count, 1 << 20))
        if not piece:
            raise EOFError("the caller is gone")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def end_with(descriptor: int) -> None:
    """When the caller's end of stdin closes, so does this rank."""
    while True:
        try:
            if os.read(descriptor, 4096):
                continue
        except OSError:
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        return


def take_order(own_in: int) -> Order:
    """From the environment, else from stdin."""
    text = os.environ.pop(orders.VARIABLE, None)
    if text is not None:
        packed_order = orders.unpacked(text)
    else:
        packed_order = read_exactly(own_in, struct.unpack("<Q", read_exactly(own_in, 8))[0])
    order: Order = pickle.loads(packed_order)
    return order


def last_rank() -> int:
    """In an elastic job it may be another than at the start, as long as hvd is initialised."""
    hvd = sys.modules.get("hvd")
    if hvd is not None and hvd.is_initialized():
        return int(hvd.rank())
    return int(os.environ["HVD_RANK"])


def call(order: Order) -> object:
    """Calls what the caller has sent; what it needs may lie in the caller's path."""
    sys.path += [place for place in order["path"] if place not in sys.path]
    function, arguments, keywords = pickle.loads(order["call"])
    return function(*arguments, **keywords)


def packed(result: object) -> bytes:
    """As the caller can read it."""
    import cloudpickle

    data: bytes = cloudpickle.dumps(result)
    return data


def told(error: BaseException) -> str:
    """Its traceback, from the called function on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def main() -> int:
    """Returns the exit code."""
    own_out, own_in = os.dup(1), os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    order = take_order(own_in)
    # A member that came late may have no stdin.
    if stat.S_ISFIFO(os.fstat(own_in).st_mode):
        threading.Thread(target=end_with, args=(own_in,), daemon=True, name="hvd-caller").start()
    said: Said = {"host": os.environ.get("HVD_HOSTNAME", "")}
    code = 0
    try:
        said["result"] = packed(call(order))
    except BaseException as error:  # noqa: B036 - sys.exit(), too, is no result
        said["error"], said["text"] = type(error).__name__, told(error)
        said["consequence"] = isinstance(error, errors.AbortedError)
        sys.stderr.write(said["text"])
        code = 1
    said["rank"] = last_rank()
    sys.stdout.flush()
    send(own_out, order["word"], pickle.dumps(said))
    return code


if __name__ == "__main__":
    sys.exit(main())
