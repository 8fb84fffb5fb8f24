# SPDX-License-Identifier: Apache-2.0
"""The steps of a bucket: given up, waited for a tensor at a time, filled with copies."""
import world
from world import PROGRAMS

WORLDS = ((1, "host0:1"), (2, "host0:2"), (5, "host0:5"), (3, "host0:2,host1:1"))


def in_all_worlds(mode):
    with world.hosts(2, slots=5) as here:
        for np, hosts in WORLDS:
            here.hvdrun("-np", np, "-H", hosts, PROGRAMS / "bucket_steps", mode).must(0)
        here.must_be_clean()


@world.bound(120)
def test_a_step_can_be_given_up():
    in_all_worlds("given-up")


@world.bound(120)
def test_single_tensors_are_waited_for():
    in_all_worlds("single")


@world.bound(120)
def test_gradients_of_other_types_are_copied_in():
    in_all_worlds("copied")


@world.bound(120)
def test_a_wait_for_one_tensor_tells_of_buckets_that_differ():
    in_all_worlds("differs")
