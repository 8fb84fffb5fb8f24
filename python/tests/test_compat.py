# SPDX-License-Identifier: Apache-2.0
"""Horovod's module names."""
import os
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")
import hvd.compat  # noqa: E402
import hvd.torch  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def installed():
    hvd.compat.install()
    hvd.compat.install()
    assert sum(isinstance(f, hvd.compat.HorovodFinder) for f in sys.meta_path) == 1


def test_modules(rank, size):
    import horovod
    import horovod.torch as ht
    from horovod.common.exceptions import (
        HorovodInternalError,
        HorovodVersionMismatchError,
        HostsUpdatedInterrupt,
    )
    from horovod.common.process_sets import ProcessSet, is_process_set_included
    from horovod.torch.compression import Compression
    from horovod.torch.functions import broadcast_object, broadcast_parameters
    from horovod.torch.mpi_ops import _basics, _get_process_set_ids_and_ranks, allreduce_async_
    from horovod.torch.optimizer import DistributedOptimizer
    from horovod.torch.sync_batch_norm import SyncBatchNorm

    assert horovod.__version__.split(".")[:2] == ["0", "28"]
    for name in hvd.torch.__all__:
        assert getattr(ht, name) is getattr(hvd.torch, name)
    assert HorovodInternalError is hvd.HorovodInternalError is ht.HorovodInternalError
    assert ProcessSet is hvd.ProcessSet and Compression is hvd.torch.Compression
    assert DistributedOptimizer is hvd.torch.DistributedOptimizer
    assert SyncBatchNorm is hvd.torch.SyncBatchNorm
    assert broadcast_parameters is hvd.torch.broadcast_parameters
    assert _basics.rank() == rank and _basics.size() == size and _basics.Average == ht.Average
    assert _get_process_set_ids_and_ranks() == {0: list(range(size))}
    assert allreduce_async_(torch.ones(1), op=ht.Sum).wait().item() == size
    assert broadcast_object(rank, 0) == 0 and is_process_set_included(0)
    with pytest.raises(ValueError):
        is_process_set_included(99)
    assert str(hvd.global_process_set) == (
        f"ProcessSet(process_set_id=0, ranks={list(range(size))}, mpi_comm=None)")
    assert HostsUpdatedInterrupt(True).skip_sync
    assert "2.0" in str(HorovodVersionMismatchError("torch", "1.0", "2.0"))


def test_util():
    from horovod.common import util

    assert util.extension_available("torch") and not util.extension_available("spark")
    with pytest.raises(ImportError, match="mxnet"):
        util.check_extension("horovod.mxnet", "HOROVOD_WITH_MXNET")
    assert util.split_list(list(range(7)), 3) == [[0, 1, 2], [3, 4], [5, 6]]
    assert util.split_list([1], 3) == [[1]]
    assert util.is_iterable([]) and not util.is_iterable(3)
    assert [n for n in range(9) if util.num_rank_is_power_2(n)] == [1, 2, 4, 8]
    assert util.is_version_greater_equal_than("2.13.0+cpu", "2.2.0")
    assert not util.is_version_greater_equal_than("1.9.1", "1.10.0")
    with pytest.raises(ValueError):
        util.is_version_greater_equal_than("1.9.1", "2.0")
    before = dict(os.environ)
    with util.env(HVD_TEST_VALUE="1", PATH=None):
        assert os.environ["HVD_TEST_VALUE"] == "1" and "PATH" not in os.environ
    assert dict(os.environ) == before
    assert util.gpu_available("torch") == (hvd.build_info()["gpus"] != "0")
    assert util.gloo_built() and not util.mpi_built()
    ask = util.get_average_backwards_compatibility_fun(None)
    assert ask(None, None) == hvd.Average


def test_what_is_absent_is_said():
    with pytest.raises(ModuleNotFoundError, match="hvd has no horovod.spark"):
        import horovod.spark  # noqa: F401


def test_the_environment(rank, size):
    assert os.environ["HOROVOD_RANK"] == str(rank) and os.environ["HOROVOD_SIZE"] == str(size)
    assert os.environ["HOROVOD_LOCAL_RANK"] == str(hvd.local_rank())


def test_another_horovod_is_not_pushed_aside(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [])
    monkeypatch.setitem(sys.modules, "horovod", types.ModuleType("horovod"))
    sys.modules["horovod"].__file__ = "/elsewhere"
    with pytest.raises(RuntimeError, match="/elsewhere"):
        hvd.compat.install()


TOO_OLD = """
import runpy, sys
sys.version_info, sys.version = (3, 9, 1, "final", 0), "3.9.1 (main)"
runpy.run_path(sys.argv[1])
import json                             # others are found as ever
try:
    import horovod
except ImportError as error:
    print(error)
"""


@pytest.mark.apart
def test_a_python_that_is_too_old_says_so_when_it_matters(rank):
    if rank:
        return
    hook = os.path.join(os.path.dirname(hvd.compat.__file__), "startup", "sitecustomize.py")
    done = subprocess.run([sys.executable, "-c", TOO_OLD, hook], capture_output=True, text=True)
    assert done.stderr == "" and done.returncode == 0
    assert f"hvd needs Python 3.10 or later, and {sys.executable} is 3.9.1" in done.stdout


PROGRAM = """
import sys
import helper
import horovod.torch as hvd
print(__name__, sys.argv, helper.ANSWER, sys.modules["__main__"].__file__ == __file__)
"""


SPAWNING = """
import multiprocessing
import horovod.torch as hvd

def version(_):
    import horovod
    return horovod.__version__

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(version, [0]))
"""


def run(*words, **how):
    alone = {name: value for name, value in os.environ.items()
             if not name.startswith(("HVD_", "HOROVOD_"))} | {"HVD_STANDALONE": "1"}
    return subprocess.run([sys.executable, "-m", "hvd.compat", *words], capture_output=True,
                          text=True, env=alone, **how)


@pytest.mark.apart
def test_programs(rank, tmp_path):
    if rank:
        return
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("ANSWER = 42")
    program = str(tmp_path / "program.py")
    for words in ((program, "a"), ("-m", "program", "a")):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("__main__ [") and done.stdout.endswith("'a'] 42 True\n")
    assert run().returncode == run("-x").returncode == 2 and "usage" in run().stderr
    missing = run("nowhere.py")
    assert missing.returncode == 2 and "nowhere.py" in missing.stderr
    (tmp_path / "spawning.py").write_text(SPAWNING)
    assert "0.28" in run(str(tmp_path / "spawning.py")).stdout
