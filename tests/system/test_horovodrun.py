# SPDX-License-Identifier: Apache-2.0
"""hvdrun under the name horovodrun, with horovodrun's flags, config file and files of output."""
import world
from world import BIN

HELLO = BIN / "hello"
HOROVODRUN = str(BIN / "horovodrun")


def horovodrun(here, *words, **how):
    return here.run(HOROVODRUN, *words, **how)


def test_a_command_line_of_horovodrun():
    with world.hosts(2) as here:
        outcome = horovodrun(here, "-np", 3, "-H", "host0:2,host1:1", "--gloo", "--start-timeout", 20, "--network-interface", "lo",
                             "--network-interface", "eth0", "--fusion-threshold-mb", 8, "--cache-capacity", 2048, "--tcp",
                             "--log-with-timestamp", "--no-stall-check", "--verbose", HELLO, seconds=40).must(0)
        assert outcome.out.count("rank ") == 3, outcome
        for said in ("--gloo has no effect: ", "--cache-capacity has no effect: ", "--log-with-timestamp has no effect: "):
            assert outcome.err.count(said) == 1, outcome  # not once a rank
        for setting in ('HVD_NET_DEVICES "lo,eth0"', "HVD_FUSION_THRESHOLD 8M", "HVD_TRANSPORT tcp", "HVD_STALL_CHECK_DISABLE 1"):
            assert f"setting {setting}\n" in outcome.err, outcome
        here.must_be_clean()


def test_what_cannot_be_is_refused_before_anything_starts():
    with world.hosts() as here:
        for words in (("--slots", 2), ("--reset-limit", 1), ("--blacklist-cooldown-range", 1, 2), ("--elastic-timeout", 60)):
            horovodrun(here, "-np", 2, *words, HELLO).must(2, "is for jobs whose members come and go; --min-np, --max-np or")
        horovodrun(here, "-np", 2, "--min-np", 3, HELLO).must(2, "--min-np is more than -np 2")
        horovodrun(here, "-np", 2, "--cycle-time", 3, HELLO).must(2, 'unknown option "--cycle-time"; did you mean --cycle-time-ms?')
        horovodrun(here, "-np", 2, "--cycle-time-ms", "fast", HELLO).must(2, "--cycle-time-ms fast\n                  ^\n")
        here.must_be_clean()


def test_the_config_file():
    with world.hosts() as here:
        config = here.place("job.yaml")
        path = here.hosts[0].root / config.lstrip("/")
        path.write_text("params:\n  fusion_threshold_mb: 2\n  cycle_time_ms: 4\nlogging: {level: INFO}\n")
        outcome = horovodrun(here, "-np", 2, "--cycle-time-ms", 1, "--config-file", config, HELLO).must(0)
        assert outcome.err.count("hvd: setting HVD_FUSION_THRESHOLD 2M") == 1, outcome
        assert outcome.err.count("hvd: setting HVD_BATCH_WAIT_US 1000us") == 1, outcome
        path.write_text("params:\n  fusion_threshold_mb: much\n")
        horovodrun(here, "-np", 2, "--config-file", config, HELLO).must(
            2, f"{config}:2:24: --fusion-threshold-mb must be a number of MB from 0 to 4096", "\n    fusion_threshold_mb: much\n                         ^\n")
        path.unlink()
        here.must_be_clean()


@world.bound(120)
def test_output_files_lie_with_the_launcher():
    say = "echo out $HVD_RANK; echo err $HVD_RANK >&2; printf end"
    with world.hosts(2) as here:
        for np, hosts, width in ((1, (), 1), (3, ("-H", "host0:2,host1:1"), 1), (11, ("-H", "host0:6,host1:5"), 2)):
            place = here.place("out")
            outcome = horovodrun(here, "-np", np, *hosts, "--output-filename", place, "sh", "-c", say, seconds=40).must(0)
            assert outcome.out.count("out ") == np, outcome  # and still shown
            root = here.hosts[0].root / place.lstrip("/")
            names = {f"rank.{rank:0{width}}" for rank in range(np)}
            assert {path.name for path in root.iterdir() if path.is_dir()} == names, sorted(root.iterdir())
            for rank in range(np):
                folder = root / f"rank.{rank:0{width}}"
                assert (folder / "stdout").read_text() == f"out {rank}\nend", folder
                assert (folder / "stderr").read_text() == f"err {rank}\n", folder
            here.run("rm", "-r", place).must(0)
        here.must_be_clean()


@world.bound(120)
def test_output_files_hold_all_of_a_burst_and_what_cannot_be_written_is_told():
    burst = "seq 1 200000; seq 1 200000 >&2"
    wanted = "".join(f"{number}\n" for number in range(1, 200001))
    with world.hosts() as here:
        place = here.place("out")
        horovodrun(here, "-np", 2, "--output-filename", place, "sh", "-c", burst, seconds=60).must(0)
        root = here.hosts[0].root / place.lstrip("/")
        for rank in (0, 1):
            for stream in ("stdout", "stderr"):
                assert (root / f"rank.{rank}" / stream).read_text() == wanted
        here.run("rm", "-r", place).must(0)
        root.write_text("a file in the directory's place")
        outcome = horovodrun(here, "-np", 1, "--output-filename", place, "seq", 1, 20000, seconds=60)
        outcome.must(1, f"cannot write {place}/rank.0/stdout: ")
        assert outcome.out.count("\n") == 20000, outcome.err
        root.unlink()
        here.must_be_clean()


def test_a_start_that_takes_too_long():
    with world.hosts() as here:
        here.run(HOROVODRUN, "-np", 2, HELLO, env={"HOROVOD_START_TIMEOUT": "soon"}).must(2, "HOROVOD_START_TIMEOUT=soon\n")
        outcome = here.hvdrun("-np", 1, "--verbose", HELLO, env={"HOROVOD_START_TIMEOUT": "25"}).must(0)
        assert "--start-timeout 25 (from HOROVOD_START_TIMEOUT)" in outcome.err, outcome
        here.must_be_clean()
