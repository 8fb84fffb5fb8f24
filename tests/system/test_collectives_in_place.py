"""Allgathers and reduce-scatters in place, on one host and several."""
import world
from world import PROGRAMS


@world.bound(180)
def test_gathers_and_scatters_in_place():
    with world.hosts(2, slots=5) as here:
        for np, hosts in ((1, "host0:1"), (2, "host0:2"), (3, "host0:3"), (5, "host0:5"), (2, "host0:1,host1:1"), (3, "host0:2,host1:1"),
                          (4, "host0:2,host1:2")):
            here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "in_place", seconds=60).must(0)
        here.must_be_clean()
