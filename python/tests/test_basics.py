# SPDX-License-Identifier: Apache-2.0
"""Joining, leaving, who is there, process sets, timelines; errors outside a job."""
import contextlib
import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import hvd


def test_who_is_there(rank, size):
    assert (rank, size) == (int(os.environ.get("HVD_RANK", 0)), int(os.environ.get("HVD_SIZE", 1)))
    assert 0 <= hvd.local_rank() < hvd.local_size() <= size
    assert 0 <= hvd.cross_rank() < hvd.cross_size() <= size
    assert hvd.is_initialized() and isinstance(hvd.is_homogeneous(), bool)


def test_what_is_built():
    assert (hvd.mpi_built(), hvd.mpi_enabled(), hvd.gloo_built(), hvd.gloo_enabled()) == (
        False, False, True, True)
    assert hvd.nccl_built() == 0 and hvd.cuda_built() and not hvd.rocm_built()
    assert not hvd.ddl_built() and not hvd.ccl_built() and hvd.mpi_threads_supported() is True
    assert hvd.build_info()["version"] == hvd.library_version() == hvd.__version__
    assert hvd.metrics()["rank"] == hvd.rank()


def test_init_again_does_nothing(size):
    hvd.init()
    hvd.init(comm=list(range(size)))
    assert hvd.size() == size
    with pytest.raises(ValueError, match="initialized already"):
        hvd.init(process_sets=[[0]])


def test_another_epoch(rank, size, even_set):
    for _ in range(3):
        hvd.shutdown()
        assert not hvd.is_initialized() and even_set.process_set_id is None
        assert even_set.included() is None and even_set.size() is None and even_set.rank() is None
        with pytest.raises(ValueError, match="initialized"):
            hvd.rank()
        with pytest.raises(hvd.NotInitializedError) as caught:
            hvd.allreduce(np.ones(1), name="outside")
        assert caught.value.status == "HVD_ERR_NOT_INITIALIZED" and caught.value.code == 2
        hvd.init(process_sets="dynamic")
        assert hvd.allreduce(np.ones(1), op=hvd.Sum)[0] == size
    hvd.shutdown()
    own = hvd.ProcessSet([0])
    hvd.init(process_sets=[own] + ([[0, 1]] if size > 2 else []))  # type: ignore[list-item]
    assert own.process_set_id == 1 and own.included() == (rank == 0)
    hvd.shutdown()
    hvd.init()
    even = hvd.add_process_set(even_set)  # the fixture will remove it
    assert even is even_set


def test_a_handle_of_the_last_epoch_fails(rank, size, several):
    pending = hvd.allreduce_async(np.ones(4), name=f"only here {rank}")
    here = hvd.allgather_async(np.ones(1), name="all are in this test")
    if rank == 0:
        here.wait()
        hvd.shutdown()
    for _ in range(2):  # again the same
        with pytest.raises(hvd.Error, match="rank 0|shut"):
            pending.wait()
    assert pending.done() and "failed" in repr(pending)
    hvd.shutdown()
    hvd.init()


def test_process_sets(rank, size, even_set, several):
    ranks = list(range(0, size, 2))
    assert even_set.ranks == ranks and even_set.size() == len(ranks)
    assert even_set.included() == (rank in ranks)
    assert even_set.rank() == (ranks.index(rank) if rank in ranks else -1)
    assert str(even_set.process_set_id) in repr(even_set)
    assert hvd.get_process_set_ids_and_ranks() == {0: list(range(size)),
                                                   even_set.process_set_id: ranks}
    with pytest.raises(ValueError) as caught:
        hvd.add_process_set(ranks)
    assert isinstance(caught.value, hvd.DuplicateError)
    with pytest.raises(ValueError, match="registered already"):
        hvd.add_process_set(even_set)
    with pytest.raises(ValueError):
        hvd.add_process_set([size + 5])
    world = hvd.global_process_set
    assert world.process_set_id == 0 and world.ranks == list(range(size))
    assert world.included() and world.rank() == rank and world.size() == size
    assert not hvd.remove_process_set(world)
    assert not hvd.remove_process_set(hvd.ProcessSet([0]))
    if rank not in ranks:
        with pytest.raises(ValueError):
            hvd.allreduce(np.ones(1), process_set=even_set)
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(np.ones(1), process_set=hvd.ProcessSet([0]))
    with pytest.raises(ValueError, match="communicators"):
        hvd.ProcessSet(object())


def test_init_refuses_what_it_cannot_do(size, several):
    hvd.shutdown()
    with pytest.raises(hvd.UnsupportedError, match="process set"):
        hvd.init(comm=[0])
    assert not hvd.is_initialized()
    with pytest.raises(ValueError, match="process_sets"):
        hvd.init(process_sets="static")
    hvd.init()


def test_timeline(rank, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("timeline") / "timeline.json")
    path = hvd.broadcast_object(path)
    if "HVD_LINK" not in os.environ:
        with pytest.raises(NotImplementedError):
            hvd.start_timeline(path)
        return
    with pytest.warns(UserWarning, match="no cycles"):
        hvd.start_timeline(path, mark_cycles=True)
    hvd.allreduce(np.ones(3), name="seen")
    hvd.barrier()
    if rank == 0:
        hvd.stop_timeline()
        if hvd.cross_size() == 1:
            assert "allreduce.seen" in json.dumps(json.loads(pathlib.Path(path).read_text()))
    hvd.barrier()


def test_a_grace_is_a_number_of_seconds():
    hvd.set_grace(30)
    for wrong in (-1, float("nan"), 1e12):
        with pytest.raises(hvd.InvalidError, match="grace"):
            hvd.set_grace(wrong)
    hvd.shutdown()
    with pytest.raises(hvd.NotInitializedError):
        hvd.set_grace(30)
    hvd.init()
    hvd.set_grace(0)


def test_errors_travel():
    error = hvd.MismatchError("a text", 3, "HVD_ERR_MISMATCH")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is hvd.MismatchError and str(again) == "a text" and again.code == 3
    assert isinstance(again, hvd.HorovodInternalError) and isinstance(again, RuntimeError)


@pytest.mark.apart
def test_public_classes_say_where_programs_find_them():
    """In tracebacks and pickles."""
    import hvd.errors
    import hvd.process_sets

    for module in (hvd.errors, hvd.process_sets):
        for name in module.__all__:
            assert getattr(module, name).__module__ == module.__name__, name
    assert pickle.loads(pickle.dumps(hvd.ProcessSet([0, 1]))).ranks == [0, 1]


@pytest.mark.apart
@pytest.mark.parametrize("told, expected", [("/nowhere/libhvd.so", "/nowhere/libhvd.so"),
                                            (__file__, "test_basics")])
def test_a_library_that_is_missing_is_named(told, expected):
    done = subprocess.run([sys.executable, "-c", "import hvd"], capture_output=True, text=True,
                          env={**os.environ, "HVD_LIBRARY": told})
    assert done.returncode == 1 and "ImportError" in done.stderr and expected in done.stderr
    assert "HVD_LIBRARY" in done.stderr


@pytest.mark.apart
def test_torch_needs_no_numpy():
    pytest.importorskip("torch")
    program = """
import sys, warnings
sys.modules["numpy"] = None
warnings.simplefilter("ignore")
import hvd.torch as hvd, torch
hvd.init()
print(hvd.allreduce(torch.ones(2, dtype=torch.bfloat16)).tolist(), hvd.broadcast_object("x"))
"""
    alone = {name: value for name, value in os.environ.items()
             if not name.startswith(("HVD_", "HOROVOD_"))} | {"HVD_STANDALONE": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=alone)
    assert done.stdout == "[1.0, 1.0] x\n", done.stderr


def test_a_join_beside_a_shutdown(rank, size, several):
    """The leaving rank is named, also to one that joined; init() there joins the next epoch."""
    store = hvd.Store()

    def await_all(when: object) -> None:
        # A leave ends the epoch at once: none leaves before all have the result of the last
        # collective. A rank that is told of the leave here has its key in the store, or nobody
        # would have left.
        with contextlib.suppress(hvd.AbortedError):
            store.set(f"join beside shutdown {when} {rank}", b"")
            store.wait([f"join beside shutdown {when} {other}" for other in range(size)])

    await_all("begin")
    for number in range(6):
        joining = number % size
        if rank == joining:
            with pytest.raises(hvd.AbortedError) as said:
                hvd.join()
            assert "has left the job (shutdown)" in str(said.value)
            assert f"rank {joining} " not in str(said.value)
            with pytest.raises(hvd.HorovodInternalError):
                hvd.allreduce(np.ones(1), "too late")
            assert hvd.is_initialized()
        else:
            hvd.shutdown()
            assert not hvd.is_initialized()
        hvd.init()
        hvd.init()  # does nothing
        assert hvd.allreduce(np.ones(1), "again", op=hvd.Sum)[0] == size
        await_all(number)


def test_sets_given_to_init_where_the_epoch_is_over(rank, size, several):
    mine = hvd.ProcessSet([0])
    if rank:
        hvd.shutdown()
    else:
        with pytest.raises(hvd.AbortedError):
            hvd.barrier()
    hvd.init(process_sets=[mine])
    assert mine.process_set_id == 1 and hvd.get_process_set_ids_and_ranks()[1] == [0]
    assert hvd.remove_process_set(mine)
