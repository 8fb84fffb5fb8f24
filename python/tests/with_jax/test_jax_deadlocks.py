# SPDX-License-Identifier: Apache-2.0
"""hvd.jax: compiled programs that wait for one another end with one error, and others go on.

XLA runs loops with calls in them one after the other. Rank 0 has them in the opposite order of the
others'."""
import os
import threading
import time

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
import jax.numpy as jnp  # noqa: E402

import hvd as hvd_of_numpy  # noqa: E402
import hvd.jax as hvd  # noqa: E402
from hvd.jax import deadlock, orders  # noqa: E402

# Before the first compiled program with calls. No test counts on that time: those in which ranks
# wait for each other end when it is over, and the others must pass whatever it is.
os.environ.setdefault("HVD_JAX_ORDER_SECONDS", "1")


def summed(x, name):
    return hvd.allreduce(x, hvd.Sum, name=name)


def scan(x, name):
    return jax.lax.scan(lambda carry, _: (summed(jnp.sin(carry), name), 0), x, length=3)[0]


def while_loop(x, name):
    return jax.lax.while_loop(lambda carry: carry[0] < 3,
                              lambda carry: (carry[0] + 1, summed(carry[1], name)), (0, x))[1]


def fori_loop(x, name):
    return jax.lax.fori_loop(0, 3, lambda _, carry: summed(carry * 2, name), x)


def map_(x, name):
    return jax.lax.map(lambda row: summed(row, name), jnp.stack([x, x, x]))


def in_a_branch(x, name):
    return jax.lax.cond(x[0] > 0, lambda x: scan(x, name), lambda x: x, x)


def in_jit(x, name):
    return jax.jit(lambda x: scan(x, name))(x)


def gradient(x, name):
    return jax.grad(lambda x: scan(x, name).sum())(x)


def of_other_kinds(x, name):
    def step(carry, _):
        gathered = hvd.allgather(carry, name=f"{name} gather")
        return hvd.broadcast([carry, gathered.sum()], 0, name=name)[0], 0
    return jax.lax.scan(step, x, length=2)[0]


@pytest.fixture
def several(size):
    if size == 1:
        pytest.skip("one rank waits for nobody")


def in_order(names, rank):
    return names[::-1] if rank == 0 else names


def ends_for_all(run, *words):
    """All ranks get the same error."""
    with pytest.raises(Exception, match="HVD_ERR_MISMATCH") as raised:
        jax.block_until_ready(run())
    error = hvd.error_of(raised.value)
    assert isinstance(error, hvd.MismatchError)
    text = str(error)
    assert len(set(hvd.allgather_object(text))) == 1
    for word in ("the ranks' compiled programs wait for one another",
                 "Have these calls in one order on all ranks", *words):
        assert word in text, text
    return text


@pytest.mark.parametrize("elements", [3, 100000])
@pytest.mark.parametrize("loop", [scan, while_loop, fori_loop, map_, in_a_branch, in_jit, gradient,
                                  of_other_kinds])
def test_loops_in_opposite_orders(loop, elements, rank, size, several):
    if elements > 3 and loop not in (scan, gradient):
        pytest.skip("as good as the next")
    names = in_order([f"{loop.__name__} one", f"{loop.__name__} two"], rank)
    program = jax.jit(lambda x: [loop(x, name) for name in names])
    text = ends_for_all(lambda: program(jnp.ones(elements)))
    assert all(words in text for words in (*names, "rank 0 waits in", "rank 1 waits in"))
    # And hvd goes on, with what stands in one order.
    after = jax.jit(lambda x: scan(scan(x, names[0] if rank else names[1]), "behind"))
    assert np.array_equal(after(jnp.zeros(elements)), np.zeros(elements))


def test_loops_within_a_loop(rank, size, several):
    names = in_order(["inner one", "inner two"], rank)

    def step(carry, _):
        return sum(scan(carry, name) for name in names) / size, 0

    program = jax.jit(lambda x: jax.lax.scan(step, x, length=2)[0])
    ends_for_all(lambda: program(jnp.ones(4)), "inner one", "inner two")


def test_calls_whose_memory_is_shared(rank, size, several):
    """No loop: XLA computes the second call's input in the memory of what the first one made."""
    def call(x, name, before):
        for _ in range(before):
            x = jnp.cumsum(jnp.sin(x))
        x = summed(x, name)
        for _ in range(3):
            x = jnp.cumsum(jnp.sin(x))
        return x.sum()

    near, far = in_order(["shared one", "shared two"], rank)
    program = jax.jit(lambda x: (call(x, near, 1), call(x, far, 6)))
    try:
        found = jax.block_until_ready(program(jnp.ones(4)))
    except Exception as error:
        assert isinstance(hvd.error_of(error), hvd.MismatchError)
        assert "'allreduce.shared one'" in str(error) and "'allreduce.shared two'" in str(error)
    else:
        assert all(np.isfinite(each) for each in found)  # an XLA that does it otherwise


def test_a_circle_of_three(rank, size):
    if size < 3:
        pytest.skip("it takes three ranks")
    names = ["circle a", "circle b", "circle c"]
    first = rank % 3
    names = names[first:] + names[:first]
    program = jax.jit(lambda x: [scan(x, name) for name in names])
    ends_for_all(lambda: program(jnp.ones(4)))


def test_a_set_whose_members_wait_while_others_go_on(rank, size):
    if size < 3:
        pytest.skip("it takes a rank that is no member")
    pair = hvd.add_process_set([0, 1])
    try:
        if rank < 2:
            def loop(x, name):
                return jax.lax.scan(lambda carry, _: (
                    hvd.allreduce(carry, name=name, process_set=pair), 0), x, length=2)[0]

            names = in_order(["of a pair one", "of a pair two"], rank)
            program = jax.jit(lambda x: [loop(x, name) for name in names])
            with pytest.raises(Exception, match="HVD_ERR_MISMATCH: the ranks' compiled programs "
                                                "wait for one another") as raised:
                jax.block_until_ready(program(jnp.ones(4)))
            assert f"of process set {pair.process_set_id}" in str(raised.value)
        hvd_of_numpy.barrier()
    finally:
        hvd.remove_process_set(pair)


@pytest.mark.parametrize("form", ["plain", "loop"])
def test_what_stands_beside_a_loop_has_any_order(form, rank, size):
    """A call that is in no loop, and a loop that depends on nothing of it."""
    parts = [lambda x: scan(jnp.cumsum(x) * 0, "beside, a loop"),
             lambda x: jnp.cumsum(summed(jnp.sin(x) * 0 + 1, "beside, no loop"))]
    if form == "loop":
        parts.append(lambda x: summed(x * 0, "beside, no loop either"))
    parts = in_order(parts, rank)
    program = jax.jit(lambda x: [part(x) for part in parts])
    for elements in (4, 100000):
        found = in_order(list(program(jnp.ones(elements))), rank)
        assert not found[0].any() and float(found[1][0]) == size


def test_loops_that_depend_on_one_another_have_that_order(rank, size):
    program = jax.jit(lambda x: scan(scan(x, "first"), "second"))
    assert not program(jnp.zeros(4)).any()


def wait_for(key):
    """As long as a rank may be at something else."""
    hvd_of_numpy.Store().get(key)


def test_programs_that_others_come_to_late_go_on(rank, size, several):
    """Rank 0 has a program's first loop under way for long; nobody waits for one another."""
    program = jax.jit(lambda x: (scan(x, "late one"), scan(x, "late two")))
    running = []
    thread = threading.Thread(target=lambda: running.extend(
        jax.block_until_ready(program(jnp.zeros(4)))))
    if rank == 0:
        thread.start()
        time.sleep(4 * float(os.environ["HVD_JAX_ORDER_SECONDS"]))  # what is tried is the time
        hvd_of_numpy.Store().set("late", b"")
    else:
        wait_for("late")
        thread.start()
    thread.join()
    assert len(running) == 2


def test_a_program_that_waits_in_pythons_code_is_left_alone(rank, size, several):
    """Each rank is within a function of Python's, whose end the other's call comes behind."""
    from jax.experimental import io_callback

    def pause(number):
        time.sleep(4 * float(os.environ["HVD_JAX_ORDER_SECONDS"]))  # what is tried is the time
        return np.asarray(number)

    def program(x):
        first, second = in_order(["python one", "python two"], rank)
        later = io_callback(pause, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return summed(x, first), summed(later, second)

    found = jax.jit(program)(jnp.ones(4))
    assert [each.tolist() for each in found] == [[size] * 4] * 2


def test_the_second_of_two_errors(rank, size, several):
    """The names and the store are free for the next time."""
    names = in_order(["again one", "again two"], rank)
    program = jax.jit(lambda x: [scan(x, name) for name in names])
    for _ in range(3):
        ends_for_all(lambda: program(jnp.ones(4)), "again one", "again two")


def test_a_program_lists_its_calls():
    """It lists those of its loops and functions too: hvd.jax knows what a run has not come to."""
    program = jax.jit(lambda x: (scan(x, "listed a"), summed(x, "listed b"), in_jit(x, "listed c"),
                                 hvd.broadcast([x, x], name="listed d")))
    text = program.lower(jnp.ones(3)).as_text()
    calls = [line for line in text.splitlines() if "calls =" in line]
    assert len(calls) == 1
    listed = calls[0].partition('calls = "')[2].partition('"')[0].split(r"\1F")
    assert sorted(listed) == ["0:allreduce.listed a", "0:allreduce.listed b",
                              "0:allreduce.listed c", "0:broadcast.listed d.0",
                              "0:broadcast.listed d.1"]


def test_how_long_nothing_goes_on(monkeypatch):
    now, computes, python = [100.0], [False], [False]
    monkeypatch.setattr(orders.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(orders, "_computes", lambda: computes[0])
    monkeypatch.setattr(orders, "_calls_python", lambda: python[0])
    still = orders._Still(8.0)

    def look(waits="a", changes=1):
        now[0] += 1
        return still.looked(orders._Seen(changes, frozenset(waits), frozenset()))

    assert not any(look() for _ in range(8)) and look()
    assert not look(changes=2)  # something has ended, and something else has begun
    assert not any(look(changes=2) for _ in range(7)) and look(changes=2)
    python[0] = True
    assert not any(look(changes=2) for _ in range(100))
    python[0] = False
    assert not look("", 3)
    assert not any(look("", 3) for _ in range(20))  # nobody waits
    computes[0] = True
    assert not look(changes=4)
    most = 8 * orders._WHERE_ANOTHER_COMPUTES
    assert sum(look(changes=4) for _ in range(most)) == 1  # so many times as long
    assert not look(changes=5)
    for second in range(8):  # something computes now and then
        computes[0] = second == 3
        assert look(changes=5) == (second == 7)


def test_the_setting(monkeypatch):
    for text, seconds in (("", 20.0), ("0", 0.0), ("1.5", 1.5)):
        monkeypatch.setenv(orders.SETTING, text)
        assert orders._seconds() == seconds
    monkeypatch.setenv(orders.SETTING, "soon")
    with pytest.raises(hvd.InvalidError, match="HVD_JAX_ORDER_SECONDS is 'soon'; give seconds"):
        orders._seconds()


def place(waits, has, members=(0, 1)):
    return deadlock.Place(frozenset(waits), frozenset(has), {key: list(members) for key in waits})


@pytest.mark.parametrize("places, found", [
    ([place("a", "b"), place("b", "a")], {0, 1}),
    ([place("a", "b"), place("b", "c")], set()),  # rank 1 may come to it later
    ([place("a", "b"), None], set()),  # something goes on there
    ([place("ac", "b"), place("b", "a")], set()),  # and rank 1 may come to "c"
    ([place("ac", "b"), place("b", "ac")], {0, 1}),
    ([place("a", "b", (0, 1, 2)), place("b", "c", (0, 1, 2)), place("c", "a", (0, 1, 2))],
     {0, 1, 2}),
    ([place("a", "b"), place("b", "a"), place("c", "", (0, 2))], {0, 1}),
    ([place("a", "b", (0, 2)), place("c", "", (0, 1, 2)), place("b", "ac", (0, 2))], {0, 2}),
    ([place("a", "b", (0, 1, 2)), place("a", "b", (0, 1, 2)), place("b", "a", (0, 1, 2))],
     {0, 1, 2}),
])
def test_what_is_certain(places, found):
    keyed = [each and deadlock.Place(frozenset("0:" + key for key in each.waits),
                                     frozenset("0:" + key for key in each.has),
                                     {"0:" + key: each.members[key] for key in each.waits})
             for each in places]
    assert set(deadlock.find(0, lambda rank: keyed[rank])) == found
    if found:
        text = deadlock.explain(deadlock.find(0, lambda rank: keyed[rank]))
        assert "rank 0 waits in 'a' and has" in text
