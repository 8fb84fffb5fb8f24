# SPDX-License-Identifier: Apache-2.0
"""horovod.runner.common.util.hosts, answered by hvd: its words for hosts and slots. hvdrun has its
own, which understand more (`-H 'node[1-4]:2'`, hostfiles of others)."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

_HOST = re.compile(r"[\w.-]+:[0-9]+")


class HostInfo:
    """A host, and how many ranks it has room for."""

    def __init__(self, hostname: str, slots: int) -> None:
        self.hostname = hostname
        self.slots = slots

    @staticmethod
    def from_string(host_string: str) -> HostInfo:
        """Reads "host:4". ValueError for anything else."""
        name, _, slots = host_string.strip().rpartition(":")
        if not name:
            raise ValueError(f"{host_string!r} is not a host and its slots, as worker-0:2")
        return HostInfo(name, int(slots))


@dataclass
class SlotInfo:
    """Where a rank is, as hvd.rank() and its like say it there."""

    hostname: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int

    def to_response_string(self) -> str:
        """The numbers, in pairs of rank and size, as text."""
        _, rank, local_rank, cross_rank, size, local_size, cross_size = astuple(self)
        return ",".join(str(each) for each in (rank, size, local_rank, local_size, cross_rank,
                                               cross_size))


INVALID_SLOT_INFO = SlotInfo("", -1, -1, -1, -1, -1, -1)


def parse_host_files(filename: str) -> str:
    """Lines of "host slots=4" as "host:4,…". ValueError names the line that is none."""
    found = []
    with open(filename) as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            slots = [word[len("slots="):] for word in words[1:] if word.startswith("slots=")]
            if len(slots) != 1:
                raise ValueError(f"{filename}:{number}: not a line of the form: host slots=4")
            found.append(f"{words[0]}:{slots[0]}")
    return ",".join(found)


def parse_hosts_and_slots(hosts: str) -> tuple[list[str], dict[str, int]]:
    """Names, in their order, and each one's slots, of "worker-0:2,worker-1:2"."""
    parts = [part.strip() for part in hosts.split(",")]
    if not all(_HOST.fullmatch(part) for part in parts):
        raise ValueError("Invalid host input, please make sure it has format as : "
                         "worker-0:2,worker-1:2.")
    found = [HostInfo.from_string(part) for part in parts]
    return [one.hostname for one in found], {one.hostname: one.slots for one in found}


def parse_hosts(hosts_string: str) -> list[HostInfo]:
    """The hosts of "worker-0:2,worker-1:2"."""
    return [HostInfo.from_string(part) for part in hosts_string.split(",")]


def get_host_assignments(hosts: Sequence[HostInfo], min_num_proc: int,
                         max_num_proc: int | None = None) -> list[SlotInfo]:
    """Ranks in the order of hosts and slots, at most `max_num_proc`; ValueError when there are
    fewer than `min_num_proc`."""
    taken, left = [], sum(host.slots for host in hosts) if max_num_proc is None else max_num_proc
    for host in hosts:
        taken.append(min(host.slots, left))
        left -= taken[-1]
    size = sum(taken)
    if size < min_num_proc:
        raise ValueError(f"Requested more processes ({min_num_proc}) than there are available "
                         f"slots ({size})")
    return list(_placed(hosts, taken, size))


def _placed(hosts: Sequence[HostInfo], taken: Sequence[int], size: int) -> Iterable[SlotInfo]:
    rank = 0
    for index, host in enumerate(hosts):
        for local_rank in range(taken[index]):
            across = [number for number, count in enumerate(taken) if count > local_rank]
            yield SlotInfo(host.hostname, rank, local_rank, across.index(index), size,
                           taken[index], len(across))
            rank += 1
