# SPDX-License-Identifier: Apache-2.0
"""Horovod's module names for MXNet."""
import pytest

pytest.importorskip("mxnet", reason="mxnet is not installed")

import hvd.compat  # noqa: E402
import hvd.mxnet  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def installed():
    hvd.compat.install()


def test_modules(rank, size):
    import horovod.mxnet as hm
    from horovod.common import util
    from horovod.mxnet.compression import Compression, Compressor
    from horovod.mxnet.functions import allgather_object, broadcast_object
    from horovod.mxnet.mpi_ops import Adasum, _basics, allreduce_

    for name in hvd.mxnet.__all__:
        assert getattr(hm, name) is getattr(hvd.mxnet, name)
    assert Compression is hvd.mxnet.Compression and issubclass(Compression.fp16, Compressor)
    assert allreduce_ is hvd.mxnet.allreduce_ and Adasum == hvd.mxnet.Adasum
    assert broadcast_object is hvd.mxnet.broadcast_object
    assert allgather_object(rank) == list(range(size))
    assert _basics.rank() == rank and _basics.size() == size
    assert util.extension_available("mxnet")
    util.check_extension("horovod.mxnet", "HOROVOD_WITH_MXNET", __file__, "mpi_lib")


def test_horovods_interface():
    """Everything that Horovod 0.28 has in horovod.mxnet."""
    names = """Compression DistributedOptimizer DistributedTrainer ProcessSet add_process_set
        allgather allgather_object allreduce allreduce_ alltoall broadcast broadcast_
        broadcast_object broadcast_parameters ccl_built cross_rank cross_size cuda_built
        ddl_built global_process_set gloo_built gloo_enabled grouped_allgather grouped_allreduce
        grouped_allreduce_ grouped_reducescatter init is_homogeneous is_initialized local_rank
        local_size mpi_built mpi_enabled mpi_threads_supported nccl_built rank reducescatter
        remove_process_set rocm_built shutdown size start_timeline stop_timeline Average Sum
        Adasum Min Max Product"""
    assert set(names.split()) <= set(hvd.mxnet.__all__)
    assert hvd.mxnet.mpi_threads_supported() and hvd.mxnet.gloo_built()
    assert not hvd.mxnet.mpi_built() and not hvd.mxnet.mpi_enabled()
    assert hvd.mxnet.nccl_built() == 0
