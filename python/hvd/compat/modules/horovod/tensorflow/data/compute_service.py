# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.data.compute_service, answered by hvd: TensorFlow's tf.data service, run by
one job (compute_worker) for another, which trains."""
from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import tensorflow as tf

import hvd
from horovod.runner.common.service.compute_service import ComputeClient

_service = tf.data.experimental.service
_LOOK_AGAIN = 0.2  # seconds, at a file that another job writes


@dataclass(frozen=True)
class TfDataServiceConfig:
    """The facts that both jobs know. `dispatcher_side`: which of them runs the dispatchers,
    "compute" or "training". `addresses` and `key` are the compute service's."""

    dispatchers: int
    workers_per_dispatcher: int
    dispatcher_side: str
    addresses: Mapping[str, Sequence[tuple[str, int]]]
    key: bytes
    timeout: int = 60

    def compute_client(self, verbose: int = 1) -> ComputeClient:
        """One that asks the compute service."""
        return ComputeClient(self.addresses, self.key, verbose=verbose)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can have it."""
        return {**asdict(self), "key": self.key.hex()}

    @staticmethod
    def from_dict(config: Mapping[str, Any]) -> TfDataServiceConfig:
        """Reads what to_dict() has given."""
        addresses = {card: [(str(host), int(port)) for host, port in places]
                     for card, places in config["addresses"].items()}
        return TfDataServiceConfig(**{**config, "addresses": addresses,
                                      "key": bytes.fromhex(config["key"])})

    def write(self, filename: str) -> None:
        """Writes the file, all of it at once; only this user may read it, since it has the key."""
        folder, name = os.path.split(os.path.abspath(filename))
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=name, delete=False) as file:
            json.dump(self.to_dict(), file)
        os.replace(file.name, filename)

    @staticmethod
    def read(filename: str, wait_for_file_creation: bool = False) -> TfDataServiceConfig:
        """That of the file, which may be waited for."""
        while wait_for_file_creation and not os.path.exists(filename):
            time.sleep(_LOOK_AGAIN)
        with open(filename) as file:
            return TfDataServiceConfig.from_dict(json.load(file))


@contextlib.contextmanager
def dispatcher(client: ComputeClient, number: int) -> Iterator[None]:
    """A dispatcher that is registered and runs within this scope."""
    server = _service.DispatchServer()
    try:
        port = server.target.rpartition(":")[2]
        client.register_dispatcher(number, f"grpc://{client.source_address}:{port}")
        yield
    finally:
        _stop(server)


def _stop(server: Any) -> None:
    server._stop()  # there is no public word for it
    server.join()


@contextlib.contextmanager
def tf_data_service(compute_config: TfDataServiceConfig, rank: int) -> Iterator[str]:
    """The address of the dispatcher for this rank of the job that trains, which runs it within
    this scope if the configuration says so."""
    client = compute_config.compute_client()
    several = compute_config.dispatchers > 1
    with contextlib.ExitStack() as servers:
        if compute_config.dispatcher_side == "training" and (several or rank == 0):
            servers.enter_context(dispatcher(client, rank))
        number = rank if several else 0
        address = client.wait_for_dispatcher_registration(number, compute_config.timeout)
        client.wait_for_dispatcher_worker_registration(number, compute_config.timeout)
        yield address


def send_to_data_service(dataset: tf.data.Dataset, compute_config: TfDataServiceConfig, rank: int,
                         size: int | None = None, processing_mode: str = "distributed_epoch",
                         reuse_dataset: bool = False, round_robin: bool = False) -> tf.data.Dataset:
    """The dataset, worked on by the job that computes. `reuse_dataset`: by all ranks together;
    `round_robin`: each of `size` ranks takes its turn. RuntimeError when the dispatchers are on the
    training side: those live within tf_data_service()."""
    if compute_config.dispatcher_side == "training":
        raise RuntimeError("training side dispatcher not supported, use tf_data_service context "
                           "manager instead")
    in_turn = reuse_dataset and round_robin
    with tf_data_service(compute_config, rank) as address:
        return dataset.apply(_service.distribute(
            processing_mode=processing_mode, service=address,
            job_name="job" if reuse_dataset else None,
            consumer_index=rank if in_turn else None, num_consumers=size if in_turn else None))


# Programs write dataset.send_to_data_service(…).
tf.data.Dataset.send_to_data_service = send_to_data_service


def compute_worker_fn(compute_config: TfDataServiceConfig) -> None:
    """Runs on each rank of the job that computes: a worker, and on some ranks a dispatcher, until
    the compute service ends."""
    hvd.init()
    number, place = divmod(hvd.rank(), compute_config.workers_per_dispatcher)
    client = compute_config.compute_client()
    with contextlib.ExitStack() as servers:
        if compute_config.dispatcher_side == "compute" and place == 0:
            servers.enter_context(dispatcher(client, number))
        address = client.wait_for_dispatcher_registration(number, compute_config.timeout)
        worker = _service.WorkerServer(_service.WorkerConfig(
            dispatcher_address=address.split("://")[1],
            worker_address=f"{client.source_address}:%port%",
            heartbeat_interval_ms=1000, dispatcher_timeout_ms=compute_config.timeout * 1000))
        servers.callback(_stop, worker)
        worker.start()
        client.register_worker_for_dispatcher(number, hvd.rank())
        client.wait_for_shutdown()
