# SPDX-License-Identifier: Apache-2.0
"""hvd.elastic where nobody comes or goes: commit, going back, and what ranks make alike."""
import pytest

import hvd
from hvd import elastic
from hvd._elastic import epochs


def test_a_state_goes_back_to_its_commit(rank):
    state = elastic.ObjectState(weights=[1.0, 2.0], batch=0)
    state.sync()
    state.batch, state.weights[0] = 7, 5.0
    state.commit()
    state.batch, state.weights[0] = 9, 6.0
    state.restore()
    assert (state.batch, state.weights) == (7, [5.0, 2.0])


def test_a_sync_gives_all_what_rank_0_has(rank):
    state = elastic.ObjectState(hvd.broadcast_object, hvd.rank, mine=rank, more={"rank": rank})
    state.sync()
    assert (state.mine, state.more) == (0, {"rank": 0})
    state.mine = rank + 1
    state.sync()
    assert state.mine == 1


def test_a_state_does_not_take_anothers_commit_for_its_own():
    first, second = elastic.ObjectState(batch=1), elastic.ObjectState(batch=2)
    first.sync()
    second.sync()
    first.batch = 3
    with pytest.raises(hvd.InvalidError, match="another state"):
        first.restore()
    assert first.batch == 3
    first.commit()
    first.batch = 4
    first.restore()
    assert first.batch == 3


def test_a_state_does_not_become_another_one():
    mine, other = elastic.ObjectState(batch=1), elastic.ObjectState(weights=[2])
    with pytest.raises(hvd.InvalidError, match="another state's: with batch, not weights"):
        other._take(mine._objects(), {})
    assert not hasattr(other, "batch")


def test_a_commit_asks_once_whether_members_are_to_change(monkeypatch):
    asked = []
    monkeypatch.setattr(epochs, "check_hosts", lambda: asked.append(True))
    state = elastic.ObjectState(batch=0)
    state.sync()
    state.commit()
    assert not asked
    state.check_host_updates()
    assert len(asked) == 1


def test_run_goes_back_and_calls_again(rank):
    seen = []
    state = elastic.ObjectState(batch=0, scale=hvd.size())
    state.register_reset_callbacks([lambda: seen.append(("callback", state.batch))])

    @elastic.run
    def train(state, bonus, *, more):
        seen.append(state.batch)
        while state.batch < 6:
            state.batch += 1
            if state.batch % 2 == 0:
                state.commit()
            elif state.batch == 5 and len(seen) == 1:
                raise hvd.HorovodInternalError("made up")
        return state.batch + bonus + more

    assert train(state, 10, more=100) == 116
    assert seen == [0, ("callback", 4), 4]


def test_run_after_an_update_keeps_what_was_not_committed():
    seen = []
    state = elastic.ObjectState(batch=0)

    @elastic.run
    def train(state):
        seen.append(state.batch)
        state.batch += 1
        if len(seen) == 1:
            raise hvd.HostsUpdatedInterrupt(skip_sync=True)
        return state.batch

    assert train(state) == 2 and seen == [0, 1]


def test_other_errors_leave_run():
    state = elastic.ObjectState(batch=0)
    for error in (KeyError("mine"), hvd.MismatchError("theirs")):
        @elastic.run
        def train(state, error=error):
            raise error

        with pytest.raises(type(error)):
            train(state)


class Own(elastic.State):
    """A program's own, as Horovod's documentation has them."""

    def __init__(self, rank):
        super().__init__(hvd.broadcast_object, hvd.rank)
        self.value = self.saved = rank
        self.calls = []

    def save(self):
        self.calls.append("save")
        self.saved = self.value

    def restore(self):
        self.calls.append("restore")
        self.value = self.saved

    def sync(self):
        self.calls.append("sync")
        self.value = self._bcast_object(self.value)
        self.save()

    def reset(self):
        self.calls.append("reset")


def test_a_programs_own_state_has_horovods_order(rank):
    state = Own(rank)
    state.register_reset_callbacks([lambda: state.calls.append("callback")])

    @elastic.run
    def train(state):
        if state.calls.count("sync") == 1:
            state.value = 5
            state.commit()
            state.value = 6
            raise hvd.HorovodInternalError("made up")
        return state.value

    assert train(state) == 5
    assert state.calls == ["sync", "save", "save", "restore", "reset", "callback", "sync", "save"]


def test_the_epoch_says_who_is_in_it(rank, size):
    epoch = elastic.epoch()
    assert (epoch.rank, epoch.size) == (rank, size) and epoch.number > 0
    assert not elastic.is_elastic() and elastic.slot() >= 0
    elastic.reset()
    assert elastic.epoch().number > epoch.number and hvd.rank() == rank
