# SPDX-License-Identifier: Apache-2.0
"""Views of a job: the timeline of all ranks, stalled tensors, counters."""
import contextlib
import json
import os
import pathlib
import signal
import time

import world
from world import PROGRAMS

VICTIM = PROGRAMS / "victim"
HUNG_FS = pathlib.Path(__file__).resolve().parent / "programs" / "hung_fs.py"


def timeline_of(here):
    """Where a test's Chrome timeline lies on host 0."""
    return here.place("timeline.json")


def read_timeline(here, may_be_cut=False):
    """The events of a Chrome timeline on host 0, which goes; fails unless it is valid JSON.

    `may_be_cut`: its last write may have been cut short; all events that are whole are read then, as viewers do.
    """
    path = timeline_of(here)
    text = here.run("cat", path).must(0).out
    if may_be_cut and not text.endswith("]\n"):
        text = text[:text.rindex(",\n{")] + "]"
    events = json.loads(text)
    here.run("rm", path).must(0)
    return events


def spans_of(events, tensor):
    """By rank: the [(name, begin, end)] of a tensor's spans, in µs."""
    rows = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == tensor}
    spans = {}
    for e in events:
        if e["ph"] == "X" and (e["pid"], e["tid"]) in rows:
            spans.setdefault(e["pid"], []).append((e["name"], e["ts"], e["ts"] + e["dur"]))
    return {rank: sorted(ours, key=lambda span: span[1]) for rank, ours in spans.items()}


def must_be_aligned(events, ranks, steps, within_us):
    """No rank has the k-th sum before the last rank has submitted its own, by clocks that agree `within_us`."""
    spans = spans_of(events, "one")
    assert sorted(spans) == list(range(ranks)), spans.keys()
    submitted = {rank: [s for s in ours if s[0] == "NEGOTIATE_ALLREDUCE"] for rank, ours in spans.items()}
    done = {rank: [s for s in ours if s[0] == "ALLREDUCE"] for rank, ours in spans.items()}
    for rank in spans:
        assert len(submitted[rank]) == len(done[rank]) == steps, (rank, len(submitted[rank]), len(done[rank]))
    for k in range(steps):
        last_submit = max(submitted[rank][k][1] for rank in spans)
        first_done = min(done[rank][k][2] for rank in spans)
        assert last_submit <= first_done + within_us, f"step {k}: submitted at {last_submit}, done at {first_done}"


def test_timeline_of_two_hosts_has_all_ranks_by_one_clock():
    with world.hosts(2, slots=2) as here:
        here.hvdrun("-np", 4, "--hostfile", here.hostfile, "--timeline-filename", timeline_of(here), VICTIM, "steps", 20, 20).must(0)
        must_be_aligned(read_timeline(here), ranks=4, steps=21, within_us=5000)
        here.must_be_clean()


def test_timeline_of_a_host_whose_clock_is_hours_ahead():
    with world.hosts(2, slots=1) as here:
        agent = here.directory / "agent"
        agent.write_text("#!/bin/bash\nhost=$1; shift\n"
                         "exec ssh \"$host\" \"exec unshare --time --monotonic 5000 --fork bash -c $(printf %q \"$*\")\"\n")
        agent.chmod(0o755)
        here.run("cp", agent, "/root/agent").must(0)
        outcome = here.hvdrun("-np", 2, "-H", "host0:1,host1:1", "--rsh-agent", "/root/agent", VICTIM, "steps", 20, 20,
                              env={"HOROVOD_TIMELINE": timeline_of(here)}).must(0)
        assert "missing" not in outcome.err, outcome
        here.run("rm", "/root/agent").must(0)
        must_be_aligned(read_timeline(here), ranks=2, steps=21, within_us=5000)
        here.must_be_clean()


def test_timeline_of_a_job_whose_rank_dies_is_whole():
    with world.hosts(1, slots=2) as here:
        running = here.start_hvdrun("-np", 2, "--timeline-filename", timeline_of(here), VICTIM, "segv", 1)
        running.wait().must(139, "rank 1")
        spans = spans_of(read_timeline(here), "one")
        assert {"ALLREDUCE"} <= {span[0] for span in spans[1]}, spans
        here.must_be_clean()


def test_timeline_can_be_read_when_hvdrun_was_killed():
    with world.hosts(1, slots=2) as here:
        running = here.start_hvdrun("-np", 2, "--timeline-filename", timeline_of(here), VICTIM, "loop").wait_for("joined", 2)
        world.wait_until(lambda: int(here.run("stat", "-c", "%s", timeline_of(here)).out) > 100000, 20, "events in the file")
        for process in world.roles(here.hosts[0])["driver"]:
            process.kill()
        running.wait()
        # The kernel ends a killed process's write between two pages.
        spans = spans_of(read_timeline(here, may_be_cut=True), "loop")
        assert sorted(spans) == [0, 1] and len(spans[0]) > 100, {rank: len(ours) for rank, ours in spans.items()}


def test_perfetto_timeline():
    with world.hosts(1, slots=2) as here:
        here.hvdrun("-np", 2, "--timeline-filename", here.place("t.pftrace"), VICTIM, "steps", 3, 1).must(0)
        strings = here.run("strings", "-n", "3", here.place("t.pftrace")).must(0).out
        for expected in ("rank 0 (", "rank 1 (", "NEGOTIATE_ALLREDUCE", "one"):
            assert expected in strings, strings
        here.run("rm", here.place("t.pftrace")).must(0)
        here.must_be_clean()


def test_a_timeline_that_cannot_be_written_is_said_and_costs_nothing_else():
    with world.hosts(1, slots=2) as here:
        outcome = here.hvdrun("-np", 2, "--timeline-filename", "/no/such/place/t.json", VICTIM, "steps", 3, 1).must(1, "exit code 1")
        assert "/no/such/place/t.json" in outcome.err, outcome


def test_a_rank_that_never_submits_is_named():
    with world.hosts(2, slots=1) as here:
        began = time.monotonic()
        running = here.start_hvdrun("-np", 2, "--hostfile", here.hostfile, VICTIM, "wait",
                                    env={"HOROVOD_STALL_CHECK_TIME_SECONDS": "1"})
        world.wait_until(lambda: "stalled" in running.err(), 10, f"the notice in {running.err()}")
        took = time.monotonic() - began
        notice = running.err()
        assert "'lonely'" in notice and "waits for rank 1" in notice, notice
        assert "rank 1 on host1: outside any collective, last allreduce 'one'" in notice, notice
        assert took < world.patient(5), took
        world.wait_until(lambda: running.err().count("stalled") >= 2, 10, "a second notice")
        running.process.send_signal(signal.SIGTERM)
        running.wait()


def test_a_stall_ends_the_job_when_that_is_asked_for():
    with world.hosts(1, slots=3) as here:
        outcome = here.hvdrun("-np", 3, "--stall-check-warning-time-seconds", "1", "--stall-check-shutdown-time-seconds", "2",
                              VICTIM, "wait").must(124, "'lonely'", "waits for ranks 1,2")
        assert outcome.seconds < world.patient(12), outcome
        here.must_be_clean()


def test_a_stall_ends_the_job_before_its_notice_is_due():
    with world.hosts(1, slots=2) as here:
        outcome = here.hvdrun("-np", 2, "--stall-check-warning-time-seconds", "16", "--stall-check-shutdown-time-seconds", "2",
                              VICTIM, "wait").must(124, "'lonely'", "waits for rank 1")
        assert outcome.seconds < world.patient(12), outcome
        here.must_be_clean()


def test_a_process_set_is_named_by_its_number_also_in_a_removed_ones_place():
    with world.hosts(1, slots=3) as here:
        here.hvdrun("-np", 3, "--stall-check-shutdown-time-seconds", "1", "--timeline-filename", timeline_of(here),
                    VICTIM, "wait-set").must(124, "'lonely'", "process set 2) waits for rank 1")
        events = read_timeline(here)
        assert sorted(spans_of(events, "shared (process set 2)")) == [0, 1], events
        here.must_be_clean()


def test_no_stall_notice_when_it_is_switched_off_or_nobody_waits():
    with world.hosts(1, slots=2) as here:
        quiet = here.start_hvdrun("-np", 2, "--no-stall-check", VICTIM, "wait", env={"HVD_STALL_CHECK_TIME_SECONDS": "0.2"})
        busy = here.hvdrun("-np", 2, VICTIM, "steps", 30, 50, env={"HVD_STALL_CHECK_TIME_SECONDS": "0.3"}).must(0)
        assert "stalled" not in busy.err, busy
        assert "stalled" not in quiet.err(), quiet.err()
        quiet.process.send_signal(signal.SIGTERM)
        quiet.wait()


def test_the_slowest_rank_is_in_the_summary():
    with world.hosts(2, slots=2) as here:
        outcome = here.hvdrun("-np", 4, "--hostfile", here.hostfile, "--verbose", "--output-filename", here.place("out"), VICTIM, "lag", 2, 20,
                              20).must(0)
        assert "slowest: rank 2 on host1" in outcome.err, outcome
        report = json.loads(here.run("cat", here.place("out/job.json")).must(0).out)
        assert report["summary"]["slowest"]["rank"] == 2, report["summary"]
        lag = report["summary"]["lag_s"]
        assert lag[2] == max(lag) > 0.2, report["summary"]
        assert report["ranks"][0]["counts"]["calls"]["allreduce"] == 21, report["ranks"][0]


def test_the_timeline_is_started_and_stopped_by_ranks():
    with world.hosts(2, slots=1) as here:
        here.hvdrun("-np", 2, "--hostfile", here.hostfile, VICTIM, "timeline", timeline_of(here), env={"HVD_TIMELINE": "DYNAMIC"}).must(0)
        events = read_timeline(here)
        assert sorted(spans_of(events, "during")) == [0, 1], events
        assert not spans_of(events, "before") and not spans_of(events, "after"), events
        here.must_be_clean()


def test_a_timeline_that_cannot_be_started_is_an_error_of_the_call():
    with world.hosts(1, slots=2) as here:
        here.hvdrun("-np", 2, VICTIM, "timeline", "/no/such/place/t.json").must(4, "cannot write the timeline /no/such/place/t.json")
        here.must_be_clean()


def test_counters_through_the_c_abi():
    with world.hosts(1, slots=2) as here:
        lines = here.hvdrun("-np", 2, VICTIM, "metrics").must(0).out.splitlines()
        counted = [json.loads(line.partition("<stdout>:")[2]) for line in lines if "{" in line]
        assert sorted(each["rank"] for each in counted) == [0, 1], lines
        assert all(each["all"]["calls"] == {"allreduce": 1} and each["all"]["bytes"] == {"allreduce": 4} for each in counted), counted


@contextlib.contextmanager
def hung_directory(here):
    """A directory on host 0 whose file system never answers."""
    if not os.path.exists("/dev/fuse"):
        raise world.Skip("a hung file system needs /dev/fuse")
    path = here.place("hung")
    here.run("mkdir", path).must(0)
    held, holder = os.pipe()
    try:
        with os.fdopen(held) as stdin:
            server = here.start("python3", HUNG_FS, path, stdin=stdin).wait_for("hung")
        try:
            yield path
        finally:
            here.run("umount", "--lazy", path)
    finally:
        os.close(holder)
        server.wait()
        here.run("rmdir", path).must(0)


def test_a_timeline_that_is_no_file_is_said_and_costs_nothing_else():
    with world.hosts(1, slots=2) as here:
        here.run("mkfifo", here.place("fifo")).must(0)
        outcome = here.hvdrun("-np", 2, "--timeline-filename", here.place("fifo"), VICTIM, "steps", 3, 1).must(1)
        assert f"cannot write the timeline {here.place('fifo')}: it is no regular file" in outcome.err, outcome
        here.hvdrun("-np", 2, VICTIM, "timeline", here.place("fifo")).must(4, "it is no regular file")
        here.run("rm", here.place("fifo")).must(0)
        here.must_be_clean()


def test_a_hung_file_system_ends_no_beats_and_holds_up_no_verdict():
    with world.hosts(1, slots=2) as here, hung_directory(here) as hung:
        # Longer than the lease of the ranks that wait.
        asked = here.start_hvdrun("-np", 2, "--lease", 3, VICTIM, "timeline", f"{hung}/t.json")
        outcome = here.hvdrun("-np", 2, "--timeline-filename", f"{hung}/t.json", VICTIM, "steps", 3, 1).must(1)
        assert "the timeline" in outcome.err and outcome.seconds < world.patient(10), outcome
        asked.wait().must(4, f"cannot write the timeline {hung}/t.json: its file system has not answered for 10 s")


def test_a_hung_file_system_for_the_report_holds_up_no_verdict():
    with world.hosts(2, slots=1) as here, hung_directory(here) as hung:
        outcome = here.hvdrun("-np", 1, "-H", "host1:1", "--output-filename", f"{hung}/out", "sh", "-c", "exit 3").must(3, "rank 0 on host1")
        assert f"job.json: cannot write in {hung}/out: its file system has not answered for 2 s" in outcome.err, outcome
        here.run("rm", "-r", here.own, host=1).must(0)
