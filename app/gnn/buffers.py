"""Shared buffers of full-batch training, and which array of an epoch lives in which of them.

MG-GCN (section 4.2) gives every layer one private buffer and lets all layers share one more; with two for the
broadcast under way that makes L+3 of average width. Its map for one layer (eqs. 16-21):

    forward    H W -> shared     A H W -> private     H' = relu(A H W) -> private
    backward   dZ  -> private    A dZ  -> shared      dH = A dZ W^T    -> private of the layer before

Here the map is not written down layer by layer. The layers ask for rows of so many columns and free them
again; that is recorded once, without numbers (engine.py), and `plan_buffers` puts arrays that never live at
the same time into one buffer. For a stack of GCN layers that gives a private buffer for each layer, as
MG-GCN's map has, but the shared one has 64 columns whatever the layers have: A is multiplied by that many
columns of a buffer at a time, which the sums then replace (Engine.spread), and dH, once it has come through
relu, replaces the H that said where it comes through (Engine.dense_through). The two of the broadcast belong
to the exchange (Group.stage_rows), and have 64 columns too. Residual connections, layer normalisation and
GIN's second product cost the buffers their derivations say.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Lifetime:
    """An array of an epoch: its columns, the operation that makes it and the one after which it is free."""

    name: str
    width: int
    first: int
    last: int


@dataclass(frozen=True)
class BufferPlan:
    """Columns of each buffer, and for each array, in the order in which they are asked for, its buffer."""

    widths: tuple[int, ...] = ()
    slots: dict[str, tuple[int, ...]] = field(default_factory=dict)
    lifetimes: dict[str, tuple[Lifetime, ...]] = field(default_factory=dict)

    @property
    def columns(self) -> int:
        """Columns of all buffers: times 4 bytes and a rank's rows it is their memory."""
        return sum(self.widths)

    def lines(self, program: str) -> list[str]:
        """The reuse map: for each buffer the arrays that it holds, in their order."""
        held: list[list[str]] = [[] for _ in self.widths]
        for life, slot in zip(self.lifetimes[program], self.slots[program]):
            held[slot].append(life.name)
        return [
            f"buffer {i} ({width} columns): {', '.join(names) or '-'}"
            for i, (width, names) in enumerate(zip(self.widths, held))
        ]


def plan_buffers(programs: dict[str, list[Lifetime]]) -> BufferPlan:
    """Buffers for programs that run one after another, such as a training epoch and an evaluation.

    Arrays that overlap in time never share a buffer. They choose one after the other, the widest first or in
    the order of time, whichever takes fewer columns: the first is good where widths differ much, the second
    where a narrow last layer's gradient makes a wide one. Of equal plans the first is taken.
    """
    plans = [_place(programs, order) for order in (_by_width, _by_time)]
    return min(plans, key=lambda plan: plan.columns)


Place = tuple[str, int, Lifetime]  # program, number among its arrays, the array


def _by_width(place: Place) -> tuple[int, str, int]:
    return -place[2].width, *place[:2]


def _by_time(place: Place) -> tuple[str, int]:
    return place[:2]


def _place(programs: dict[str, list[Lifetime]], order: Callable[[Place], Any]) -> BufferPlan:
    """Each array takes, of the buffers free all its life, the narrowest that is wide enough, else the widest,
    which grows; else a new one."""
    widths: list[int] = []
    taken: list[list[tuple[str, Lifetime]]] = []
    slots = {name: [0] * len(lives) for name, lives in programs.items()}
    places = [(name, i, life) for name, lives in programs.items() for i, life in enumerate(lives)]
    for program, i, life in sorted(places, key=order):
        free = [s for s in range(len(widths)) if _is_free(taken[s], program, life)]
        fits = [s for s in free if widths[s] >= life.width]
        if fits:
            slot = min(fits, key=lambda s: (widths[s], s))
        elif free:
            slot = max(free, key=lambda s: (widths[s], -s))
            widths[slot] = life.width
        else:
            slot = len(widths)
            widths.append(life.width)
            taken.append([])
        taken[slot].append((program, life))
        slots[program][i] = slot
    return BufferPlan(
        tuple(widths),
        {name: tuple(each) for name, each in slots.items()},
        {name: tuple(each) for name, each in programs.items()},
    )


def _is_free(taken: list[tuple[str, Lifetime]], program: str, life: Lifetime) -> bool:
    return all(other != program or held.last < life.first or life.last < held.first for other, held in taken)
