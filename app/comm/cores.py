"""The cores that ranks may use."""

import os
import platform

from app.comm.group import Group


def own_cores() -> list[int]:
    """The numbers of those that this rank may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def are_crowded(group: Group) -> bool:
    """Whether a host has more ranks of a group than cores that they may use. Ranks: all call; the same on
    all."""
    ranks: dict[str, list[list[str]]] = {}
    for text in group.gather_texts(f"{platform.node()}|{' '.join(map(str, own_cores()))}"):
        host, _, cores = text.rpartition("|")
        ranks.setdefault(host, []).append(cores.split())
    return any(len(here) > len(set().union(*here)) for here in ranks.values())
