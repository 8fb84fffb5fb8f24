# SPDX-License-Identifier: Apache-2.0
"""Files that hvdrun and hvdd write, and what others may have put in their place; programs with rights of another's."""
import json
import os

import world
from world import BIN, PROGRAMS

VICTIM = PROGRAMS / "victim"
OTHER = "setpriv --reuid=12345 --regid=12345 --clear-groups"


def test_no_link_of_another_user_is_followed():
    with world.hosts() as here:
        shared = here.place("shared")
        here.run("sh", "-c", f"mkdir -m 1777 {shared}; mkdir -m 755 {shared}/precious; echo old >{shared}/precious/stdout; chmod 755 {os.path.dirname(shared)}").must(0)
        here.run("sh", "-c", f"{OTHER} sh -c 'ln -s precious {shared}/rank.0000; ln -s precious/stdout {shared}/job.json; ln -s precious/stdout {shared}/line.json; ln -s precious {shared}/dir'").must(0)
        outcome = here.hvdrun("-np", 1, "--output-filename", shared, "--timeline-filename", f"{shared}/line.json", "echo", "new").must(1)
        assert "rank.0000 is a symbolic link" in outcome.err and "line.json: it is a symbolic link" in outcome.err, outcome
        outcome = here.hvdrun("-np", 1, "--output-filename", f"{shared}/dir", "echo", "new").must(1)
        assert "the symbolic link dir belongs to another user (uid 12345)" in outcome.err, outcome
        assert here.run("sh", "-c", f"cd {shared}; ls precious; cat precious/stdout; stat -c %F:%a job.json").out == "stdout\nold\nregular file:600\n"
        here.run("rm", "-r", shared).must(0)
        here.must_be_clean()


def full_disk(here, name, kilobytes=64, host=0):
    """A directory of a host's /tmp on a disk of its own that is soon full."""
    place = here.place(name)
    here.run("sh", "-c", f"mkdir -p {place} && mount -t tmpfs -o size={kilobytes}k tmpfs {place}", host=host).must(0)
    return place


def test_a_full_disk_is_said_and_is_no_success():
    with world.hosts(2, slots=1) as here:
        full = full_disk(here, "full", host=1)
        here.run("mkdir", "-p", full).must(0)
        hosts = ("-np", 2, "--hostfile", here.hostfile, "--output-filename", f"{full}/out")
        seq = ("sh", "-c", "[ $HVD_RANK = 0 ] && exit; seq 100000; exit $HVD_TEST_CODE")
        outcome = here.hvdrun(*hosts, "-x", "HVD_TEST_CODE=0", *seq, seconds=60)
        outcome.must(1, f"hvdrun: host host1: writing {full}/out/rank.0001/stdout: No space left on device\n  next: make room there", "exit code 1")
        assert outcome.out.count("\n") == 100000, "the console has it all"
        report = json.loads(here.run("cat", f"{full}/out/job.json").must(0).out)
        assert len(report["lost_files"]) == 1 and report["exit_code"] == 1, report
        here.hvdrun(*hosts, "-x", "HVD_TEST_CODE=7", *seq, seconds=60).must(7, "  also: host host1: writing ")
        here.run("sh", "-c", f"umount {full}; rm -r {here.own}", host=1).must(0)
        here.run("rm", "-r", full).must(0)
        here.must_be_clean()


def test_a_report_or_timeline_that_a_full_disk_does_not_take_is_no_success():
    with world.hosts() as here:
        full = full_disk(here, "full")
        fill = f"head -c 1M /dev/zero >{full}/fill; true"
        outcome = here.hvdrun("-np", 1, "--output-filename", f"{full}/out", "sh", "-c", fill)
        outcome.must(1, f"hvdrun: job.json: cannot write in {full}/out: No space left on device\n", "exit code 1")
        assert not here.run("sh", "-c", f"ls {full}/out/job.json; ls -A {full}/out | grep json").out, "nothing half is left"
        here.hvdrun("-np", 1, "--timeline-filename", f"{full}/line.json", VICTIM, "steps", 30, 1).must(1, f"the timeline {full}/line.json is incomplete: No space left on device")
        here.run("sh", "-c", f"umount {full}; rmdir {full}").must(0)
        here.must_be_clean()


def test_a_directory_that_cannot_be_made_is_said_and_is_no_success():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, "--output-filename", "/proc/nothing/here", "echo", "hello").must(1, "hvdrun: job.json: cannot make /proc/nothing/here: No such file or directory\n", "  also: and 3 more files\n", "exit code 1")
        assert outcome.out.count("hello") == 3, outcome
        here.hvdrun("-np", 1, "--compat", "horovod", "--output-filename", "/proc/nothing/here", "echo", "hello").must(1, "/proc/nothing/here")
        here.must_be_clean()


def test_output_and_timeline_are_for_the_user_alone():
    with world.hosts() as here:
        place = here.place("own")
        here.hvdrun("-np", 1, "--output-filename", place, "--timeline-filename", f"{place}.json", VICTIM, "steps", 2, 1).must(0)
        modes = here.run("stat", "-c", "%a", place, f"{place}/rank.0000", f"{place}/rank.0000/stdout", f"{place}/job.json", f"{place}.json").must(0)
        assert modes.out.split() == ["700", "700", "600", "600", "600"], modes
        here.run("rm", "-r", place, f"{place}.json").must(0)
        here.must_be_clean()


def test_borrowed_rights_are_refused():
    with world.hosts() as here:
        copies = here.place("copies")
        here.run("sh", "-c", f"mkdir -m 755 {copies}; cp {BIN}/hvdrun {BIN}/hvdd {copies}; chmod 755 {os.path.dirname(copies)}; chmod 4755 {copies}/hvdrun; chmod 2755 {copies}/hvdd").must(0)
        here.run("sh", "-c", f"exec {OTHER} {copies}/hvdrun -np 1 true").must(125, "hvdrun: it runs set-user-ID, set-group-ID")
        here.run("sh", "-c", f"exec {OTHER} {copies}/hvdd --marker 12").must(125, "hvdd: it runs set-user-ID, set-group-ID")
        here.run("rm", "-r", copies).must(0)
        here.must_be_clean()


def test_a_working_directory_that_is_gone_is_told():
    with world.hosts() as here:
        here.run("sh", "-c", f"mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone; exec {world.HVDRUN} -np 1 true").must(2, "the working directory is gone")
        here.must_be_clean()


def test_an_output_file_that_hangs_ends_with_a_word():
    import test_seeing
    with world.hosts() as here, test_seeing.hung_directory(here) as hung:
        outcome = here.hvdrun("-np", 1, "--output-filename", f"{hung}/out", "sh", "-c", "echo hello; exit 7", seconds=30)
        outcome.must(7, "the end of this file is missing", "has not answered")
        assert "[0]<stdout>:hello" in outcome.out, outcome
        here.hvdrun("-np", 1, "--output-filename", f"{hung}/out", "echo", "hello", seconds=30).must(1, "the end of this file is missing")


def test_a_weaker_containment_is_always_told():
    with world.hosts(2, slots=1) as here:
        outcome = here.hvdrun("-np", 2, "--hostfile", here.hostfile, "--containment", "subreaper", "true").must(0)
        for host in ("host0", "host1"):
            assert outcome.err.count(f"host {host}: containment by subreaper only, as --containment says") == 1, outcome
        root = here.place("root")  # in a chroot, and without the right, there are no new namespaces
        weak = f"chroot {root} setpriv --bounding-set -sys_admin --inh-caps -sys_admin {world.HVDRUN} -np 1 true"
        outcome = here.run("sh", "-c", f"mkdir {root}; mount --rbind / {root}; {weak}; code=$?; umount -l {root}; rmdir {root}; exit $code").must(0)
        assert "containment by " in outcome.err and "because stronger ones fail (namespace" in outcome.err, outcome
        assert "containment" not in here.hvdrun("-np", 1, "true").must(0).err
        here.must_be_clean()


def test_a_limit_of_open_files_that_no_rank_can_live_with_is_told_first():
    with world.hosts() as here:
        for limit in (64, 128, 255):
            refused = here.run("sh", "-c", f"ulimit -n {limit}; exec {world.HVDRUN} -np 1 true")
            refused.must(125, f"a job of 1 host needs 256 open files, and {limit} are allowed here; raise the hard limit (ulimit -Hn)")
        here.run("sh", "-c", f"ulimit -n 256; exec {world.HVDRUN} -np 2 {VICTIM} steps 3 1").must(0)
        here.must_be_clean()
