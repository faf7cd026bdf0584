"""Turns: rank 0 works alone while the others sleep, or all work at once. For measurements."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from app.comm.group import Group
from app.watchdog import beat

TAG = 17
NAP_S = 0.002  # a sleeping rank looks up this often


def only_this_rank(device: Any) -> Group:
    """A group of this rank alone."""
    return Group(MPI.COMM_SELF, device)


def first_alone(group: Group, action: Callable[[], Any]) -> Any:
    """What rank 0's action returns; None on the others, which sleep meanwhile. Ranks: all call.

    A rank that waited in a collective would poll, and take its share of a core.
    """
    done, result = np.zeros(1, dtype=np.int8), None
    group.barrier()
    if group.rank > 0:
        while not group.comm.Iprobe(source=0, tag=TAG):
            beat()
            time.sleep(NAP_S)
        group.comm.Recv(done, source=0, tag=TAG)
        return None
    try:
        result = action()
    finally:
        for rank in range(1, group.size):
            group.comm.Send(done, dest=rank, tag=TAG)
    return result


def seconds_alone(group: Group, action: Callable[[], Any]) -> float:
    """Seconds of an action on rank 0 while the others sleep; 0 on them. Ranks: all call."""
    return first_alone(group, lambda: _seconds(action)) or 0.0


def seconds_together(group: Group, action: Callable[[], Any]) -> float:
    """Seconds until all ranks have done an action that they begin together. Ranks: all call."""

    def until_all() -> None:
        action()
        group.barrier()

    group.barrier()
    return _seconds(until_all)


def by_turns(
    group: Group, actions: dict[str, Callable[[], Any]], rounds: int, alone: str = ""
) -> dict[str, list[float]]:
    """Seconds of each action in each round, by name; the order of the actions is turned round every time.

    alone   the action that is rank 0's, while the others wait; "": none
    A round before them does not count.
    Ranks   all call; seconds are this rank's
    """
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name in list(actions)[:: 1 if number % 2 else -1]:
            clocked = seconds_alone if name == alone else seconds_together
            taken[name].append(clocked(group, actions[name]))
    return {name: seconds[1:] for name, seconds in taken.items()}


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
