# SPDX-License-Identifier: Apache-2.0
"""hvdrun as a shell and a terminal have it: stdin, stdout, signals."""
import os
import pathlib
import re
import shlex
import signal
import time

import world
from world import PROGRAMS

VICTIM = PROGRAMS / "victim"


def test_stdin_goes_to_rank_0():
    with world.hosts() as here:
        given = here.directory / "given"
        given.write_text("one\ntwo\n")
        with open(given, "rb") as stdin:
            outcome = here.hvdrun("-np", 2, "sh", "-c", "wc -l", stdin=stdin).must(0)
        assert sorted(outcome.out.splitlines()) == ["[0]<stdout>:2", "[1]<stdout>:0"], outcome


def test_closed_standard_descriptors_are_as_good_as_dev_null():
    with world.hosts() as here:
        for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"):
            here.run("sh", "-c", f"exec {world.HVDRUN} -np 1 cat {closed}", seconds=10).must(0)
        here.must_be_clean()


def test_an_answer_that_cannot_be_written_is_told():
    with world.hosts() as here:
        for asked in ("--help", "--version", "-np 1 --dry-run true", "--check-build"):
            here.run("sh", "-c", f"exec {world.HVDRUN} {asked} >/dev/full").must(1, "cannot write to stdout: No space left on device")


def test_a_prompt_is_shown_before_its_answer():
    with world.hosts() as here:
        stdin, keyboard = os.pipe()
        job = here.start_hvdrun("-np", 2, "python3", "-c", "import os\nif os.environ['RANK'] == '0': print('hello', input('name? '))", stdin=stdin)
        os.close(stdin)
        job.wait_for("[0]<stdout>:name? ")
        os.write(keyboard, b"you\n")
        os.close(keyboard)
        outcome = job.wait().must(0)
        assert outcome.out == "[0]<stdout>:name? hello you\n", outcome
        here.must_be_clean()


def test_no_line_of_a_flood_is_lost():
    with world.hosts() as here:
        lines = 200000
        outcome = here.hvdrun("-np", 2, VICTIM, "flood", lines, seconds=60).must(0)
        for rank in (0, 1):
            found = [line for line in outcome.out.splitlines() if line.startswith(f"[{rank}]<stdout>:line ")]
            assert len(found) == lines, f"{len(found)} of {lines} lines of rank {rank}"
            assert found[-1].startswith(f"[{rank}]<stdout>:line {lines - 1:07}"), found[-1]
        here.must_be_clean()


def test_ctrl_c():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, VICTIM, "loop").wait_for("joined", 2)
        world.console_of(here).kill(signal.SIGINT)
        outcome = job.wait(8)
        assert outcome.code == 130, outcome
        here.must_be_clean()


def test_ctrl_c_twice_does_not_wait_for_the_grace():
    with world.hosts() as here:
        grace = 600  # longer than the wait below, on however busy a machine
        job = here.start_hvdrun("-np", 2, "--grace", grace, VICTIM, "term-proof").wait_for("joined", 2)
        console = world.console_of(here)
        console.kill(signal.SIGINT)
        time.sleep(0.5)  # a person's second thought
        console.kill(signal.SIGINT)
        outcome = job.wait(8)
        assert outcome.code == 130, outcome
        here.must_be_clean()


def test_term():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, VICTIM, "loop").wait_for("joined", 2)
        world.console_of(here).kill(signal.SIGTERM)
        outcome = job.wait(8)
        assert outcome.code == 143, outcome
        here.must_be_clean()


def hang_up(here, command):
    """Runs a shell's command on a terminal of its own, and closes that when both ranks have joined."""
    job = here.start("script", "-qfec", command, "/dev/null").wait_for("joined", 2)
    next(process for process in here.hosts[0].processes() if process.name == "script").kill()
    job.wait(10)


def test_a_hang_up_ends_the_job():
    with world.hosts() as here:
        hang_up(here, f"exec {world.HVDRUN} -np 2 {VICTIM} loop")
        here.must_be_clean()
        hang_up(here, f"{world.HVDRUN} -np 2 --grace 1 {VICTIM} term-proof; true")
        here.must_be_clean(within=4)


def test_nohup_outlives_the_terminal():
    with world.hosts() as here:
        told = here.place("told")
        hang_up(here, f"trap '' HUP; {world.HVDRUN} -np 2 {VICTIM} steps 60 50 | tee {told}")
        world.wait_until(lambda: here.run("cat", told).out.count("stepped") == 2, 20, "the end of the job")
        here.run("rm", told).must(0)
        here.must_be_clean()


@world.bound(90)
def test_ctrl_z_pauses_the_console_only():
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, VICTIM, "steps", 170, 100).wait_for("joined", 2)
        console = world.console_of(here)
        console.kill(signal.SIGTSTP)
        time.sleep(15)  # longer than the lease
        console.kill(signal.SIGCONT)
        outcome = job.wait(30)
        assert outcome.code == 0 and outcome.out.count("stepped") == 2, outcome
        here.must_be_clean()


def test_other_signals_go_to_the_ranks():
    names = ("HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT")
    ways = "".join(f"trap 'echo got {name}' {name}; " for name in names)
    with world.hosts() as here:
        job = here.start_hvdrun("-np", 2, "sh", "-c", f"{ways} trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done")
        job.wait_for("up", 2)
        console = world.console_of(here)
        for name in names:
            console.kill(getattr(signal, f"SIG{name}"))
            job.wait_for(f"got {name}", 2)
        console.kill(signal.SIGTERM)
        job.wait(8).must(143, "stopped by SIGTERM")
        here.must_be_clean()


def test_a_closed_stdout_ends_the_job():
    with world.hosts() as here:
        outcome = here.run("sh", "-c", f"{world.HVDRUN} -np 2 yes | head -1", seconds=10)
        assert outcome.out.count("\n") == 1 and "<stdout>:y" in outcome.out, outcome
        here.must_be_clean()


def on_terminal(here, *words, columns=100, env=None):
    """Returns what hvdrun writes to a terminal of its own, byte for byte."""
    command = f"stty cols {columns}; exec {world.HVDRUN} {shlex.join(map(str, words))}"
    running = here.start("script", "-qec", command, "/dev/null", env={"TERM": "xterm", "NO_COLOR": "", **(env or {})})
    running.wait()
    return pathlib.Path(running.out_path).read_bytes().decode()


def slow_agent(here):
    """Logs in to host1 after two seconds, and to nobody else."""
    agent = here.directory / "agent"
    agent.write_text("#!/bin/sh\nhost=$1; shift\n[ $host != refused ] || exit 1\nsleep 2\nexec ssh -o BatchMode=yes $host \"$*\"\n")
    agent.chmod(0o755)
    return agent


def test_a_status_line_while_hosts_start():
    with world.hosts(2, slots=1) as here:
        job = ("-np", 2, "-H", "localhost:1,host1:1", "--rsh-agent", slow_agent(here), "echo", "up")
        seen = on_terminal(here, *job)
        drawn = re.findall("\rstarting 1/2 hosts · ([0-9.]+) s · waiting for host1\x1b\\[K", seen)
        assert len(drawn) >= 2 and float(drawn[0]) >= 0.5 and float(drawn[-1]) > float(drawn[0]), seen
        for line in seen.split("\r\n"):  # what stays of each line
            assert "starting" not in line.rpartition("\r\x1b[K")[2], seen.encode()
        assert seen.count("up\r\n") == 2, seen
        narrow = on_terminal(here, *job, columns=20)
        assert "\rstarting 1/2 hosts \x1b[K" in narrow, narrow.encode()
        dumb = on_terminal(here, *job, env={"TERM": "dumb"})
        piped = here.hvdrun(*job).must(0)
        for plain in (dumb, piped.out, piped.err):
            assert "starting" not in plain and "\x1b" not in plain, plain.encode()
        here.must_be_clean()


def test_errors_and_verdicts_in_colour():
    with world.hosts() as here:
        fails = ("-np", 2, "sh", "-c", "echo why >&2; exit 3")
        wrong = ("-H", "a;b", "true")
        assert "\x1b[1;31mhvdrun:\x1b[0m\x1b[1m rank " in on_terminal(here, *fails)
        refused = on_terminal(here, *wrong)
        assert "\x1b[1;31mhvdrun:\x1b[0m\x1b[1m -H:1:2: " in refused and "\x1b[1;31m^\x1b[0m" in refused, refused.encode()
        unreachable = on_terminal(here, "-H", "refused", "--rsh-agent", slow_agent(here), "true")
        assert "\x1b[1;32mnext:\x1b[0m " in unreachable, unreachable.encode()
        for words in (fails, wrong):
            for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                assert "\x1b[1" not in on_terminal(here, *words, env=env)
            assert "\x1b" not in here.hvdrun(*words).err
        here.must_be_clean()


def test_verbose_says_how_a_host_is_reached_and_twice_with_every_word():
    with world.hosts(2, slots=1) as here:
        once = here.hvdrun("-np", 2, "--hostfile", here.hostfile, "--verbose", "true").must(0, "host host0: hvdd\n", "host host1: ssh host1 hvdd\n")
        assert "BatchMode" not in once.err, once
        here.hvdrun("-np", 2, "--hostfile", here.hostfile, "--verbose", "--verbose", "true").must(0, "host host1: ssh -T -x -o BatchMode=yes")
        here.must_be_clean()


def stuck_reader(here, *words, stderr="", grace=1):
    """Starts hvdrun with a stdout that somebody holds open and never reads."""
    pipe = here.place("pipe")
    here.run("mkfifo", pipe).must(0)
    return here.start("sh", "-c", f"exec 9<>{pipe}; rm {pipe}; exec {world.HVDRUN} -np 2 --grace {grace} {' '.join(map(str, words))} >&9 {stderr}")


LOST = "bytes of output were not taken by the reader of stdout and are lost"


def test_a_reader_that_does_not_read_ends_no_later_than_the_grace():
    with world.hosts() as here:
        files = here.place("files")
        stuck_reader(here, "--timeout", 1, "--output-filename", files, "yes").wait(20).must(124, "--timeout 1 s", LOST)
        assert '"exit_code":124' in here.run("cat", f"{files}/job.json").out
        here.run("rm", "-r", files).must(0)
        here.must_be_clean()
        stuck_reader(here, "sh", "-c", "'yes | head -300000; exit 7'").wait(20).must(7, "exited with code 7", LOST)
        here.must_be_clean()
        stuck_reader(here, "sh", "-c", "'yes | head -300000'").wait(20).must(1, LOST)
        here.must_be_clean()
        outcome = stuck_reader(here, "--timeout", 1, "yes", stderr="2>&9").wait(20)
        assert outcome.code == 124, outcome
        here.must_be_clean()


def test_signals_end_a_job_whose_reader_does_not_read():
    with world.hosts() as here:
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            job = stuck_reader(here, "yes")
            world.wait_until(lambda: sum(process.name == "yes" for process in here.hosts[0].processes()) == 2, 20, "both ranks")
            world.console_of(here).kill(number)
            job.wait(20).must(code, LOST)
            here.must_be_clean()


def test_a_held_terminal_does_not_keep_a_job():
    with world.hosts() as here:
        leader, terminal = os.openpty()
        job = here.start("sh", "-c", f"exec {world.HVDRUN} -np 1 --grace 1 --timeout 2 yes <&0 >&0 2>&0", stdin=terminal)
        os.close(terminal)
        while b"y" not in os.read(leader, 4096):
            pass
        os.write(leader, b"\x13")  # Ctrl-S
        assert job.wait(20).code == 124
        os.close(leader)
        here.must_be_clean()


def test_a_slow_reader_gets_everything():
    with world.hosts() as here:
        slow = "import os, time\nn = 0\nwhile b := os.read(0, 20000):\n  n += b.count(10); time.sleep(0.03)\nprint(n)"
        outcome = here.run("bash", "-c", f"{world.HVDRUN} -np 1 --grace 1 sh -c 'yes | head -150000' | python3 -c '{slow}'; exit ${{PIPESTATUS[0]}}", seconds=50)
        assert outcome.must(0).out == "150000\n", outcome
        here.must_be_clean()


def test_output_that_cannot_be_written_is_an_error():
    with world.hosts() as here:
        here.run("sh", "-c", f"exec {world.HVDRUN} -np 2 echo hello >/dev/full").must(1, "cannot write to stdout: No space left on device", "exit code 1")
        here.run("sh", "-c", f"exec {world.HVDRUN} -np 2 sh -c 'echo hello; exit 7' >/dev/full").must(7, "exited with code 7")
        here.must_be_clean()


# ---- output that has a file, too: lines are left out for a reader that does not read, and for no other ----

def test_no_line_is_left_out_for_a_file_or_a_slow_pipe():
    with world.hosts() as here:
        folder, lines = here.place("out"), 400000  # 11 MB a rank: ten times what lies between a rank and its reader
        flood = f"{world.HVDRUN} -np 2 --output-filename {folder} {VICTIM} flood {lines}"
        to_file = here.run("sh", "-c", f"{flood} >{here.own}/shown; code=$?; grep -c jumps {here.own}/shown; grep -c 'only in this' {here.own}/shown; exit $code", seconds=90)
        assert to_file.code == 0 and to_file.out.split() == [str(2 * lines), "0"], to_file
        slow = "import os, time\nwhile data := os.read(0, 1 << 20):\n    os.write(1, data)\n    time.sleep(0.002)"
        piped = here.run("bash", "-c", f"set -o pipefail; {flood} | python3 -c {shlex.quote(slow)} | grep -c jumps", seconds=90)
        assert piped.code == 0 and piped.out.split() == [str(2 * lines)], piped
        here.run("rm", "-r", here.own).must(0)
        here.hosts[0].clean.discard(here.own)
        here.own = None


@world.bound(120)
def test_a_reader_that_does_not_read_holds_up_no_rank_whose_file_has_all():
    with world.hosts() as here:
        folder, lines = here.place("out"), 400000
        here.run("mkfifo", f"{folder}.pipe").must(0)
        pipe = here.hosts[0].root / f"{folder}.pipe".lstrip("/")
        job = here.start("sh", "-c", f"exec {world.HVDRUN} -np 1 --output-filename {folder} sh -c '{VICTIM} flood {lines}; : >{folder}.done' >{folder}.pipe")
        read_end = os.open(pipe, os.O_RDONLY)
        world.wait_until(lambda: here.run("test", "-e", f"{folder}.done").code == 0, 60, "the rank's end")
        taken = b""
        while data := os.read(read_end, 1 << 20):
            taken += data
        os.close(read_end)
        job.wait().must(0)
        left_out = re.findall(rb"\[(\d+) lines are only in this rank's file\]", taken)
        assert left_out and taken.count(b"jumps") + sum(map(int, left_out)) >= lines, taken[-300:]
        here.run("rm", "-r", folder, f"{folder}.done", f"{folder}.pipe").must(0)
        here.must_be_clean()


# ---- progress bars ----

BAR = """
import os, sys, time
rank = os.environ["RANK"]
for step in range(41):
    sys.stderr.write(f"\\r{step:3}/40 [" + "#" * step + f"] rank {rank}" + " long" * 40)
    sys.stderr.flush()
    if step == 20:
        print(f"half of {rank}", flush=True)
    time.sleep(0.05)
sys.stderr.write("\\n" if rank in "01" else "")
"""


def test_progress_bars_of_ranks_have_a_row_each_on_a_terminal():
    with world.hosts(slots=4) as here:
        program = here.place("bar.py")
        (here.hosts[0].root / program.lstrip("/")).write_text(BAR)
        run = f"stty cols 60 rows 24; exec {world.HVDRUN} -np 4 python3 {program}"
        for options in ("", " --prefix-timestamp"):
            job = here.start("script", "-qfec", run.replace(" -np", options + " -np"), "/dev/null", env={"TERM": "xterm-256color"})
            job.wait(60).must(0)
            screen = rows_of(pathlib.Path(job.out_path).read_bytes().decode(), 60)
            for rank in range(4):
                shown = [row.partition(f"localhost:{rank}| ")[2] for row in screen if f"localhost:{rank}| " in row]
                assert len(shown) == 2 and shown[0] == f"half of {rank}" and shown[1].startswith(" 40/40 [##"), screen
        for where in ("2>&1 | cat", f">{here.own}/shown 2>&1; cat {here.own}/shown"):
            outcome = here.run("sh", "-c", f"{world.HVDRUN} -np 4 python3 {program} {where}", seconds=60)
            for rank in range(4):
                bars = [line for line in outcome.out.splitlines() if line.startswith(f"[{rank}]<stderr>:")]
                assert 2 <= len(bars) <= 3 + outcome.seconds and " 40/40 " in bars[-1], bars
                assert outcome.out.count(f"[{rank}]<stdout>:half of {rank}\n") == 1, outcome
        here.run("rm", "-rf", here.own).must(0)
        here.hosts[0].clean.discard(here.own)
        here.own = None


def rows_of(shown, columns):
    """The rows that a terminal shows in the end, of the few sequences that hvdrun uses; no other may come."""
    rows, row, column, wraps = [""], 0, 0, True
    for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|\x1b.|[\r\n]|[^\x1b\r\n]", shown):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif part == "\x1b[A":
            row -= 1
        elif part == "\x1b[J":
            rows[row:] = [rows[row][:column]]
        elif part == "\x1b[K":
            rows[row] = rows[row][:column]
        elif part in ("\x1b[?7l", "\x1b[?7h"):
            wraps = part.endswith("h")
        elif part[0] == "\x1b":
            assert part.endswith("m"), repr(part)  # a colour
        else:
            if column == columns and wraps:
                row, column = row + 1, 0
                rows += [""] * (row + 1 - len(rows))
            column = min(column, columns - 1)
            rows[row] = rows[row].ljust(column)[:column] + part + rows[row][column + 1:]
            column += 1
    return [text.rstrip() for text in rows if text.strip()]
