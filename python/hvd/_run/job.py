# SPDX-License-Identifier: Apache-2.0
"""One hvdrun of hvd.run: gives it the call, shows what it says, and gathers what the ranks return.
No thread: all of it happens in the caller's."""
from __future__ import annotations

import os
import pickle
import re
import secrets
import selectors
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence

from .._core import errors
from . import orders
from .frames import FrameReader

_OF_A_RANK = re.compile(r"\[(\d+)\]<stdout>:(.*)", re.DOTALL)
_RANKS_ERR = re.compile(r"\[\d+\]<stderr>:")
_PIECE = 64 * 1024


class Lines:
    """A stream's bytes into pieces that end with \\r or \\n."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The pieces that are complete."""
        pieces = re.split(rb"(?<=[\r\n])", self._rest + data)
        self._rest = pieces.pop()
        return [piece.decode(errors="replace") for piece in pieces]

    def finish(self) -> list[str]:
        """The piece that has no end."""
        rest, self._rest = self._rest, b""
        return [rest.decode(errors="replace")] if rest else []


class Job:
    """`order` is for the ranks; `command` is hvdrun's, up to the ranks' command."""

    def __init__(self, command: Sequence[str], order: orders.Call, *,
                 by_environment: bool = False) -> None:
        """The order goes by stdin, which only those read whole who are there at the start; by
        environment it reaches those who come later, too, and stdin is no more than a sign of
        life."""
        self._command = list(command)
        self._word = secrets.token_hex(16)
        body = pickle.dumps({**order, "word": self._word})
        self._environment: dict[str, str] | None = None
        self._to_send = memoryview(struct.pack("<Q", len(body)) + body)
        if by_environment:
            self._environment = {**os.environ, orders.VARIABLE: orders.packed(body)}
            self._to_send = memoryview(b"")
        self._readers: dict[int, FrameReader] = {}
        self._last_rank = 0
        self.said: dict[int, orders.Said] = {}  # by rank, as they came
        self.words: list[str] = []  # hvdrun's own
        self.code = 0

    def run(self) -> None:
        """Until it has ended. An interrupt, or any error, ends it."""
        # A session of its own: Ctrl-C comes to us alone, and from us to it, once.
        with subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self._environment,
                              start_new_session=True) as process:
            try:
                self._pump(process)
            except BaseException:
                process.send_signal(signal.SIGINT)
                process.communicate()
                raise
            self.code = process.wait()

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout and process.stderr
        out, err = Lines(), Lines()
        with selectors.DefaultSelector() as waits:
            waits.register(process.stdout, selectors.EVENT_READ, (out, self._take_out))
            waits.register(process.stderr, selectors.EVENT_READ, (err, self._take_err))
            os.set_blocking(process.stdin.fileno(), False)
            waits.register(process.stdin, selectors.EVENT_WRITE)
            while len(waits.get_map()) > (process.stdin in waits.get_map()):
                for key, _ in waits.select():
                    if key.fileobj is process.stdin:
                        self._send(process.stdin.fileno(), waits)
                        continue
                    lines, take = key.data
                    data = os.read(key.fd, _PIECE)
                    take(lines.feed(data) if data else lines.finish())
                    if not data:
                        waits.unregister(key.fileobj)
        for reader in self._readers.values():
            reader.finish()

    def _send(self, descriptor: int, waits: selectors.BaseSelector) -> None:
        """Our end stays open: while it is, the ranks know that we live."""
        try:
            sent = os.write(descriptor, self._to_send[:_PIECE])
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended, and says why
            sent = len(self._to_send)
        self._to_send = self._to_send[sent:]
        if not self._to_send:
            waits.unregister(descriptor)

    def _take_out(self, pieces: list[str]) -> None:
        for piece in pieces:
            found = _OF_A_RANK.fullmatch(piece)
            if found:
                self._last_rank = int(found[1])
            self._reader(self._last_rank).feed(found[2] if found else piece)
        sys.stdout.flush()

    def _reader(self, rank: int) -> FrameReader:
        if rank not in self._readers:
            def show(line: str) -> None:
                sys.stdout.write(f"[{rank}]<stdout>:{line}")

            self._readers[rank] = FrameReader(self._word, show, self._take_message)
        return self._readers[rank]

    def _take_message(self, message: bytes) -> None:
        said: orders.Said = pickle.loads(message)
        self.said[said["rank"]] = said

    def _take_err(self, pieces: list[str]) -> None:
        for piece in pieces:
            if not _RANKS_ERR.match(piece):
                self.words.append(piece)
            sys.stderr.write(piece)
        sys.stderr.flush()

    def failure(self) -> errors.JobError | None:
        """The error that the caller is to be told; None: all went well, as hvdrun sees it: one that
        failed in an elastic job may have been replaced."""
        if self.code == 0:
            return None
        for said in self.said.values():
            # One that another rank's end has brought about says less than hvdrun's verdict.
            if "error" in said and not said["consequence"]:
                return errors.rank_failed(said["rank"], said["host"], said["text"])
        return errors.job_failed(self.code, "".join(self.words).strip())
