"""Ranks that join while they have something pending: everything is done, and nobody waits for it."""
import world
from world import PROGRAMS


@world.bound(120)
def test_joining_with_something_pending_on_one_host():
    with world.hosts() as here:
        for np in (2, 3, 4):
            outcome = here.hvdrun("-np", np, PROGRAMS / "joins", seconds=35).must(0)
            assert outcome.out.count("joins right") == np, outcome
        here.must_be_clean()


@world.bound(120)
def test_joining_with_something_pending_on_two_hosts():
    with world.hosts(2) as here:
        for np, hosts in ((2, "host0:1,host1:1"), (3, "host0:2,host1:1"), (4, "host0:2,host1:2")):
            outcome = here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "joins", seconds=35).must(0)
            assert outcome.out.count("joins right") == np, outcome
        here.must_be_clean()
