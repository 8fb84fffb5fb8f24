# SPDX-License-Identifier: Apache-2.0
"""Calls that ask wrongly: the same message on every rank, and a job that goes on."""
import world
from world import PROGRAMS


@world.bound(180)
def test_every_error_is_told_on_every_rank_of_one_host():
    with world.hosts() as here:
        for np in (2, 3):
            for what in ([], ["joined"]):
                outcome = here.hvdrun("-np", np, PROGRAMS / "errors", *what, seconds=40).must(0)
                assert outcome.out.count("all errors right") == np, outcome
        here.must_be_clean()


@world.bound(120)
def test_every_error_is_told_on_every_rank_of_two_hosts():
    with world.hosts(2) as here:
        for what in ([], ["joined"]):
            outcome = here.hvdrun("-np", 3, "-H", "host0:2,host1:1", PROGRAMS / "errors", *what, seconds=55).must(0)
            assert outcome.out.count("all errors right") == 3, outcome
        here.must_be_clean()


@world.bound(120)
def test_buckets_that_differ_are_told_on_every_rank():
    with world.hosts(2) as here:
        for np, *more in ((2,), (3,), (3, "-H", "host0:2,host1:1")):
            outcome = here.hvdrun("-np", np, *more, PROGRAMS / "bucket_errors", seconds=35).must(0)
            assert outcome.out.count("all buckets right") == np, outcome
        here.must_be_clean()
