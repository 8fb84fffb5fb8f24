# SPDX-License-Identifier: Apache-2.0
"""hvd.run without a job: its frames, its words, its errors."""
import random
import runpy
import secrets
import sys

import pytest

import hvd
import hvd.compat
from hvd._core import errors
from hvd._run import launch, orders
from hvd._run.frames import FrameReader, frames
from hvd._run.job import Job, Lines

WORD = "0123456789abcdef"


def read(stream, pieces):
    """Returns what a reader shows and takes of `stream`, whose lines come cut at `pieces`."""
    shown, taken = [], []
    reader = FrameReader(WORD, shown.append, taken.append)
    for piece in pieces(stream):
        reader.feed(piece)
    reader.finish()
    return "".join(shown), taken


def by_line(stream):
    return stream.splitlines(keepends=True)


def test_messages_of_any_length_come_through_text():
    for size in (0, 1, 2879, 2880, 2881, 100_000):
        message = random.Random(size).randbytes(size)
        written = [frame.decode() for frame in frames(WORD, message)]
        assert all(len(frame) <= 4096 for frame in written)
        # Another thread prints between the frames, with and without an end of its line.
        stream = "first\n\n" + "a <b> line\npartial <0123".join(written) + "last\n"
        shown, taken = read(stream, by_line)
        assert taken == [message]
        assert shown.startswith("first\n\n") and shown.endswith("last\n") and WORD not in shown
        assert shown.count("a <b> line\n") == shown.count("partial <0123\n") == len(written) - 1


def test_a_frame_that_is_cut_anywhere_is_whole_again():
    message = b"result" * 50
    (frame,) = frames(WORD, message)
    text = frame.decode()
    for at in range(2, len(text) - 1):
        cut = text[:at] + "\n" + text[at:]  # as hvdrun does where another rank's line comes between
        shown, taken = read("before\n" + cut + "after\n", by_line)
        assert taken == [message] and shown == "before\nafter\n", at


def test_what_only_looks_like_a_frame_is_text():
    for text in ("<\n", "<012\n", f"<{WORD}", f"{WORD}:abcd>\n", "<0123456789abcdee:AAAA>\n",
                 "50%\r100%\r\n", "\n\n\n", "no end"):
        shown, taken = read(text, by_line)
        assert not taken and shown in (text, text + "\n")


def test_a_line_is_shown_as_soon_as_it_ends():
    shown = []
    reader = FrameReader(WORD, shown.append, lambda message: None)
    reader.feed("one\n")
    assert shown == ["one\n"]
    reader.feed("two <not a frame\n")
    assert shown == ["one\n", "two <not a frame\n"]


def test_lines_of_a_stream():
    lines = Lines()
    assert lines.feed(b"a\nb") == ["a\n"]
    assert lines.feed(b"c\rd\xff\n") == ["bc\r", "d\ufffd\n"]
    assert lines.feed(b"e") == [] and lines.finish() == ["e"] and lines.finish() == []


def test_keywords_become_options():
    assert launch.option_words(3, {}) == ["-np", "3"]
    assert launch.option_words(2, {
        "hosts": "a:1,b:1", "start_timeout": 9, "ssh_port": 22, "use_gloo": True, "use_mpi": False,
        "network_interface": ["eth0", "eth1"], "network_interfaces": None, "verbose": 1,
        "executable": "/python", "min_np": None}) == [
            "-np", "2", "-H", "a:1,b:1", "--start-timeout", "9", "--ssh-port", "22", "--gloo",
            "--network-interface", "eth0", "--network-interface", "eth1", "--verbose"]


def test_keywords_of_an_elastic_job():
    options = {"min_num_proc": 2, "max_np": 4, "slots": 2, "reset_limit": 3,
               "cooldown_range": (10, 100), "host_discovery_script": "./hosts.sh"}
    assert launch.is_elastic(options) and not launch.is_elastic({"min_np": None, "slots": 2})
    assert launch.option_words(None, options) == [
        "--min-np", "2", "--max-np", "4", "--slots-per-host", "2", "--reset-limit", "3",
        "--blacklist-cooldown-range", "10", "100", "--host-discovery-script", "./hosts.sh"]
    assert launch.count_of(None, None, options) is None
    assert launch.count_of(3, None, options) == 3
    assert launch.count_of(None, None, {"max_np": 4}) == 1


def test_an_order_in_the_environment():
    assert orders.unpacked(orders.packed(b"x" * 1_000_000)) == b"x" * 1_000_000


def test_a_member_that_was_replaced_is_no_failure():
    job = Job(["hvdrun"], {})  # type: ignore[typeddict-item]
    job.said[1] = {"rank": 1, "host": "box", "text": "no", "consequence": False, "error": "OSError"}
    assert job.failure() is None
    job.code = 1
    assert isinstance(job.failure(), hvd.RankError)


def test_what_cannot_be_is_said():
    with pytest.raises(TypeError, match="num_procs"):
        hvd.run(print, num_procs=2)
    for wrong in (10, "10", (1, 2, 3)):
        with pytest.raises(ValueError, match="cooldown_range is two times"):
            launch.option_words(2, {"cooldown_range": wrong})
    with pytest.raises(hvd.UnsupportedError, match="let the function read its data itself"):
        hvd.run(print, (secrets.token_bytes(200_000),), min_num_proc=1)
    with pytest.raises(ValueError, match="num_proc is 2 and np"):
        hvd.run(print, num_proc=2, np=3)
    for none in ({"num_proc": 0}, {"np": 0}, {"num_proc": -1, "min_num_proc": 1}):
        with pytest.raises(ValueError, match="a job has at least one rank"):
            hvd.run(print, **none)


def test_without_cloudpickle_or_hvdrun_it_says_what_to_do(monkeypatch, tmp_path):
    with monkeypatch.context() as changed:
        changed.setitem(sys.modules, "cloudpickle", None)
        with pytest.raises(ImportError, match="pip install cloudpickle"):
            hvd.run(print)
    monkeypatch.setattr(launch, "candidates", lambda: iter([str(tmp_path / "hvdrun"), "hvdrun"]))
    with pytest.raises(hvd.LaunchError, match="there is no hvdrun: build it"):
        launch.find_hvdrun()


def test_errors_say_where():
    error = errors.rank_failed(3, "box", "Traceback\nValueError: no\n")
    assert isinstance(error, hvd.RankError) and isinstance(error, hvd.JobError)
    assert (error.rank, error.host) == (3, "box")
    assert str(error) == "rank 3 on box raised:\nTraceback\nValueError: no"
    assert errors.job_failed(7, "").exit_code == 7


def test_the_module_stands_in_for_the_function(monkeypatch):
    """Also as horovod.run, and python -m hvd.run is hvdrun."""
    function = hvd.run
    import hvd.run as module

    try:
        assert callable(module) and module.run is function
    finally:
        hvd.run = function
    started = []
    monkeypatch.setattr("os.execv", lambda program, words: started.append((program, words)))
    monkeypatch.setattr(sys, "argv", ["-m", "-np", "2", "prog"])
    monkeypatch.delitem(sys.modules, "hvd.run")
    runpy.run_module("hvd.run", run_name="__main__")
    program = launch.find_hvdrun()
    assert started == [(program, [program, "-np", "2", "prog"])]


def test_horovods_names_for_it():
    hvd.compat.install()
    import horovod
    import horovod.runner
    from horovod.runner.util.threads import in_thread

    assert horovod.run is horovod.runner.run is hvd.run
    done = []
    in_thread(done.append, (1,)).join()
    assert done == [1]
    with pytest.raises(ValueError, match="tuple"):
        in_thread(done.append, [1])
    with pytest.raises(AttributeError, match="nothing"):
        _ = horovod.nothing
