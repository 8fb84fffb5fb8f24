# SPDX-License-Identifier: Apache-2.0
"""horovod.tensorflow.data.compute_worker, answered by hvd: the job that computes.

    hvdrun -np 4 --compat horovod python -m horovod.tensorflow.data.compute_worker FILE
"""
from __future__ import annotations

import argparse

import hvd
from horovod.runner.common.service.compute_service import ComputeService
from horovod.runner.common.util import secret
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, compute_worker_fn


def main(dispatchers: int, dispatcher_side: str, configfile: str, timeout: int) -> None:
    """Runs workers, and the compute service on rank 0, until somebody ends that. Rank 0 writes the
    file."""
    hvd.init()
    if hvd.size() % dispatchers:
        raise ValueError(f"Number of processes ({hvd.size()}) must be a multiple of number of "
                         f"dispatchers ({dispatchers}).")
    workers = hvd.size() // dispatchers
    service, config = None, None
    try:
        if hvd.rank() == 0:
            key = secret.make_secret_key()
            service = ComputeService(dispatchers, workers, key=key)
            config = TfDataServiceConfig(dispatchers, workers, dispatcher_side,
                                         service.addresses(), key, timeout)
            config.write(configfile)
        found = hvd.broadcast_object(config, name="TfDataServiceConfig")
        assert found is not None  # rank 0 has made it
        compute_worker_fn(found)
    finally:
        if service is not None:
            service.shutdown()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("configfile", help="where the configuration is written, for the job that "
                        "trains")
    parser.add_argument("--dispatchers", default=1, type=int, help="how many there are")
    parser.add_argument("--dispatcher-side", default="compute", choices=("compute", "training"),
                        help="which job runs them")
    parser.add_argument("--timeout", default=60, type=int,
                        help="seconds in which all must have found each other")
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    main(given.dispatchers, given.dispatcher_side, given.configfile, given.timeout)
