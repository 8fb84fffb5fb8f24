"""How a collective's name is made from the caller's: each kind has its own names, as in Horovod,
so that an allgather may have the name of an allreduce. Unnamed calls stay unnamed: libhvd matches
them by their order."""
from __future__ import annotations


def allreduce(name: str | None) -> str | None:
    return "allreduce." + name if name else None


def named(kind: str, name: str | None) -> str | None:
    return f"{kind}.{name}" if name else None
