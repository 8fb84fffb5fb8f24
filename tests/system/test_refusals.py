# SPDX-License-Identifier: Apache-2.0
"""Jobs that cannot be run: words that mean nothing, commands that cannot run, and limits of files, processes and memory."""
import world
from world import BIN, PROGRAMS

VICTIM = PROGRAMS / "victim"


def test_spellings_as_typed():
    with world.hosts() as here:
        hosts = here.directory / "typed"
        hosts.write_text("# two ways to write it\r\n\r\nlocalhost slots=1\r\nlocalhost:1\r\n")
        outcome = here.hvdrun("-hostfile", hosts, "-np", 2, BIN / "hello").must(0)
        assert "rank 1 of 2" in outcome.out, outcome


def test_hostfile_with_a_typo_shows_the_place():
    with world.hosts() as here:
        bad = here.directory / "bad"
        bad.write_text("host0 slots=2\nhost1 slotz=2\n")
        outcome = here.hvdrun("-np", 2, "--hostfile", bad, BIN / "hello").must(2, f"{bad}:2:7", "host1 slotz=2", "slots")
        lines = outcome.err.splitlines()
        shown = next(i for i, line in enumerate(lines) if "host1 slotz=2" in line)
        assert lines[shown + 1].index("^") == lines[shown].index("slotz"), outcome


def test_too_many_ranks_shows_the_slots():
    with world.hosts() as here:
        here.hvdrun("-np", 5, "-H", "host0:2,host1:1", BIN / "hello").must(2, "host0", "host1")


def test_unknown_option_names_the_nearest():
    with world.hosts() as here:
        here.hvdrun("-np", 2, "--hostfil", "x", BIN / "hello").must(2, "--hostfile")


def test_the_commands_own_options_are_left_alone():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 1, "echo", "-np", "7", "--verbose").must(0)
        assert "-np 7 --verbose" in outcome.out, outcome


def test_a_start_that_takes_too_long_names_what_can_help():
    with world.hosts() as here:
        # An hvdd that never speaks, beside hvdrun and behind a login.
        programs = here.place("bin")
        here.run("sh", "-c", f"mkdir {programs}; cp {world.HVDRUN} {programs}; printf '#!/bin/sh\\nexec sleep 60\\n' >{programs}/hvdd;"
                 f"chmod +x {programs}/hvdd").must(0)
        start = (f"{programs}/hvdrun", "-np", 1, "--start-timeout", "100ms")
        here.run(*start, "true").must(125, "within --start-timeout 0.1 s", "next: give it longer (--start-timeout")
        here.run(*start, "-H", "far", "--rsh-agent", f"{programs}/hvdd", "true").must(125, "next: does a login work")
        here.run("rm", "-r", programs).must(0)
        here.must_be_clean()


def test_a_flood_of_words_from_a_login_is_cut():
    with world.hosts() as here:
        agent = here.place("agent")
        here.run("sh", "-c", f"printf '#!/bin/sh\\nseq 5000 >&2 &\\nexec sh -c \"$2; wait\"\\n' >{agent}; chmod +x {agent}").must(0)
        outcome = here.hvdrun("-np", 1, "-H", "far", "--verbose", "--rsh-agent", agent, "sleep", 1).must(0, "host far: 1\n", "host far: more words")
        assert outcome.err.count("host far: ") < 1200, outcome.err.count("host far: ")
        here.run("rm", agent).must(0)
        here.must_be_clean()


def test_missing_and_unusable_commands():
    with world.hosts() as here:
        here.hvdrun("-np", 2, "/no/such/program").must(127, "/no/such/program")
        here.hvdrun("-np", 2, "no-such-program").must(127, "no-such-program")
        here.hvdrun("-np", 2, "/etc/hosts").must(126, "/etc/hosts", "chmod +x /etc/hosts")
        here.hvdrun("-np", 2, "/etc").must(126, "'/etc': it is a directory")
        here.must_be_clean()


def test_a_directory_that_may_not_be_entered_is_told_as_such():
    with world.hosts() as here:
        other = "setpriv --reuid=12345 --regid=12345 --clear-groups"
        here.run("sh", "-c", f"cd /root && exec {other} {world.HVDRUN} -np 1 true").must(125, "'/root': Permission denied; the user there may not enter it")
        here.must_be_clean()


def test_no_place_for_a_socket_is_told():
    """The socket is of use to ranks that are not the processes which hvdd started."""
    with world.hosts() as here:
        places = ("/tmp", "/dev/shm", "/var/tmp")
        if str(world.REPOSITORY).startswith(tuple(f"{place}/" for place in places)):
            raise world.Skip(f"hvdrun itself lies in {world.REPOSITORY}, which this test hides")
        before = " && ".join(f"mount -t tmpfs -o ro none {place}" for place in places)
        after = " ".join(f"umount {place};" for place in places)
        outcome = here.run("sh", "-c", f"{before} && {world.HVDRUN} -np 2 {BIN}/hello; code=$?; {after} exit $code")
        outcome.must(0, "no directory for hvdd's socket", "TMPDIR")
        assert "rank 1 of 2" in outcome.out, outcome
        here.must_be_clean()


def test_a_rank_that_runs_out_of_memory_is_named_to_all():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, VICTIM, "out-of-memory", 1)
        assert outcome.out.count("rank 1 cannot go on in 'large': out of memory") == 3 * 2, outcome
        here.must_be_clean()


def test_a_rank_without_memory_for_a_result_is_named_to_all_at_once():
    with world.hosts() as here:
        outcome = here.hvdrun("-np", 3, VICTIM, "out-of-memory", 1, "result")
        assert outcome.out.count("rank 1 cannot go on in 'large': out of memory") == 3 * 2, outcome
        assert outcome.seconds < world.patient(2.5), outcome
        here.must_be_clean()


def test_a_limit_of_files_sizes_kills_neither_hvdrun_nor_hvdd():
    with world.hosts() as here:
        limited = f"ulimit -f 64; exec {world.HVDRUN} -np 1"
        place, place2 = here.place("files"), here.place("out")
        here.run("sh", "-c", f"{limited} --output-filename {place} seq 100000 >/dev/null").must(1, "stdout: File too large")
        here.run("sh", "-c", f"{limited} seq 100000 >{place2}").must(1, "cannot write to stdout: File too large")
        here.run("sh", "-c", f"{limited} {VICTIM} wait").must(1, "rank 0", "File too large", "ulimit -f")
        here.run("rm", "-r", place, place2).must(0)
        here.must_be_clean()


def must_name_the_limit(here, letter, values):
    """A job under `ulimit -LETTER` of each of the values, as an ordinary user, ends well or says which limit it was. Returns the codes."""
    codes = []
    for value in values:
        outcome = here.run("bash", "-c", f"ulimit -{letter} {value}; exec {world.HVDRUN} -np 2 true", user=12345)
        named = f"ulimit -{letter}" in outcome.err or f"ulimit -H{letter}" in outcome.err
        assert outcome.code == 0 or outcome.code == 125 and named, f"{value}: {outcome}"
        codes.append(outcome.code)
        here.must_be_clean()
    return codes


@world.bound(90)
def test_few_processes_are_told_as_such():
    with world.hosts() as here:
        codes = must_name_the_limit(here, "u", range(1, 50, 2))
        assert codes[0] == 125 and codes[-1] == 0, codes


@world.bound(90)
def test_few_open_files_are_told_as_such():
    with world.hosts() as here:
        codes = must_name_the_limit(here, "n", [*range(4, 40, 3), 100, 197, 250, 300])
        assert codes[0] == 125 and codes[-1] == 0, codes


@world.bound(90)
def test_little_memory_is_told_as_such():
    with world.hosts() as here:
        codes = must_name_the_limit(here, "v", [20000, 40000, 60000, 80000, 100000, 250000, "unlimited"])
        assert codes[0] == 125 and codes[-1] == 0, codes
