# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.service.compute_service, answered by hvd: where the tasks of a job that
computes and of one that trains find each other's dispatchers and workers."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from horovod.runner.common.util import network, timeout
from horovod.runner.util.threads import in_thread


@dataclass
class RegisterDispatcherRequest:
    """This dispatcher is at this address."""

    dispatcher_id: int
    dispatcher_address: str


@dataclass
class WaitForDispatcherRegistrationRequest:
    """Where is this dispatcher? Waits so many seconds."""

    dispatcher_id: int
    timeout: float


@dataclass
class WaitForDispatcherRegistrationResponse:
    """There."""

    dispatcher_address: str


@dataclass
class RegisterDispatcherWorkerRequest:
    """This worker serves this dispatcher."""

    dispatcher_id: int
    worker_id: int


@dataclass
class WaitForDispatcherWorkerRegistrationRequest:
    """Waits so many seconds for all workers of this dispatcher."""

    dispatcher_id: int
    timeout: float


class ShutdownRequest:
    """The service is needed no longer."""


class WaitForShutdownRequest:
    """Waits until it is not."""


class ComputeService(network.BasicService):
    """Keeps which dispatchers there are, and which workers each has."""

    NAME = "Compute service"

    def __init__(self, dispatchers: int, workers_per_dispatcher: int, key: bytes,
                 nics: Iterable[str] | None = None) -> None:
        if dispatchers <= 0:
            raise ValueError(f"The number of dispatchers must be larger than 0: {dispatchers}")
        if workers_per_dispatcher <= 0:
            raise ValueError("The number of workers per dispatcher must be larger than 0: "
                             f"{workers_per_dispatcher}")
        self._places: list[str | None] = [None] * dispatchers
        self._workers: list[set[int]] = [set() for _ in range(dispatchers)]
        self._workers_each = workers_per_dispatcher
        self._ended = False
        self._news = threading.Condition()
        super().__init__(self.NAME, key, nics)

    def _handle(self, req: object, client_address: network.Address) -> object:
        known: dict[type, Callable[[Any], object]] = {
            RegisterDispatcherRequest: self._register,
            RegisterDispatcherWorkerRequest: self._register_worker,
            WaitForDispatcherRegistrationRequest: self._wait_for_dispatcher,
            WaitForDispatcherWorkerRegistrationRequest: self._wait_for_workers,
            WaitForShutdownRequest: self._wait_for_end,
            ShutdownRequest: self._end,
        }
        handle = known.get(type(req))
        if handle is None:
            return super()._handle(req, client_address)
        with self._news:
            return handle(req)

    def _check(self, dispatcher: int) -> None:
        if not 0 <= dispatcher < len(self._places):
            raise IndexError(f"Dispatcher id must be within [0..{len(self._places) - 1}]: "
                             f"{dispatcher}")

    def _register(self, req: RegisterDispatcherRequest) -> network.AckResponse:
        self._check(req.dispatcher_id)
        before = self._places[req.dispatcher_id]
        if before not in (None, req.dispatcher_address):
            raise ValueError(f"Dispatcher with id {req.dispatcher_id} has already been registered "
                             f"under different address {before}: {req.dispatcher_address}")
        self._places[req.dispatcher_id] = req.dispatcher_address
        self._news.notify_all()
        return network.AckResponse()

    def _register_worker(self, req: RegisterDispatcherWorkerRequest) -> network.AckResponse:
        self._check(req.dispatcher_id)
        self._workers[req.dispatcher_id].add(req.worker_id)
        self._news.notify_all()
        return network.AckResponse()

    def _wait_for_dispatcher(self, req: WaitForDispatcherRegistrationRequest
                             ) -> WaitForDispatcherRegistrationResponse:
        self._check(req.dispatcher_id)
        self._wait(lambda: self._places[req.dispatcher_id] is not None, req.timeout,
                   f"dispatcher {req.dispatcher_id}", "the dispatcher")
        return WaitForDispatcherRegistrationResponse(self._places[req.dispatcher_id] or "")

    def _wait_for_workers(self, req: WaitForDispatcherWorkerRegistrationRequest
                          ) -> network.AckResponse:
        self._check(req.dispatcher_id)
        self._wait(lambda: len(self._workers[req.dispatcher_id]) >= self._workers_each,
                   req.timeout, f"workers for dispatcher {req.dispatcher_id}", "the workers")
        return network.AckResponse()

    def _wait(self, done: Callable[[], bool], seconds: float, for_whom: str, them: str) -> None:
        limit = timeout.Timeout(seconds, "Timed out waiting for {activity}. Try to find out what "
                                f"takes {them} so long to register or increase timeout.")
        self._news.wait_for(lambda: done() or self._ended, limit.remaining())
        if not done() and self._ended:
            raise RuntimeError(f"the compute service has ended while {for_whom} had not registered")
        if not done():
            limit.check_time_out_for(f"{for_whom} to register")

    def _wait_for_end(self, _: WaitForShutdownRequest) -> network.AckResponse:
        self._news.wait_for(lambda: self._ended)
        return network.AckResponse()

    def _end(self, _: ShutdownRequest) -> network.AckResponse:
        in_thread(self.shutdown)  # which waits for this answer
        return network.AckResponse()

    def shutdown(self) -> None:
        """Ends the waits, and the service. Again: does nothing more."""
        with self._news:
            again, self._ended = self._ended, True
            self._news.notify_all()
        if not again:
            super().shutdown()


class ComputeClient(network.BasicClient):
    """Asks a ComputeService. Its errors are raised here."""

    def __init__(self, compute_addresses: network.Addresses, key: bytes, verbose: int = 1) -> None:
        super().__init__(ComputeService.NAME, compute_addresses, key, verbose)

    def register_dispatcher(self, dispatcher_id: int, dispatcher_address: str) -> None:
        """The dispatcher is there."""
        self._send(RegisterDispatcherRequest(dispatcher_id, dispatcher_address))

    def wait_for_dispatcher_registration(self, dispatcher_id: int, timeout: float) -> str:
        """The dispatcher's address. TimeoutException when it does not come in so many seconds."""
        answer = self._send(WaitForDispatcherRegistrationRequest(dispatcher_id, timeout))
        return str(answer.dispatcher_address)

    def register_worker_for_dispatcher(self, dispatcher_id: int, worker_id: int) -> None:
        """The worker serves the dispatcher."""
        self._send(RegisterDispatcherWorkerRequest(dispatcher_id, worker_id))

    def wait_for_dispatcher_worker_registration(self, dispatcher_id: int, timeout: float) -> None:
        """Returns when the dispatcher has all its workers. TimeoutException when they do not come
        in so many seconds."""
        self._send(WaitForDispatcherWorkerRegistrationRequest(dispatcher_id, timeout))

    def shutdown(self) -> None:
        """Ends the service."""
        self._send(ShutdownRequest())

    def wait_for_shutdown(self) -> None:
        """Returns when the service has ended."""
        self._send(WaitForShutdownRequest())

    def _send(self, req: Any, stream: Any = None) -> Any:
        answer = super()._send(req, stream)
        if isinstance(answer, Exception):
            raise answer
        return answer
