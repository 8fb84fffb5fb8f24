# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util.network, answered by hvd: a small service of one process, which others
ask. Both sides prove that they know its key before either reads anything that is run as code
(multiprocessing.connection's challenge). The messages are not encrypted.

Threads: a service has one that accepts, and one for each client that is being answered.
"""
from __future__ import annotations

import fcntl
import os
import queue
import socket
import socketserver
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any, TextIO

from horovod.runner.util.threads import in_thread

Address = tuple[str, int]
Addresses = Mapping[str, Sequence[Address]]

_PROOF_SECONDS = 20
_GONE_SECONDS = 5
_SIOCGIFADDR = 0x8915
_CHARACTERS = 1 << 16


class NoValidAddressesFound(Exception):
    """No address of the service can be reached, or there is none."""


class PingRequest:
    """Asks a service who it is."""


class PingResponse:
    """The service's name, and the address that it sees its client have."""

    def __init__(self, service_name: str, source_address: str) -> None:
        self.service_name = service_name
        self.source_address = source_address


class AckResponse:
    """It has been done."""


class AckStreamResponse:
    """Text follows."""


def _card_addresses() -> dict[str, str]:
    """The IPv4 address of each network card that has one."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(any_socket, _SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:  # it has none
                continue
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def _limit(a_socket: socket.socket, seconds: int) -> None:
    """Limits how long a read or write takes. 0: any time. (settimeout() would make it return at
    once, as a Connection sees it.)"""
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        a_socket.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", seconds, 0))


def _connection(a_socket: socket.socket) -> Connection:
    return Connection(os.dup(a_socket.fileno()))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 1024


class BasicService:
    """Answers the requests that `_handle` knows, on a port of its own, on all cards, or on those of
    `nics`. As soon as it is made."""

    def __init__(self, service_name: str, key: bytes, nics: Iterable[str] | None) -> None:
        self._service_name = service_name
        self._key = key
        self._nics = set(nics or ())
        self._answering = 0
        self._changed = threading.Condition()
        service = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                service._serve(self.request, self.client_address)

        self._server = _Server(("0.0.0.0", 0), Handler)
        self._addresses = self._find_addresses()
        self._thread = in_thread(self._server.serve_forever, (0.05,))

    def _find_addresses(self) -> dict[str, list[Address]]:
        found = {name: [(address, self.get_port())] for name, address in _card_addresses().items()
                 if not self._nics or name in self._nics}
        if not found and self._nics:
            self._server.server_close()
            raise NoValidAddressesFound("No available network interface found matching user "
                                        f"provided interface: {sorted(self._nics)}")
        return found

    def _serve(self, a_socket: socket.socket, client: Address) -> None:
        with self._changed:
            self._answering += 1
        try:
            with _connection(a_socket) as connection:
                _limit(a_socket, _PROOF_SECONDS)
                deliver_challenge(connection, self._key)
                answer_challenge(connection, self._key)
                self._answer(connection, client)
        except Exception:  # a stranger, or a client that has gone: its side says what was wrong
            return
        finally:
            with self._changed:
                self._answering -= 1
                self._changed.notify_all()

    def _answer(self, connection: Connection, client: Address) -> None:
        request = connection.recv()
        try:
            response = self._handle(request, client)
        except Exception as error:
            response = error
        stream: TextIO | None = None
        if isinstance(response, tuple):
            response, stream = response
        connection.send(response)
        while stream is not None:
            text = stream.read(_CHARACTERS)
            connection.send(text)
            if not text:
                return

    def _handle(self, req: object, client_address: Address) -> object:
        """The answer: an object, or one and a stream of text. Subclasses know more requests."""
        if isinstance(req, PingRequest):
            return PingResponse(self._service_name, client_address[0])
        raise NotImplementedError(f"{self._service_name} does not know {type(req).__name__}")

    def addresses(self) -> dict[str, list[Address]]:
        """Where it can be reached: by card."""
        return dict(self._addresses)

    def get_port(self) -> int:
        """The port."""
        return int(self._server.server_address[1])

    def shutdown(self) -> None:
        """Returns when nobody is accepted any more, and those that were have their answers, or
        have had some time for them."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        with self._changed:
            self._changed.wait_for(lambda: self._answering == 0, _GONE_SECONDS)


class BasicClient:
    """Asks a service. It is looked for at all its addresses at once, and asked at the one that
    answers first; at one of the loop only if no other does."""

    def __init__(self, service_name: str, addresses: Addresses, key: bytes, verbose: int,
                 match_intf: bool = False, probe_timeout: float = 20, attempts: int = 3) -> None:
        """`match_intf`: this host's card must have the name of the service's."""
        self._service_name = service_name
        self._key = key
        self._verbose = verbose
        self._match_intf = match_intf
        self._probe_timeout = probe_timeout
        self._attempts = attempts
        self.source_address = ""  # this process's, as the service sees it
        self._addresses = self._probe(addresses)

    def _probe(self, addresses: Addresses) -> dict[str, list[Address]]:
        every = [(card, (one[0], one[1])) for card, many in addresses.items() for one in many]
        outside = [place for place in every if not place[1][0].startswith("127.")]
        for places in (outside, [place for place in every if place not in outside]):
            answers: queue.Queue[tuple[str, Address, str | None]] = queue.Queue()
            for card, address in places:
                in_thread(self._probe_one, (card, address, answers))
            for _ in places:
                card, address, source = answers.get()
                if source is not None:
                    self.source_address = source
                    return {card: [address]}
        raise NoValidAddressesFound(
            f"{self._service_name} does not answer at any of {every}. Do firewalls let its port "
            "through, and is its key this one's?")

    def _probe_one(self, card: str, address: Address,
                   answers: queue.Queue[tuple[str, Address, str | None]]) -> None:
        source = None
        for _ in range(self._attempts):
            try:
                answer = self._send_one(address, PingRequest())
            except Exception:  # not there, or not ours: the caller says it of all addresses
                continue
            if isinstance(answer, PingResponse) and answer.service_name == self._service_name and (
                    not self._match_intf or _card_addresses().get(card) == answer.source_address):
                source = answer.source_address
            break
        answers.put((card, address, source))

    def _send_one(self, addr: Address, req: object, stream: TextIO | None = None) -> Any:
        with socket.create_connection(addr, self._probe_timeout) as a_socket:
            a_socket.settimeout(None)
            _limit(a_socket, _PROOF_SECONDS)
            with _connection(a_socket) as connection:
                answer_challenge(connection, self._key)
                deliver_challenge(connection, self._key)
                connection.send(req)
                _limit(a_socket, 0)  # the answer may be one that is waited for
                response = connection.recv()
                if isinstance(response, AckStreamResponse):
                    for text in iter(connection.recv, ""):
                        if stream is not None:
                            stream.write(text)
                return response

    def _send(self, req: object, stream: TextIO | None = None) -> Any:
        """The answer; text that follows it goes to `stream`."""
        [[address]] = self._addresses.values()
        return self._send_one(address, req, stream)

    def addresses(self) -> dict[str, list[Address]]:
        """Where the service is asked."""
        return self._addresses
