# SPDX-License-Identifier: Apache-2.0
"""These tests run on all ranks of a job at once: hvdrun -np 3 python -m pytest -x python/tests.

Each rank runs the same tests in the same order. With -x a rank whose test fails leaves, and the
others are told so instead of waiting for it.
"""
import os
import shutil
import tempfile

import pytest

import hvd

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def job():
    hvd.init()
    yield
    hvd.shutdown()


@pytest.fixture(autouse=True)
def together(request):
    """No test begins before all ranks have ended the one before."""
    yield
    if "apart" not in request.keywords:
        hvd.barrier()


def pytest_configure(config):
    config.addinivalue_line("markers", "apart: ranks do not meet after this test")
    # Each rank has its own: pytest tidies up what it takes for an older run's.
    config.option.basetemp = tempfile.mkdtemp(prefix="hvd-pytest.")
    try:
        import torch
        torch.set_num_threads(1)
    except ImportError:
        pass


def pytest_unconfigure(config):
    shutil.rmtree(config.option.basetemp, ignore_errors=True)


@pytest.fixture
def rank(job):
    return hvd.rank()


@pytest.fixture
def size(job):
    return hvd.size()


@pytest.fixture
def several(size):
    """For what has no meaning on one rank."""
    if size == 1:
        pytest.skip("needs two ranks or more")


@pytest.fixture
def even_set(job):
    """The set of ranks 0, 2, …"""
    if hvd.size() == 1:
        pytest.skip("needs two ranks or more")
    process_set = hvd.add_process_set(range(0, hvd.size(), 2))
    yield process_set
    assert hvd.remove_process_set(process_set)
