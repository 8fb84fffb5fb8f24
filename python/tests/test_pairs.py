# SPDX-License-Identifier: Apache-2.0
"""Sends and receives between two ranks, and process sets that only their members make."""
import numpy as np
import pytest

import hvd

pytestmark = pytest.mark.usefixtures("several")


def pattern(sender, count, dtype="float64"):
    return (np.arange(count) * 7 + sender).astype(dtype)


@pytest.mark.parametrize("count", [0, 1, 100, 100_000])
def test_neighbours_both_send_first(rank, size, count):
    right, left = (rank + 1) % size, (rank - 1) % size
    sent = hvd.send_async(pattern(rank, count), right)
    into = np.zeros(count)
    assert hvd.recv(into, left) is into
    assert sent.wait() is None
    assert into.tolist() == pattern(left, count).tolist()


def test_tags_may_come_in_any_order(rank, size):
    peers = [peer for peer in range(size) if peer != rank]
    handles = [hvd.send_async(pattern(rank + tag, 50 * (tag + 1)), peer, tag)
               for peer in peers for tag in range(3)]
    for peer in reversed(peers):
        for tag in (2, 0, 1):
            into = hvd.recv(np.zeros(50 * (tag + 1)), peer, tag)
            assert into.tolist() == pattern(peer + tag, 50 * (tag + 1)).tolist()
    for handle in handles:
        handle.wait()


def test_within_a_process_set(rank, size):
    pair = hvd.add_process_set([0, 1]) if size > 2 else hvd.global_process_set
    if rank == 0:
        hvd.send(pattern(0, 9, "int16"), 1, -3, pair)
    if rank == 1:
        into = hvd.recv(np.zeros((3, 3), "int16"), 0, -3, pair)
        assert into.ravel().tolist() == pattern(0, 9).tolist()
    if size > 2:
        assert hvd.remove_process_set(pair)


def test_what_does_not_fit(rank):
    if rank > 1:
        return
    for _ in range(2):
        with pytest.raises(hvd.MismatchError, match="rank 0 sends float32 .5., rank 1 receives"):
            if rank == 0:
                hvd.send(np.zeros(5, "float32"), 1)
            else:
                hvd.recv(np.zeros(5, "float64"), 0)


def test_what_makes_no_sense(rank, size):
    with pytest.raises(ValueError, match="is this rank itself"):
        hvd.send(np.zeros(1), rank)
    with pytest.raises(ValueError, match="source: rank"):
        hvd.recv(np.zeros(1), size)
    with pytest.raises(ValueError, match="64 bits"):
        hvd.send(np.zeros(1), (rank + 1) % size, 2**63)
    read_only = np.zeros(1)
    read_only.flags.writeable = False
    with pytest.raises(ValueError):
        hvd.recv(read_only, (rank + 1) % size)


def test_torch_tensors(rank, size):
    torch = pytest.importorskip("torch")
    sent = hvd.send_async(torch.full((4,), float(rank)), (rank + 1) % size, 1)
    into = torch.zeros(2, 2)
    hvd.recv(into, (rank - 1) % size, 1)
    sent.wait()
    assert into.flatten().tolist() == [float((rank - 1) % size)] * 4


def test_sets_of_members(rank, size):
    if rank < 2:
        made = [hvd.add_process_set([1, 0], members_only=True, key=key) for key in ("a", "b")]
        assert made[0].process_set_id != made[1].process_set_id
        for one in made:
            assert hvd.allreduce(np.ones(3), op=hvd.Sum, process_set=one).tolist() == [2.0] * 3
        with pytest.raises(hvd.DuplicateError):
            hvd.add_process_set([0, 1], members_only=True, key="a")
        for one in made:
            assert hvd.remove_process_set(one)
    else:
        with pytest.raises(ValueError, match="only members"):
            hvd.add_process_set([0, 1], members_only=True)
    with pytest.raises(ValueError, match="members_only"):
        hvd.add_process_set([0, 1], key="a")
