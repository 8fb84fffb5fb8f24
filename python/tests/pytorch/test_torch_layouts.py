# SPDX-License-Identifier: Apache-2.0
"""Checks what ranks agree on about an optimizer's gradients: pure."""
import pytest

pytest.importorskip("torch")

from hvd._torch.gradients.layout import (  # noqa: E402
    DENSE,
    NONE,
    Description,
    Layout,
    Outline,
    difference,
    first_layout,
    sparse_dimensions,
    sparse_kind,
    together,
)

pytestmark = pytest.mark.apart
SPARSE = sparse_kind(1)


def described(*names, shape=(2,), **more):
    return Description(tuple(Outline(name, shape, "float32", "cpu") for name in names), **more)


def test_kinds():
    assert sparse_kind(0) == sparse_kind(8) == DENSE
    assert [sparse_dimensions(sparse_kind(count)) for count in range(9)] == [*range(8), 0]
    assert sparse_dimensions(DENSE | SPARSE) == sparse_dimensions(SPARSE | sparse_kind(2)) == 0
    assert together([bytes((NONE, DENSE)), bytes((SPARSE, DENSE))]) == bytes((SPARSE, DENSE))


def test_what_travels_early():
    """Kinds are in the order of names: a, b, c."""
    layout = first_layout(described("c", "a", "b"), bytes((DENSE, NONE, SPARSE)))
    assert layout.order == ("c", "a", "b") and layout.early == {"a"} and layout.sparse == {"c"}
    assert layout.late == [(1, "b"), (2, "c")]
    assert layout.after(bytes((NONE, NONE, DENSE))) is layout
    later = layout.after(bytes((DENSE, DENSE, NONE)))
    assert later.early == {"a", "b"} and later.digest != layout.digest
    assert later.after(bytes((SPARSE, DENSE | SPARSE, NONE))).early == {"b"}
    assert Layout(("b", "c", "d")).like(later).early == {"b"}


def test_names_decide_what_goes_together():
    one = described("a", "b")
    assert difference([(0, one), (1, described("b", "a"))]) == ""
    assert "rank 2 has none of this name" in difference([(0, one), (2, described("a"))])
    assert "rank 0 has none of this name" in difference([(0, one), (2, described("a", "b", "c"))])
    assert "'a' is float32 [2] on rank 0 and float32 [3] on rank 2" in difference(
        [(0, one), (1, one), (2, described("a", "b", shape=(3,)))])
    told = [described("a", "b", groups=groups, groups_told=True)
            for groups in ((("a", "b"),), (("b", "a"),), (("a",), ("b",)))]
    assert difference([(0, told[0]), (1, told[1])]) == ""
    assert "the groups of rank 0 are [['a', 'b']]" in difference([(0, told[0]), (1, told[2])])
    assert "op is 0 on rank 0 and 1 on rank 1" in difference(
        [(rank, described("a", settings=(("op", str(rank)),))) for rank in (0, 1)])
