# SPDX-License-Identifier: Apache-2.0
"""How a rank of hvd.run hands its result up: inside its own stdout, in frames that nothing which
the rank prints can break or forge. Results therefore travel where output does, inside hvdrun's
links.

A frame is one write of at most PIPE_BUF bytes, which a pipe keeps in one piece whoever else writes,
and begins with a secret word of the job. hvdrun may put newlines and prefixes into the middle of a
line, so newlines within a frame count for nothing."""
from __future__ import annotations

import base64
import binascii
import os
import re
import select
from collections.abc import Callable, Iterator

_PIECE = 2880  # bytes of a message in one frame; in base64 and with the word less than PIPE_BUF
_MORE, _LAST = ".", ":"


def frames(word: str, message: bytes) -> Iterator[bytes]:
    """The frames to be written, each with one write."""
    for at in range(0, max(len(message), 1), _PIECE):
        mark = _LAST if at + _PIECE >= len(message) else _MORE
        text = base64.b64encode(message[at:at + _PIECE]).decode()
        yield f"\n<{word}{mark}{text}>\n".encode()


def send(descriptor: int, word: str, message: bytes) -> None:
    """Writes it, waiting for room."""
    for frame in frames(word, message):
        while True:
            try:
                os.write(descriptor, frame)
            except BlockingIOError:  # the program has made its stdout so
                select.select([], [descriptor], [])
            else:
                break


class FrameReader:
    """One rank's stdout: whole lines without the frames to `show`, messages to `take`."""

    def __init__(self, word: str, show: Callable[[str], None],
                 take: Callable[[bytes], None]) -> None:
        self._start = f"<{word}"
        # hvdrun may have cut it anywhere.
        letters = "\n?".join(map(re.escape, self._start))
        self._frame = re.compile(f"{letters}\n?([.:])([A-Za-z0-9+/=\n]*)>\n")
        self._show, self._take = show, take
        self._text = ""  # neither shown nor taken
        self._pieces: list[bytes] = []  # of the message that has begun

    def feed(self, text: str) -> None:
        """`text` is what hvdrun shows of the rank, without its prefixes."""
        self._text += text
        while found := self._frame.search(self._text):
            # The newline before a frame is its own, unless it ends a line of the program's.
            before = self._text[:found.start()]
            self._show_lines(before[:-1] if _ends_with_an_empty_line(before) else before)
            self._text = self._text[found.end():]
            self._add(found[1], found[2])
        self._show_safe()

    def finish(self) -> None:
        """The stream has ended."""
        self._show_lines(self._text)
        self._text = ""

    def _add(self, mark: str, text: str) -> None:
        try:
            self._pieces.append(base64.b64decode(text))
        except binascii.Error as error:
            raise ValueError("a frame of a result is damaged") from error
        if mark == _LAST:
            message, self._pieces = b"".join(self._pieces), []
            self._take(message)

    def _show_lines(self, text: str) -> None:
        for line in re.split(r"(?<=[\r\n])", text):
            if line:
                self._show(line if line[-1] in "\r\n" else line + "\n")

    def _show_safe(self) -> None:
        """Shows the lines that can be no part of a frame."""
        at = self._text.rfind("<")
        tail = self._text[at:].replace("\n", "") if at >= 0 else ""
        begins = tail and (self._start.startswith(tail) or tail.startswith(self._start))
        safe = self._text[:at] if begins else self._text
        safe = safe[:max(safe.rfind("\n"), safe.rfind("\r")) + 1]
        if _ends_with_an_empty_line(safe):
            safe = safe[:-1]
        self._show_lines(safe)
        self._text = self._text[len(safe):]


def _ends_with_an_empty_line(text: str) -> bool:
    return text == "\n" or text.endswith(("\n\n", "\r\n\n"))
