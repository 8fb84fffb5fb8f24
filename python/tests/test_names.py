# SPDX-License-Identifier: Apache-2.0
"""hvd._names: in which order tensors that have names meet those of other ranks; and a call's
contents, by which ranks see that theirs are not the same."""
import random

import numpy as np
import pytest

import hvd
from hvd import _names


def met(names):
    order = _names.meeting(names)
    return [names[place] for place in order.places], list(order.contents)


def test_an_order_of_names_does_not_depend_on_the_list():
    names = [f"layer_{i}/{part}" for i in range(12) for part in ("kernel", "bias")] + ["top"]
    expected = met(names)
    assert sorted(expected[0]) == sorted(names)
    for seed in range(20):
        other = names[:]
        random.Random(seed).shuffle(other)
        assert met(other) == expected


@pytest.mark.parametrize("first, second", [
    (["dense/kernel", "dense_1/kernel"], ["dense_9/kernel", "dense_10/kernel"]),
    (["dense8_weight", "dense9_weight"], ["dense9_weight", "dense10_weight"]),
    (["sequential/dense/kernel", "sequential/dense_1/kernel", "sequential_1/dense_2/kernel"],
     ["sequential_9/dense_9/kernel", "sequential_9/dense_10/kernel",
      "sequential_10/dense_11/kernel"]),
    (["adam/sequential_dense_kernel_momentum", "adam/sequential_dense_1_kernel_momentum"],
     ["adam_2/sequential_3_dense_4_kernel_momentum",
      "adam_2/sequential_3_dense_10_kernel_momentum"]),
    (["w:0", "w_1:0", "b:0"], ["w_2:0", "w_3:0", "b_7:0"])])
def test_numbers_count_only_by_their_order(first, second):
    """A process numbers what it builds now by what it has built before."""
    pairs = list(zip(first, second, strict=True))
    for seed in range(10):
        random.Random(seed).shuffle(pairs)
        mine, contents = met([one for one, _ in pairs])
        theirs, same = met([other for _, other in pairs])
        assert contents == same
        assert set(zip(mine, theirs, strict=True)) == set(pairs)


@pytest.mark.parametrize("first, second", [
    (["a", "b"], ["a", "c"]), (["a", "b"], ["a"]), (["conv2d/kernel"], ["conv3d/kernel"]),
    (["dense/kernel", "dense_1/kernel"], ["dense/kernel", "dense/bias"]),
    (["w", "w", "b"], ["b", "w", "w"])])
def test_other_names_are_other_contents(first, second):
    assert met(first)[1] != met(second)[1]


def test_a_name_that_is_there_twice_says_nothing():
    names = ["Variable:0", "Variable:0", "b:0"]
    assert met(names)[0] == names


def test_no_names():
    assert met([]) == ([], [])


@pytest.mark.parametrize("group", [False, True], ids=["one", "group"])
def test_other_contents_are_a_mismatch_with_both_said(group, rank, size, several):
    name = f"contents {group}"
    mine = "a, b" if rank != 1 else "b, a"
    x = np.ones(3, "float32")

    def call(contents):
        if group:
            return hvd.grouped_allreduce([x, x], name=name, op=hvd.Sum, contents=contents)[1]
        return hvd.allreduce(x, name=name, op=hvd.Sum, contents=contents)

    for _ in range(2):
        with pytest.raises(hvd.MismatchError) as told:
            call(mine)
        assert "give different tensors, by their names or their order" in str(told.value)
        assert f"This rank gives: {mine}" in str(told.value)
        assert np.array_equal(call("a, b"), np.full(3, size))  # and hvd goes on
    with pytest.raises(hvd.MismatchError):
        call("" if rank == 0 else "a, b")


def test_a_broadcast_and_a_bucket_have_contents(rank, size, several):
    x = np.full(4, rank, "float32")
    with pytest.raises(hvd.MismatchError, match="This rank gives: "):
        hvd.broadcast(x, 0, name="contents of a broadcast", contents=f"rank {rank}'s")
    assert hvd.broadcast(x, 1, name="contents of a broadcast", contents="all").sum() == 4
    for contents, fine in (("a, b", True), ("ab"[rank % 2], False)):
        bucket = hvd.Bucket([2, 2], name=f"bucket of {fine}", contents=contents)
        bucket.ready(0)
        bucket.ready(1)
        if fine:
            bucket.wait()
        else:
            with pytest.raises(hvd.MismatchError, match="This rank gives: [ab]"):
                bucket.wait()
