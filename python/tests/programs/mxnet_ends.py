# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-redef, attr-defined"
"""How programs of hvd.mxnet end and begin again: mxnet_ends.py MODE [COUNT]."""
import contextlib
import os
import signal
import sys

mode = sys.argv[1]
if mode.endswith("-hvd-first"):
    import hvd

    hvd.init()

import mxnet as mx  # noqa: E402
from mxnet import nd  # noqa: E402

import hvd.mxnet as hvd  # noqa: E402


def slow():
    """An array that is not there for a while."""
    made = nd.ones((800, 800))
    for _ in range(3):
        made = nd.dot(made, made) / 800
    return made


def pending():
    """The process ends while others are waited for, and while calls wait for MXNet's own work."""
    alone = hvd.allreduce(nd.ones((3,)), name=f"rank {hvd.rank()} alone")
    for _ in range(5):
        alone = hvd.allreduce(alone + slow()[0, :3])
    print("done", flush=True)


def early():
    """All but one rank end, or leave, while what they have pushed waits for MXNet's own work: the
    one that reads gets it all."""
    x = nd.ones((500, 500))
    for _ in range(15):
        x = nd.dot(x, x) / 500
        hvd.allreduce_(x, name="x")
        for _ in range(3):
            hvd.allreduce(x[0], name="queued behind one another")
    if hvd.rank() == 0:
        assert x.asnumpy().max() == 1
    if hvd.rank() == 1:
        hvd.shutdown()
    print("done", flush=True)


def sessions():
    """Many sessions, some of which end with calls under way."""
    count = int(sys.argv[2])
    for i in range(count):
        x = nd.ones((3,))
        assert hvd.allreduce(x, op=hvd.Sum).asnumpy()[0] == hvd.size()
        assert hvd.allgather(x).shape == (3 * hvd.size(),)
        left = hvd.allreduce(x, name=f"rank {hvd.rank()} alone") if i % 2 and hvd.size() > 1 else x
        for _ in range(hvd.rank()):
            if i % 3 == 0:  # ranks may have come to different numbers of calls
                hvd.allreduce(x)
        hvd.shutdown()
        with contextlib.suppress(hvd.AbortedError):
            left.wait_to_read()
            assert left is x, "nobody else made this call"
        with contextlib.suppress(mx.base.MXNetError):
            nd.waitall()
        hvd.init()
    hvd.shutdown()
    for function in (hvd.allreduce, hvd.allgather):
        try:
            function(nd.ones((3,)))
        except ValueError as error:
            assert isinstance(error, hvd.NotInitializedError), error
        else:
            raise AssertionError("there is no job")
    print("done", flush=True)


def dies():
    """Rank 1 dies while others wait for it: they are told who."""
    hvd.allreduce(nd.ones((3,))).wait_to_read()
    if hvd.rank() == 1:
        sys.stdout.flush()
        os._exit(7)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # hvdrun's, which may come first
    waiting = hvd.allreduce(nd.ones((3,)))
    behind = hvd.allgather if len(sys.argv) > 2 else lambda x: (x + 1).asnumpy()
    try:
        behind(waiting)
    except mx.base.MXNetError as error:
        assert isinstance(error, hvd.HorovodInternalError) and "rank 1" in str(error), error
        print("was told", flush=True)


def caught():
    """Errors that the program has caught are not told again at its end; those that it has not
    looked at are, in one line."""
    differs = hvd.allreduce(nd.ones((3 + hvd.rank(),)), name="caught")
    try:
        differs.wait_to_read()
    except hvd.MismatchError as error:
        print("caught", type(error).__name__, flush=True)
    if len(sys.argv) > 2:
        hvd.allreduce(nd.ones((3 + hvd.rank(),)), name="never looked at")
        hvd.allreduce(nd.ones((3,))).wait_to_read()
    print("done", flush=True)


def forks():
    """Processes are forked while calls are under way, as data loaders do."""
    for i in range(30):
        x = nd.ones((100,)) * (hvd.rank() + 1)
        calls = [hvd.allreduce(x + j, op=hvd.Sum) for j in range(10)]
        behind = [hvd.allreduce(each * 2) for each in calls]
        child = os.fork()
        if child == 0:
            try:
                hvd.allreduce(x)
            except hvd.NotInitializedError:
                os._exit(3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        total = hvd.size() * (hvd.size() + 1) / 2
        for j, each in enumerate(behind):
            assert each.asnumpy()[0] == 2 * (total + hvd.size() * j), (i, j, each)
    print("done", flush=True)


def loads():
    """gluon's data loader with processes of its own, beside a trainer."""
    from mxnet import autograd, gluon

    data = gluon.data.ArrayDataset(nd.arange(64).reshape((64, 1)), nd.arange(64))
    net = gluon.nn.Dense(1, in_units=1)
    net.initialize()
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", {"learning_rate": 1e-5})
    for _ in range(3):
        for inputs, targets in gluon.data.DataLoader(data, 8, num_workers=2):
            with autograd.record():
                loss = ((net(inputs)[:, 0] - targets) ** 2).mean()
            loss.backward()
            trainer.step(1)
    weights = hvd.allgather_object(net.weight.data().asscalar())
    assert weights == weights[:1] * hvd.size()
    print("done", flush=True)


def naive():
    """MXNet's engine that does all in the calling thread."""
    assert os.environ["MXNET_ENGINE_TYPE"] == "NaiveEngine"
    x = nd.ones((3,))
    for _ in range(10):
        x = hvd.allreduce(x)
    assert hvd.allgather(x).asnumpy().tolist() == [1.0] * 3 * hvd.size()
    print("done", flush=True)


def interrupted():
    """A signal's handler runs while an allgather waits, and may raise."""
    class Interrupted(Exception):
        pass

    def raise_it(*_):
        raise Interrupted

    if hvd.rank() == 0:
        signal.signal(signal.SIGALRM, raise_it)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            hvd.allgather(nd.ones((3,)), name="late")
        except Interrupted:
            print("interrupted", flush=True)
        assert hvd.allgather(nd.ones((2,))).shape == (2 * hvd.size(),)
    else:
        assert hvd.allgather(nd.ones((2,))).shape == (2 * hvd.size(),)
        assert hvd.allgather(nd.ones((3,)), name="late").shape == (3 * hvd.size(),)
    nd.waitall()
    print("done", flush=True)


hvd.init()
modes = {"pending": pending, "pending-hvd-first": pending, "early": early, "caught": caught,
         "sessions": sessions, "dies": dies, "forks": forks, "loads": loads, "naive": naive,
         "interrupted": interrupted}
modes[mode]()
