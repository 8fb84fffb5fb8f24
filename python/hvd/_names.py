# SPDX-License-Identifier: Apache-2.0
"""In which order tensors that have names meet those of other ranks. Pure.

Names decide, wherever a rank has each of them once: then its program may list them in any order.
Frameworks number names by what a process has built before (`dense_7` here is `dense_2` there), so
the numbers count only as far as they tell a rank's own names apart, in their order.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_NUMBER = re.compile(r"_?\d+(?=[/_:.\]]|$)")
_WORD = re.compile(r"[^/_:.\[\]]+")
_MOST_REMEMBERED = 1024


class Meeting(NamedTuple):
    """`places`: those of the tensors in the program's list, in the order in which they meet.
    `contents`: what the ranks compare of each, in that order."""

    places: tuple[int, ...]
    contents: tuple[str, ...]


def meeting(names: Sequence[str]) -> Meeting:
    """The meeting of tensors of these names. Where a rank has a name twice, they meet by their
    places."""
    return _meeting(tuple(names))


def name_of(variable: object) -> str:
    """The name that ranks know a variable of Keras' by: Keras 3 has paths, of which the name is the
    last part."""
    return str(getattr(variable, "path", None) or getattr(variable, "name", "variable"))


def shown(contents: Sequence[str]) -> str:
    """The text that a call is given as its contents."""
    return ", ".join(contents)


@lru_cache(maxsize=_MOST_REMEMBERED)
def _meeting(names: tuple[str, ...]) -> Meeting:
    plain = [_NUMBER.sub("", name) for name in names]
    if len(set(names)) < len(names):
        return Meeting(tuple(range(len(names))), tuple(plain))
    places = sorted(range(len(names)), key=lambda i: (plain[i], _numbers(names[i]), names[i]))
    alike = Counter(plain)
    met: Counter[str] = Counter()
    contents = []
    for i in places:
        contents.append(plain[i] if alike[plain[i]] == 1 else f"{plain[i]}#{met[plain[i]]}")
        met[plain[i]] += 1
    return Meeting(tuple(places), tuple(contents))


def _numbers(name: str) -> tuple[tuple[int, ...], ...]:
    """The numbers in a name, by its words; a word without one comes before the same with one."""
    found: list[list[int]] = []
    for word in _WORD.findall(name):
        text = word.rstrip("0123456789")
        number = int(word[len(text):]) if len(text) < len(word) else -1
        if text or not found:
            found.append([number])
        else:
            found[-1].append(number)
    return tuple(map(tuple, found))
