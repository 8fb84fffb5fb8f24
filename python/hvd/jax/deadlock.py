# SPDX-License-Identifier: Apache-2.0
"""Do ranks wait for one another for ever, and how to say so. Pure.

A call's key is its process set's number, a colon and its name.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

_MOST_SHOWN = 4


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a rank's programs are: nothing goes on there before one of the calls that they wait in
    has ended."""

    waits: frozenset[str]
    has: frozenset[str]  # the other calls of these programs
    members: Mapping[str, list[int]]  # the ranks that each of `waits` is for

    def concerned(self) -> set[int]:
        """The ranks that this one waits for, itself among them."""
        return {rank for ranks in self.members.values() for rank in ranks}

    def as_json(self) -> dict[str, Any]:
        return {"waits": sorted(self.waits), "has": sorted(self.has), "members": self.members}

    @staticmethod
    def of_json(read: Mapping[str, Any]) -> Place:
        return Place(frozenset(read["waits"]), frozenset(read["has"]), read["members"])


def find(rank: int, place_of: Callable[[int], Place | None]) -> dict[int, Place]:
    """The ranks that wait with this one for ever, and their places; none: it may go on. `place_of`:
    None is a rank where something goes on."""
    places: dict[int, Place] = {}
    wanted = [rank]
    while wanted:
        each = wanted.pop()
        if each in places:
            continue
        place = place_of(each)
        if place is None:
            return {}  # it may come to whatever the others wait for
        places[each] = place
        wanted.extend(place.concerned() - places.keys())
    certain = all(_who_has_it_behind(key, place, places) is not None
                  for place in places.values() for key in place.waits)
    return places if certain else {}


def explain(places: Mapping[int, Place]) -> str:
    """The one message that every rank gets."""
    said = "; ".join(_order(rank, key, behind) for rank, key, behind in _circle(places))
    return ("the ranks' compiled programs wait for one another, with calls in different orders: "
            f"{said}. XLA runs loops with calls in them (scan, while_loop, fori_loop, map), and "
            "whatever it gives the same memory, one after the other. Have these calls in one order "
            "on all ranks, such as by giving what is to come later a result of what is to come "
            "first")


def _who_has_it_behind(key: str, place: Place, places: Mapping[int, Place]) -> int | None:
    """The lowest rank that comes to the call only behind what it waits in itself."""
    return min((rank for rank in place.members[key] if key in places[rank].has), default=None)


def _circle(places: Mapping[int, Place]) -> list[tuple[int, str, str]]:
    """Ranks, the call that each waits in, and the one behind it that the rank before waits in."""
    rank, behind = min(places), ""
    seen: dict[int, int] = {}
    steps: list[tuple[int, str, str]] = []
    while rank not in seen:
        seen[rank] = len(steps)
        place = places[rank]
        key = min(place.waits)
        steps.append((rank, key, behind))
        found = _who_has_it_behind(key, place, places)
        assert found is not None
        rank, behind = found, key
    circle = steps[seen[rank]:]
    first = circle[0]
    return [(first[0], first[1], behind), *circle[1:]][:_MOST_SHOWN]


def _order(rank: int, key: str, behind: str) -> str:
    return f"rank {rank} waits in {_shown(key)} and has {_shown(behind)} behind it"


def _shown(key: str) -> str:
    number, _, name = key.partition(":")
    return f"'{name}'" if number == "0" else f"'{name}' of process set {number}"
