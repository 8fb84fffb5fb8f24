# SPDX-License-Identifier: Apache-2.0
"""Settings on their way from the command line and the environment to the ranks, and the search for better ones."""
import world
from world import BIN, PROGRAMS

BENCH = BIN / "hvd-bench"
VICTIM = PROGRAMS / "victim"


def test_settings_are_listed_refused_and_guessed():
    with world.hosts() as here:
        said = here.hvdrun("-np", 2, "--verbose", "--fusion-threshold-mb", 3, BIN / "hello",
                           env={"HOROVOD_CYCLE_TIME": "2", "HVD_AUTOTUN": "1"}).must(0).err
        assert "setting HVD_FUSION_THRESHOLD 3M\n" in said, said
        assert "setting HVD_BATCH_WAIT_US 2000us (from HOROVOD_CYCLE_TIME)" in said, said
        assert "HVD_AUTOTUN is no setting; did you mean HVD_AUTOTUNE?" in said, said
        here.hvdrun("-np", 2, BIN / "hello", env={"HVD_DETERMINISTIC": "maybe"}).must(2, "HVD_DETERMINISTIC must be 1 or 0")
        here.hvdrun("-np", 2, "-x", "HVD_ONE_SHOT_BYTES=1G", BIN / "hello").must(2, "the nearest is 128K")
        here.must_be_clean()


def test_rank_0_says_its_settings_when_asked():
    with world.hosts() as here:
        said = here.hvdrun("-np", 2, "--log-level", "info", "--fusion-threshold-mb", 1, BIN / "hello").must(0).err
        assert said.count("hvd: setting HVD_FUSION_THRESHOLD 1M") == 1, said


@world.bound(120)
def test_settings_that_differ_between_ranks_end_the_job_before_it_begins():
    odd = 'if [ "$HVD_RANK" = 1 ]; then export {}; fi; exec "$@"'
    with world.hosts(2, slots=2) as here:
        for more in (("-np", 2), ("-np", 3, "--hostfile", here.hostfile)):
            for setting, usual, other in (("HVD_PIECE_BYTES=4096", "64K", "4K"), ("HVD_ONE_SHOT_BYTES=0", "16K", "0"),
                                          ("HVD_FUSION_THRESHOLD=1M", "64M", "1M"), ("HVD_MAX_PENDING=5", "1048576", "5"),
                                          ("HOROVOD_AUTOTUNE=1", "0", "1")):
                outcome = here.hvdrun(*more, "sh", "-c", odd.format(setting), "sh", BIN / "hello")
                name = setting.partition("=")[0].replace("HOROVOD", "HVD")
                said = f"{name} is {usual} on rank 0 (host "
                assert outcome.code not in (0, 143) and said in outcome.err and f" and {other} on rank 1 (host " in outcome.err, outcome
                assert f"its hvd_init failed: {said}" in outcome.err, outcome
        # A rank's own business.
        here.hvdrun("-np", 2, "sh", "-c", odd.format("HVD_LOG_LEVEL=error HVD_BATCH_WAIT_US=1"), "sh", BIN / "hello").must(0)
        here.must_be_clean()


def search(here, np, *more):
    here.hvdrun("-np", np, *more, "--autotune", "--autotune-log-file", here.place("tune.csv"), "--autotune-file", here.place("tune.env"),
                "--autotune-steps-per-sample", 2, "--autotune-warmup-samples", 1, "--autotune-max-samples", 8,
                BENCH, "allreduce", "--async", "--sizes", "64K", "--iters", 60, seconds=60).must(0)


@world.bound(120)
def test_autotune_searches_within_its_bound_and_its_result_is_used_again():
    with world.hosts(2, slots=2) as here:
        for np, more in ((2, ()), (4, ("--hostfile", here.hostfile))):
            search(here, np, *more)
            lines = here.run("cat", here.place("tune.csv")).must(0).out.splitlines()
            assert lines[0].startswith("sample,HVD_FUSION_THRESHOLD,"), lines
            assert lines[-1].endswith(",result"), lines
            assert 3 <= len(lines) <= 1 + 1 + 8 + 1, lines
            result = here.run("cat", here.place("tune.env")).must(0).out
            assert result.startswith("HVD_FUSION_THRESHOLD="), result
            here.run("rm", here.place("tune.csv")).must(0)
            search(here, np, *more)  # from the file: nothing is sampled
            assert here.run("cat", here.place("tune.csv")).code != 0
            here.run("rm", here.place("tune.env")).must(0)
        here.must_be_clean()


def test_the_bench_takes_sizes_with_their_unit():
    with world.hosts() as here:
        said = here.hvdrun("-np", 2, BENCH, "allgather", "--sizes", "8,1K,2M", "--iters", 2, "--json").must(0).out
        assert [f'"bytes":{size},' in line for size, line in zip((8, 1024, 2 << 20), said.splitlines())] == [True] * 3, said
        here.hvdrun("-np", 2, BENCH, "allgather", "--sizes", "4,1X").must(2, "unit not recognized")
        here.hvdrun("-np", 2, BENCH, "allgather", "--sizes", "2000G").must(2, "not in range")


def test_a_wrong_autotune_file_leaves_no_rank_behind():
    with world.hosts() as here:
        notes = here.place("notes")
        here.run("sh", "-c", f"echo my notes > {notes}").must(0)
        said = here.hvdrun("-np", 2, VICTIM, "retry-init", notes,
                           env={"HVD_AUTOTUNE": "1", "HVD_AUTOTUNE_FILE": str(notes)}).must(0).out
        assert said.count(f"refused: HVD_AUTOTUNE_FILE is {notes}: ") == 1, said
        assert said.count("joined rank") == 2, said
        here.must_be_clean()
