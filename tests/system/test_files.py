# SPDX-License-Identifier: Apache-2.0
"""Files that hvdrun and hvdd write, and what others may have put in their place; programs with rights of another's."""
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
        outcome = here.hvdrun("-np", 1, "--output-filename", shared, "--timeline-filename", f"{shared}/line.json", "echo", "new").must(0)
        assert "rank.0000 is a symbolic link" in outcome.err and "line.json: it is a symbolic link" in outcome.err, outcome
        outcome = here.hvdrun("-np", 1, "--output-filename", f"{shared}/dir", "echo", "new").must(0)
        assert "the symbolic link dir belongs to another user (uid 12345)" in outcome.err, outcome
        assert here.run("sh", "-c", f"cd {shared}; ls precious; cat precious/stdout; stat -c %F:%a job.json").out == "stdout\nold\nregular file:600\n"
        here.run("rm", "-r", shared).must(0)
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
