# SPDX-License-Identifier: Apache-2.0
"""Tests of tensors on GPU 0, which the ranks of a host may share. Without one they are skipped;
tests/system/test_python_gpu.py runs them over a stand-in for the driver."""
import gc
import sys

import pytest

sys.path.insert(0, __file__.rpartition("/")[0])
import device  # noqa: E402

WHY_NONE = device.why_none()


def pytest_collection_modifyitems(items):
    for item in items:
        if WHY_NONE and "tests/gpu/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=WHY_NONE))


@pytest.fixture
def stream():
    made = device.Stream()
    yield made.ptr
    made.close()


@pytest.fixture
def other_stream():
    made = device.Stream()
    yield made.ptr
    made.close()


@pytest.fixture(autouse=True)
def nothing_found(stream, other_stream):
    """The stand-in has found nothing wrong."""
    yield
    gc.collect()
    assert device.findings() == []
