# SPDX-License-Identifier: Apache-2.0
"""Names, files, commands and other programs' words that would forge hvdrun's lines or steer the terminal."""
import json
import os
import pathlib
import re
import shlex

import world
from world import PROGRAMS

HOSTILE = PROGRAMS / "hostile"
# A title (OSC), a colour and a cleared screen (CSI), the same as C1 in UTF-8 and as a byte, a turned direction, a line of our own.
EVIL = os.fsdecode(b"x\x1b]0;owned\x07\x1b[31m\x1b[2J\xc2\x9b31m\x9b31m\xe2\x80\xae\r\nhvdrun: forged\nforged\x7f")
SHOWN = r"x\x1b]0;owned\x07\x1b[31m\x1b[2J\u009b31m\x9b31m\u202e\r\nhvdrun: forged\nforged\x7f"
OF_A_RANK = re.compile(rb"\[\d+\]<std(out|err)>:.*")
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def own_words(running):
    """Returns what hvdrun itself has said, checked: no byte of it steers a terminal, none of its lines is another's."""
    raw = pathlib.Path(running.err_path).read_bytes()
    own = b"".join(line + b"\n" for line in raw.split(b"\n") if not OF_A_RANK.fullmatch(line)).decode()  # or it is no UTF-8
    assert not HARMFUL.search(own), own.encode()
    assert not re.search("^(hvdrun: )?forged", own, re.MULTILINE), own
    return own


def words_of(here, *words, code, **how):
    running = here.start_hvdrun(*words, **how)
    running.wait().must(code)
    return own_words(running)


def test_a_tensors_name_in_the_notice_and_the_verdict_of_a_stall():
    with world.hosts() as here:
        said = words_of(here, "-np", 2, "--stall-check-warning-time-seconds", 1, "--stall-check-shutdown-time-seconds", 2,
                        HOSTILE, "stall", EVIL, code=124)
        assert said.count(f"'{SHOWN}' (allreduce") >= 2, said  # the notice, and the verdict
        here.must_be_clean()


def test_a_tensors_name_in_a_mismatch():
    with world.hosts() as here:
        running = here.start_hvdrun("-np", 2, HOSTILE, "mismatch", EVIL)
        running.wait().must(1)
        own_words(running)
        told = re.findall(rb"^\[\d\]<stderr>:told: .*", pathlib.Path(running.err_path).read_bytes(), re.MULTILINE)
        assert len(told) == 2 and all(SHOWN.encode() in line and not HARMFUL.search(line.decode()) for line in told), told
        here.must_be_clean()


def test_last_words_and_what_was_being_done():
    with world.hosts() as here:
        folder = here.place("out")
        # 9: its own end; 1: what it throws.
        for mode, code in (("last-words", 137), ("throw", 1)):
            said = words_of(here, "-np", 2, "--output-filename", folder, HOSTILE, mode, EVIL, code=code)
            assert r"    | x\x1b]0;owned\x07\x1b[31m\x1b[2J\u009b31m\x9b31m\u202e" in said, said
            assert "    | hvdrun: forged\n" in said, said
            raw = (here.hosts[0].root / folder.lstrip("/") / "job.json").read_bytes()
            assert not HARMFUL.search(raw.decode()), raw
            lines = json.loads(raw)["ranks"][1]["last_lines"]
            assert lines[:2] == ["x\x1b]0;owned\x07\x1b[31m\x1b[2J\x9b31m\ufffd31m\u202e\r", "hvdrun: forged"], lines
        here.run("rm", "-r", folder).must(0)
        here.must_be_clean()


def test_names_in_the_timeline():
    with world.hosts() as here:
        path = here.place("t.json")
        words_of(here, "-np", 2, "--timeline-filename", path, HOSTILE, "throw", EVIL, code=1)
        raw = (here.hosts[0].root / path.lstrip("/")).read_bytes().decode()
        rows = [event["args"]["name"] for event in json.loads(raw) if event.get("name") == "thread_name"]
        assert any("owned" in row for row in rows), rows
        assert not HARMFUL.search(raw.replace("\n", "")), raw
        here.run("rm", path).must(0)
        here.must_be_clean()


def test_a_hostfiles_name_and_words():
    with world.hosts() as here:
        for content in ("host0 slots=1\nbad\x1b[2J slots=2\n", "\x1b[31mred slots=1\n", "a slots=\x1b[2J\n", "a sl\x9bots=1\n", ""):
            path = here.place("hosts" + EVIL.replace("/", ""))
            (here.hosts[0].root / here.own.lstrip("/") / os.path.basename(path)).write_bytes(content.encode("latin-1"))
            said = words_of(here, "--hostfile", path, "true", code=2)
            assert f"hosts{SHOWN}" in said, said
            os.unlink(here.hosts[0].root / here.own.lstrip("/") / os.path.basename(path))
        said = words_of(here, "--hostfile", "/no/such/" + EVIL, "true", code=2)
        assert f"/no/such/{SHOWN} cannot be read" in said, said
        words_of(here, "-H", "a\x1b[2J:1", "true", code=2)
        words_of(here, "-np", EVIL, "true", code=2)
        words_of(here, "--" + EVIL, "true", code=2)
        words_of(here, "-np", 1, "-x", EVIL, "true", code=2)


def test_commands_directories_and_variables():
    with world.hosts() as here:
        said = words_of(here, "-np", 1, EVIL, code=127)
        assert f"command '{SHOWN}' not found" in said, said
        words_of(here, "-np", 1, "./" + EVIL, code=127)
        words_of(here, "-np", 1, "--output-filename", "/proc/" + EVIL, "true", code=1)
        words_of(here, "-np", 1, "--timeline-filename", "/proc/" + EVIL, "true", code=1)
        words_of(here, "-np", 1, "true", code=2, env={"HVD_FUSION_THRESHOLD": EVIL})
        words_of(here, "-np", 1, "--verbose", "true", code=0, env={"HVD_FUSION_THRESHOLT" + EVIL: "1"})
        outcome = here.hvdrun("-np", 1, "--dry-run", "echo", EVIL).must(0)
        assert rf"command: echo $'{SHOWN}'" in outcome.out, outcome
        here.must_be_clean()


def test_a_remote_shells_words():
    with world.hosts(2, slots=1) as here:
        talks = f"printf %s {shlex.quote(EVIL)}"
        refused = f"sh -c {shlex.quote(f'{talks} >&2; {talks}; exit 3')} shell"
        said = words_of(here, "-H", "host1:1", "--rsh-agent", refused, "true", code=125)
        assert r"    | x\x1b]0;owned" in said, said
        talking = f"sh -c {shlex.quote(f'{talks} >&2; {talks}; exec sh -c ' + chr(34) + '$2' + chr(34))} shell"
        said = words_of(here, "-H", "host1:1", "--verbose", "--rsh-agent", talking, "true", code=0)
        assert r"host host1: x\x1b]0;owned" in said, said
        words_of(here, "-H", "host1:1", "--rsh-agent", shlex.quote("./" + EVIL), "true", code=125)
        here.must_be_clean()
