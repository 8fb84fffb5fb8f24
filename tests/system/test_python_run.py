# SPDX-License-Identifier: Apache-2.0
"""hvd.run: functions on all ranks, from a Python program; python -m hvd.run."""
import os
import signal
import subprocess

import world
from test_compat import remove, script
from test_python import ENV, must_be_clean, python


def python_with_cloudpickle():
    if subprocess.run([python(), "-c", "import cloudpickle"], capture_output=True).returncode != 0:
        raise world.Skip(".cache/python has no cloudpickle; scripts/setup --python makes it anew")
    return python()


def program(here, text, *words, seconds=90, **how):
    """Runs a program of the test's own on host 0."""
    place = script(here, "program.py", text)
    return here.run(python_with_cloudpickle(), place, *words, env=ENV, seconds=seconds, **how)


RESULTS = """
import os, sys
import numpy
import hvd

OFFSET = 100

def work(factor, shift=0):
    import horovod                      # as under --compat horovod
    hvd.init()
    print("prints", hvd.rank())
    sys.stdout.write("no end of a line")
    print("complains", file=sys.stderr)
    sys.stdin.read()                    # is empty
    total = hvd.allreduce(numpy.ones(1), op=hvd.Sum)[0]
    return hvd.rank(), float(total) * factor + shift + OFFSET, os.environ["HOROVOD_LOCAL_RANK"], numpy.arange(200_000)

if __name__ == "__main__":
    np, *hosts = sys.argv[1:]
    results = hvd.run(work, (10,), {"shift": 1}, num_proc=int(np), **(dict(hosts=hosts[0], use_gloo=True) if hosts else {}))
    for index, (rank, total, local, array) in enumerate(results):
        assert rank == index and total == int(np) * 10 + 101 and (array == numpy.arange(200_000)).all()
    print("locals", [int(local) for _, _, local, _ in results])
"""


@world.bound(180)
def test_results_come_back_by_rank_and_output_as_it_is_printed():
    python_with_cloudpickle()
    with world.hosts(2) as here:
        for words, locals_ in ((("1",), [0]), (("2",), [0, 1]), (("3", "host0:2,host1:1"), [0, 1, 0])):
            outcome = program(here, RESULTS, *words).must(0)
            assert f"locals {locals_}\n" in outcome.out, outcome
            for rank in range(len(locals_)):
                assert f"[{rank}]<stdout>:prints {rank}\n" in outcome.out, outcome
                assert f"[{rank}]<stdout>:no end of a line\n" in outcome.out, outcome
                assert f"[{rank}]<stderr>:complains\n" in outcome.err, outcome
            lines = outcome.out.splitlines()
            assert len(lines) == 2 * len(locals_) + 1, outcome  # no piece of a result among them
            assert outcome.err.count("--gloo has no effect") == (len(words) > 1), outcome
            remove(here)
            must_be_clean(here)


NOISE = """
import os, threading
import hvd

def noisy():
    over = threading.Event()
    def shout(text):
        while not over.is_set():
            os.write(1, text)
    threads = [threading.Thread(target=shout, args=(text,)) for text in (b"<", b"\\n", b"x" * 3000, b"50%\\r", b"<a:b>\\n")]
    for thread in threads:
        thread.start()
    # The threads go on for as long as the result is on its way.
    class Result:
        def __reduce__(self):
            return bytes, (os.environ["HVD_RANK"].encode() * 300_000,)
    threading.Thread(target=lambda: (threading.main_thread().join(), over.set()), daemon=False).start()
    return Result()

if __name__ == "__main__":
    assert hvd.run(noisy, num_proc=2) == [b"0" * 300_000, b"1" * 300_000]
    print("whole")
"""


@world.bound(180)
def test_nothing_that_a_rank_prints_breaks_its_result():
    python_with_cloudpickle()
    with world.hosts() as here:
        outcome = program(here, NOISE).must(0)
        assert outcome.out.endswith("whole\n"), outcome.out[-300:]
        remove(here)
        must_be_clean(here)


FAILURES = """
import os, sys
import numpy
import hvd

def fail(how):
    hvd.init()
    if hvd.rank() == 1:
        if how == "raises":
            raise KeyError("out of cheese")
        if how == "dies":
            os.kill(os.getpid(), 9)
        if how == "leaves":
            sys.exit(3)
        if how == "cannot be sent":
            return sys._getframe()
    if how != "cannot be sent":
        hvd.allreduce(numpy.ones(1), name="never")

if __name__ == "__main__":
    try:
        hvd.run(fail, (sys.argv[1],), num_proc=2, hosts=sys.argv[2])
    except hvd.JobError as error:
        print(type(error).__name__, error.rank, error.host)
        print(error)
"""


@world.bound(240)
def test_a_ranks_failure_has_its_traceback():
    python_with_cloudpickle()
    with world.hosts(2) as here:
        hosts = "host0:1,host1:1"
        for how, kind, text in (("raises", "RankError 1 host1", "program.py\", line 10, in fail\nKeyError: 'out of cheese'"),
                                ("leaves", "RankError 1 host1", "SystemExit: 3"),
                                ("cannot be sent", "RankError 1 host1", "cannot pickle 'frame' object"),
                                ("dies", "JobError", "rank 1 on host1 was killed by signal 9")):
            outcome = program(here, FAILURES, how, hosts).must(0)
            assert f"\n{kind}" in "\n" + outcome.out and text in outcome.out, outcome
            assert "_run/worker.py" not in outcome.out or how == "cannot be sent", outcome
            remove(here)
            must_be_clean(here)
        outcome = program(here, FAILURES, "raises", "host0:1,nowhere:1").must(0)
        assert "JobError" in outcome.out and "nowhere" in outcome.out, outcome
        remove(here)
        must_be_clean(here)


ENDLESS = """
import signal
import hvd

def wait():
    hvd.init()
    print("waits", flush=True)
    signal.pause()

if __name__ == "__main__":
    try:
        hvd.run(wait, num_proc=2)
    except KeyboardInterrupt:
        print("interrupted")
"""


@world.bound(180)
def test_an_interrupt_and_the_callers_death_end_the_job():
    python_with_cloudpickle()
    with world.hosts() as here:
        for number, ends in ((signal.SIGINT, "interrupted\n"), (signal.SIGKILL, None)):
            running = here.start(python_with_cloudpickle(), script(here, "program.py", ENDLESS), env=ENV)
            running.wait_for("waits", 2, seconds=60)
            caller, = [process for process in here.hosts[0].processes()
                       if process.command[1:2] and process.command[1].endswith("program.py")]
            os.kill(caller.pid, number)
            outcome = running.wait(30)
            if ends:
                assert outcome.code == 0 and outcome.out.endswith(ends), outcome
            world.wait_until(lambda: not here.hosts[0].processes(), 10, "the job's end")
            remove(here)
            must_be_clean(here)


def test_the_module_is_hvdrun():
    with world.hosts() as here:
        words = (python(), "-m", "hvd.run", "-np", 2, "sh", "-c", "echo rank $HVD_RANK")
        outcome = here.run(*words, env=ENV).must(0)
        assert sorted(outcome.out.splitlines()) == ["[0]<stdout>:rank 0", "[1]<stdout>:rank 1"], outcome
        assert outcome.err == "", outcome
        here.run(python(), "-m", "hvd.run", "--nonsense", env=ENV).must(2, "hvdrun: unknown option")
        must_be_clean(here)
